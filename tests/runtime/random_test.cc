// Philox against the published answers, and the distributions against their moments.
#include "runtime/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace weft::random_test {
namespace {

// From the known-answer tests of Random123 (philox4x32, 10 rounds).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0), (PhiloxWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff),
            (PhiloxWords{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (PhiloxWords{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// Element i takes word i mod 4 of counter (i / 4: 64 bits, step, iteration).
TEST(Philox, WordsOfElements) {
  const std::uint64_t far = (std::uint64_t{5} << 34) + 3;
  EXPECT_EQ(philox_word(9, far, 7, 2), philox({std::uint32_t(far / 4), std::uint32_t(far / 4 >> 32), 7, 2}, 9)[3]);
  EXPECT_EQ(far / 4 >> 32, 5u);
  std::set<std::uint32_t> words;
  for (std::uint64_t element = 0; element < 1000; ++element)
    for (std::uint32_t step = 0; step < 3; ++step) words.insert(philox_word(1, element, step));
  EXPECT_GE(words.size(), 2998u);  // 3000 draws of 32 bits hardly ever meet
}

TEST(Philox, KeysDifferByNameOrdinalAndSeed) {
  std::set<std::uint64_t> keys;
  for (const char* name : {"a", "b", "ab", "ba", "layer/dropout"})
    for (int ordinal = 0; ordinal < 4; ++ordinal)
      for (std::uint64_t seed = 0; seed < 4; ++seed) keys.insert(seeded(hash_key(name, ordinal), seed));
  EXPECT_EQ(keys.size(), 5u * 4 * 4);
}

// Every 16th of all 2^24 draws, so that the moments are integrals and not samples.
struct Moments {
  double mean = 0, variance = 0, fourth = 0, least = INFINITY, most = -INFINITY;

  Moments(Distribution distribution, double a, double b) {
    constexpr std::uint32_t kStep = 16, kCount = (1u << 24) / kStep;
    const auto draw = [&](std::uint32_t i) { return deviate((i * kStep + kStep / 2) << 8, distribution, a, b); };
    for (std::uint32_t i = 0; i < kCount; ++i) {
      const double x = draw(i);
      mean += x / kCount;
      least = std::min(least, x);
      most = std::max(most, x);
    }
    for (std::uint32_t i = 0; i < kCount; ++i) {
      const double d = draw(i) - mean;
      variance += d * d / kCount;
      fourth += d * d * d * d / kCount;
    }
  }
};

TEST(Deviate, Uniform) {
  const Moments m(Distribution::kUniform, -1, 3);
  EXPECT_NEAR(m.mean, 1, 1e-5);
  EXPECT_NEAR(m.variance, 16.0 / 12, 1e-5);
  EXPECT_EQ(deviate(0, Distribution::kUniform, -1, 3), -1);
  EXPECT_EQ(deviate(0xffffffff, Distribution::kUniform, -1, 3), 3 - 0x1p-22);
}

TEST(Deviate, Normal) {
  const Moments m(Distribution::kNormal, 5, 2);
  EXPECT_NEAR(m.mean, 5, 1e-5);
  EXPECT_NEAR(m.variance, 4, 1e-4);
  EXPECT_NEAR(m.fourth / (m.variance * m.variance), 3, 1e-3);
  // Symmetric to the bit: no draw is favoured by rounding.
  for (const std::uint32_t word : {0u, 1000u << 8, 0x12345600u})
    EXPECT_EQ(deviate(word, Distribution::kNormal, 0, 1), -deviate(0xffffff00u - word, Distribution::kNormal, 0, 1));
}

TEST(Deviate, TruncatedNormal) {
  const Moments m(Distribution::kTruncatedNormal, 1, 3);
  const double deviation = 0.87962566103423978 * 3;
  EXPECT_NEAR(m.mean, 1, 1e-5);
  EXPECT_NEAR(m.variance, deviation * deviation, 1e-4);
  EXPECT_GE(deviate(0, Distribution::kTruncatedNormal, 1, 3), -5);
  EXPECT_LE(deviate(0xffffffff, Distribution::kTruncatedNormal, 1, 3), 7);
  EXPECT_LT(m.least, -4.99);
  EXPECT_GT(m.most, 6.99);
}

TEST(Deviate, BernoulliComparesIntegers) {
  const Moments m(Distribution::kBernoulli, 0.25, 0);
  EXPECT_EQ(m.mean, 0.25);
  EXPECT_EQ(deviate(0xffffffff, Distribution::kBernoulli, 1, 0), 1);
  EXPECT_EQ(deviate(0, Distribution::kBernoulli, 0, 0), 0);
  EXPECT_EQ(deviate(0x40000000 - 1, Distribution::kBernoulli, 0.25, 0), 1);
  EXPECT_EQ(deviate(0x40000000, Distribution::kBernoulli, 0.25, 0), 0);
}

TEST(Deviate, BitsAreTheWord) { EXPECT_EQ(deviate(0xdeadbeef, Distribution::kBits, 0, 0), 0xdeadbeef); }

}  // namespace
}  // namespace weft::random_test
