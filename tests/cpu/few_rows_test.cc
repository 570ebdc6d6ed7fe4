// Products of few rows against plain sums, in every order, dtype and size around the borders of their blocks.
#include "runtime/cpu/few_rows.h"

#include <gtest/gtest.h>

#include <random>

#include "base/dispatch.h"
#include "base/str.h"

namespace weft::cpu {
namespace {

template <class T>
std::vector<T> numbers(std::size_t count, std::mt19937& random) {
  std::uniform_int_distribution<int> draw(-127, 127);
  std::vector<T> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(from_double<T>(draw(random) / (sizeof(T) == 1 ? 1.0 : 64.0)));
  return all;
}

template <class In, class Out>
void expect_product(std::int64_t m, std::int64_t n, std::int64_t k, bool along_k, bool adds) {
  std::mt19937 random(static_cast<unsigned>(m * 7919 + n * 31 + k));
  const auto a = numbers<In>(static_cast<std::size_t>(m * (k + 3)), random);
  const auto b = numbers<In>(static_cast<std::size_t>((n + 2) * (k + 2)), random);
  const ProductShape shape{.m = m,
                           .n = n,
                           .k = k,
                           .a_row = k + 3,
                           .a_column = 1,
                           .b_row = along_k ? 1 : n + 2,
                           .b_column = along_k ? k + 2 : 1,
                           .c_row = n + 1,
                           .in = kDTypeOf<In>,
                           .out = kDTypeOf<Out>,
                           .adds = adds};
  if (!has_few_rows_product(shape)) return;
  std::vector<Out> c(static_cast<std::size_t>(m * (n + 1)), Out{5});
  std::vector<std::byte> scratch(few_rows_scratch_bytes(shape));
  few_rows_product(shape, a.data(), b.data(), c.data(), scratch.data());
  constexpr double kError = sizeof(In) == 1 ? 0 : 1e-6;  // integers are exact
  const auto at = [](const auto& all, std::int64_t i) { return to_double(all[static_cast<std::size_t>(i)]); };
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j <= n; ++j) {
      double sum = adds || j == n ? 5 : 0, size = 5;
      for (std::int64_t l = 0; j < n && l < k; ++l) {
        const double term = at(a, i * shape.a_row + l) * at(b, l * shape.b_row + j * shape.b_column);
        sum += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(at(c, i * shape.c_row + j), sum, kError * size)
          << name_of(shape.in) << " " << m << "x" << k << "x" << n << (along_k ? " along k" : " across") << " at " << i
          << ", " << j;
    }
}

TEST(FewRows, ProductsEqualPlainSums) {
  for (const std::int64_t m : {1, 2, 5, 6, 7, 8, 9, 12, 14, 33})
    for (const auto& [n, k] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {1, 1}, {3, 5}, {16, 64}, {17, 63}, {64, 257}, {65, 130}, {100, 1025}, {5, 4097}})
      for (const bool along_k : {true, false})
        for (const bool adds : {true, false}) {
          expect_product<float, float>(m, n, k, along_k, adds);
          expect_product<BF16, float>(m, n, k, along_k, adds);
          expect_product<std::int8_t, std::int32_t>(m, n, k, along_k, adds);
        }
}

TEST(FewRows, AnyOrderOfI8IsServed) {
  const ProductShape shape{.m = 3,
                           .n = 2,
                           .k = 4,
                           .a_row = 1,
                           .a_column = 3,
                           .b_row = 2,
                           .b_column = 1,
                           .c_row = 2,
                           .in = DType::kI8,
                           .out = DType::kI32};
  ASSERT_TRUE(has_few_rows_product(shape));
  const std::vector<std::int8_t> a = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, b = {1, -1, 2, -2, 3, -3, 4, -128};
  std::vector<std::int32_t> c(6);
  few_rows_product(shape, a.data(), b.data(), c.data(), nullptr);
  EXPECT_EQ(c, (std::vector<std::int32_t>{70, -1310, 80, -1444, 90, -1578}));
}

}  // namespace
}  // namespace weft::cpu
