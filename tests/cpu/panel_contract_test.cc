// Contractions with a second operand in panels, against plain sums: every dtype, sizes around the borders of blocks, one
// worker and several.
#include "runtime/cpu/panel_contract.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/dispatch.h"
#include "language/shape_math.h"

namespace weft::cpu {
namespace {

template <class T>
std::vector<T> numbers(std::int64_t count, std::mt19937& random) {
  std::uniform_int_distribution<int> draw(-127, 127);
  std::vector<T> all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(from_double<T>(draw(random) / (sizeof(T) == 1 ? 1.0 : 64.0)));
  return all;
}

template <class T>
TensorView view_of(std::vector<T>& data, const Shape& shape) {
  return {data.data(), kDTypeOf<T>, shape, dense_strides(shape), {}, {}};
}

// x [rows, k, word], y [panels, k, 16, word], out [rows, panels, 16].
template <class In, class Out>
void expect_product(std::int64_t rows, std::int64_t panels, std::int64_t words, int workers) {
  constexpr std::int64_t kWord = 4 / sizeof(In);
  std::mt19937 random(static_cast<unsigned>(rows * 7919 + panels * 31 + words));
  auto x = numbers<In>(rows * words * kWord, random), y = numbers<In>(panels * words * 16 * kWord, random);
  std::vector<Out> out(static_cast<std::size_t>(rows * panels * 16), Out{5});
  const Shape word = kWord > 1 ? Shape{{"word", kWord}} : Shape{};
  const TensorView of_x = view_of(x, Shape{{"rows", rows}, {"k", words}}.plus(word)),
                   of_y = view_of(y, Shape{{"panels", panels}, {"k", words}, {"lanes", 16}}.plus(word)),
                   of_out = view_of(out, {{"rows", rows}, {"panels", panels}, {"lanes", 16}});
  std::optional<PanelForm> form = panel_form(of_x, of_y, of_out);
  ASSERT_TRUE(form) << rows << " " << panels << " " << words;
  Workers team(workers);
  PanelContraction contraction(*form, of_x, of_y, of_out, team);
  contraction.run();
  contraction.run();                                     // repeats: nothing is added to
  constexpr double kError = sizeof(In) == 1 ? 0 : 1e-6;  // integers are exact
  const auto number = [](const auto& all, std::int64_t i) { return to_double(all[static_cast<std::size_t>(i)]); };
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t n = 0; n < panels * 16; ++n) {
      double sum = 0, size = 1;
      for (std::int64_t k = 0; k < words * kWord; ++k) {
        const std::int64_t at = ((n / 16 * words + k / kWord) * 16 + n % 16) * kWord + k % kWord;
        const double term = number(x, r * words * kWord + k) * number(y, at);
        sum += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(number(out, r * panels * 16 + n), sum, kError * size)
          << name_of(kDTypeOf<In>) << ", " << rows << " rows, " << panels << " panels, " << words << " words, row " << r
          << ", column " << n;
    }
}

TEST(PanelContraction, EqualsPlainSums) {
  if (panel_lanes() == 0) GTEST_SKIP() << "the CPU has no AVX-512 with products of bf16 and i8";
  for (const std::int64_t rows : {2, 5, 6, 7, 8, 13, 49, 100})
    for (const auto& [panels, words] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{2, 2}, {3, 5}, {4, 64}, {5, 33}, {7, 1025}, {9, 16}})
      for (const int workers : {1, 3}) {
        expect_product<float, float>(rows, panels, words, workers);
        expect_product<BF16, float>(rows, panels, words, workers);
        expect_product<std::int8_t, std::int32_t>(rows, panels, words, workers);
      }
}

TEST(PanelContraction, OtherOrdersAreNoPanels) {
  std::vector<float> x(6 * 32), y(32 * 64), out(6 * 64);
  const TensorView of_x = view_of(x, {{"rows", 6}, {"k", 32}}),
                   of_out = view_of(out, {{"rows", 6}, {"panels", 4}, {"lanes", 16}});
  EXPECT_FALSE(panel_form(of_x, view_of(y, {{"k", 32}, {"panels", 4}, {"lanes", 16}}), of_out));
  EXPECT_FALSE(panel_form(of_x, view_of(y, {{"panels", 4}, {"lanes", 16}, {"k", 32}}), of_out));
}

}  // namespace
}  // namespace weft::cpu
