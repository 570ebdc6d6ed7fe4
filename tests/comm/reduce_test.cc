// The vector kernels against one element at a time, on random bits, for every dtype, length and number of arrays.
#include "comm/reduce.h"

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "local.h"

#include <gtest/gtest.h>

namespace weft::comm::reduce_test {
namespace {

bool is_nan(float x) { return std::isnan(x); }
bool is_nan(double x) { return std::isnan(x); }
bool is_nan(BF16 x) { return std::isnan(wide(x)); }
bool is_nan(F16 x) { return std::isnan(wide(x)); }
template <class T>
bool is_nan(T) {
  return false;
}

// Signs of zeros in max and min follow the machine; payloads of NaNs too.
template <class T>
bool same(T a, T b) {
  if (is_nan(a) || is_nan(b)) return is_nan(a) && is_nan(b);
  if constexpr (std::is_floating_point_v<T>) return a == b;
  else return std::memcmp(&a, &b, sizeof a) == 0;
}

template <class T>
std::vector<T> random_bits(std::size_t count, std::mt19937_64& random) {
  std::vector<T> out(count);
  for (T& x : out) {
    const std::uint64_t bits = random();
    if constexpr (std::is_same_v<T, Bool>) x.byte = bits & 1;
    else std::memcpy(static_cast<void*>(&x), &bits, sizeof x);
  }
  return out;
}

template <class T>
void check(Reduce reduce, std::size_t arrays, std::size_t count) {
  std::mt19937_64 random(count * 17 + arrays);
  std::vector<std::vector<T>> in;
  for (std::size_t a = 0; a < arrays; ++a) in.push_back(random_bits<T>(count, random));
  std::vector<std::vector<T>> out = in;
  out.emplace_back(count);
  std::vector<const std::byte*> sources;
  std::vector<std::byte*> targets;
  for (std::size_t a = 0; a < arrays; ++a) sources.push_back(reinterpret_cast<std::byte*>(out[a].data()));
  for (auto& target : out) targets.push_back(reinterpret_cast<std::byte*>(target.data()));
  reduce_in_rank_order(dtype_of_type<T>(), reduce, sources, targets, count);
  for (std::size_t i = 0; i < count; ++i) {
    const T want =
        reduced<T>(reduce, static_cast<int>(arrays), [&](int r) { return in[static_cast<std::size_t>(r)][i]; });
    for (const auto& target : out)
      ASSERT_TRUE(same(target[i], want)) << reduce << " of " << arrays << " arrays, element " << i << " of " << count;
  }
}

class CommReduce : public testing::TestWithParam<DType> {};

TEST_P(CommReduce, EqualsOneElementAtATime) {
  with_type(GetParam(), [](auto zero) {
    for (const Reduce reduce : {Reduce::kSum, Reduce::kMax, Reduce::kMin, Reduce::kProduct})
      for (const std::size_t arrays : {1, 2, 3, 8})
        for (const std::size_t count : {0, 1, 3, 16, 63, 64, 65, 257, 2000})
          check<decltype(zero)>(reduce, arrays, count);
  });
}

INSTANTIATE_TEST_SUITE_P(DTypes, CommReduce,
                         testing::Values(DType::kF32, DType::kBF16, DType::kF16, DType::kF64, DType::kI32, DType::kI64,
                                         DType::kU32, DType::kU8, DType::kBool),
                         [](const auto& info) { return std::string(weft::name_of(info.param)); });

}  // namespace
}  // namespace weft::comm::reduce_test
