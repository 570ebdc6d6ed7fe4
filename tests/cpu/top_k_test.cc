// The vectors' top_k against a plain sort: long lines, ties, NaN and infinities, both directions.
#include "runtime/cpu/top_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace weft::cpu::top_k_test {
namespace {

std::vector<std::int32_t> plain(const std::vector<float>& x, std::size_t k, bool ascending) {
  std::vector<std::int32_t> places(x.size());
  std::iota(places.begin(), places.end(), 0);
  const auto key = [&](std::int32_t p) {  // NaN counts as larger than infinity
    const float v = x[static_cast<std::size_t>(p)];
    return std::pair(std::isnan(v), std::isnan(v) ? 0.0F : v);
  };
  std::stable_sort(places.begin(), places.end(),
                   [&](auto a, auto b) { return ascending ? key(a) < key(b) : key(a) > key(b); });
  places.resize(k);
  return places;
}

void expect_best(const std::vector<float>& x) {
  for (const std::size_t k : {std::size_t{1}, std::size_t{2}, std::size_t{8}, kMostBest})
    for (const bool ascending : {false, true}) {
      if (k > x.size()) continue;
      std::vector<float> values(k);
      std::vector<std::int32_t> places(k);
      find_best({x.data(), x.size(), k, ascending, values.data(), places.data()});
      ASSERT_EQ(places, plain(x, k, ascending)) << "length " << x.size() << " k " << k << " ascending " << ascending;
      for (std::size_t j = 0; j < k; ++j) {
        const float want = x[static_cast<std::size_t>(places[j])];
        EXPECT_TRUE(values[j] == want || (std::isnan(values[j]) && std::isnan(want)));
      }
    }
}

TEST(TopK, EqualsAPlainSort) {
  std::mt19937 random(5);
  for (const std::size_t length : {1, 2, 15, 16, 17, 63, 64, 65, 128, 200, 1000, 8192, 8209})
    for (const int kinds : {3, 50, 1 << 20}) {  // few kinds: many ties
      std::vector<float> x(length);
      for (float& v : x) v = static_cast<float>(static_cast<int>(random() % static_cast<unsigned>(kinds))) - 7;
      expect_best(x);
    }
}

TEST(TopK, LosesNoNaNAndNoInfinity) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  std::mt19937 random(6);
  for (const int every : {2, 30, 700}) {
    std::vector<float> x(1500);
    for (float& v : x) {
      const unsigned draw = random() % static_cast<unsigned>(3 * every);
      v = draw == 0 ? kNaN : draw == 1 ? kInf : draw == 2 ? -kInf : static_cast<float>(random() % 100);
    }
    expect_best(x);
  }
  expect_best(std::vector<float>(300, kNaN));
  expect_best(std::vector<float>(300, -kInf));
}

TEST(TopK, FindsRisingAndFallingLines) {
  std::vector<float> x(2000);
  std::iota(x.begin(), x.end(), -900.0F);
  expect_best(x);
  std::reverse(x.begin(), x.end());
  expect_best(x);
}

}  // namespace
}  // namespace weft::cpu::top_k_test
