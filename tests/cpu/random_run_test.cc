// Runs of random numbers on vectors are those of the scalar formula, to the bit, wherever a run begins.
#include "runtime/cpu/random_run.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/dispatch.h"
#include "runtime/host/strided.h"
#include "runtime/host/views.h"
#include "runtime/random.h"

namespace weft::cpu::random_run_test {
namespace {

const std::vector<Distribution> kDistributions = {Distribution::kUniform, Distribution::kNormal,
                                                  Distribution::kTruncatedNormal, Distribution::kBernoulli,
                                                  Distribution::kBits};

double number_of(const RandomRun& run, std::uint64_t element) {
  return deviate(philox_word(run.key, element, run.step, run.iteration), run.distribution, run.a, run.b);
}

TEST(RandomRun, IsTheScalarFormulaToTheBit) {
  for (const Distribution distribution : kDistributions)
    for (const std::uint64_t first : std::vector<std::uint64_t>{0, 3, 1ull << 33, (1ull << 34) + 5})
      for (const std::size_t count : {1u, 2u, 31u, 33u, 1000u, 1024u}) {
        const RandomRun run{0x1234567890abcdefu + first, 7, 2, distribution, 0.25, 1.75};
        RandomRoom room;
        const double* got = random_run(run, first, count, room);
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_EQ(got[i], number_of(run, first + i)) << "element " << first << " + " << i;
      }
}

// All draws far from the middle, and many near it: 2^20 numbers.
TEST(RandomRun, IsTheScalarFormulaForManyDraws) {
  for (const Distribution distribution : {Distribution::kNormal, Distribution::kTruncatedNormal}) {
    const RandomRun run{42, 0, 0, distribution, 0, 1};
    RandomRoom room;
    for (std::uint64_t first = 0; first < (1u << 20); first += kRandomChunk) {
      const double* got = random_run(run, first, kRandomChunk, room);
      for (std::size_t i = 0; i < kRandomChunk; ++i) ASSERT_EQ(got[i], number_of(run, first + i));
    }
  }
}

struct Filled {
  std::vector<std::byte> bytes;
  TensorView view;
  Filled(const Shape& shape, DType dtype)
      : bytes(static_cast<std::size_t>(shape.elements()) * size_of(dtype)),
        view(dense_view(bytes.data(), dtype, shape)) {}
};

void expect_elements(const TensorView& view, const RandomRun& run, std::size_t d = 0, std::uint64_t element = 0,
                     std::int64_t offset = 0) {
  if (d < view.shape.rank()) {
    for (std::int64_t i = 0; i < view.shape[d].size; ++i)
      expect_elements(
          view, run, d + 1,
          element * static_cast<std::uint64_t>(view.whole[d]) + static_cast<std::uint64_t>(view.begin[d] + i),
          offset + i * view.strides[d]);
    return;
  }
  visit_dtype(view.dtype, [&]<class T>() {
    const T got = static_cast<const T*>(view.data)[offset], want = from_double<T>(number_of(run, element));
    ASSERT_EQ(std::memcmp(&got, &want, sizeof(T)), 0) << "element " << element << " of " << view.dtype;
  });
}

// A shard of a tensor, dense or a slice of something larger, has the elements that the whole has there.
TEST(RandomFill, FillsShardsAndSlices) {
  const RandomRun run{99, 0, 0, Distribution::kTruncatedNormal, 0, 3};
  for (const int count : {1, 2, 3})
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kI32}) {
      Workers workers(count);
      Filled whole({{"a", 6}, {"b", 40}, {"c", 70}}, dtype);
      RandomFill(whole.view).fill(run, false, workers);
      expect_elements(whole.view, run);
      Filled shard({{"a", 3}, {"b", 20}, {"c", 70}}, dtype);
      shard.view.begin = {3, 10, 0};
      shard.view.whole = {6, 40, 70};
      RandomFill(shard.view).fill(run, false, workers);
      expect_elements(shard.view, run);
      Filled around({{"a", 5}, {"s", 4}, {"b", 30}, {"t", 2}}, dtype);  // s = 2, t = 1 of it
      TensorView slice = around.view;
      slice.data = around.bytes.data() + (2 * 60 + 1) * size_of(dtype);
      slice.shape = {{"a", 5}, {"b", 30}};
      slice.strides = {240, 2};
      slice.begin = {5, 0};
      slice.whole = {10, 30};
      RandomFill(slice).fill(run, false, workers);
      expect_elements(slice, run);
    }
}

TEST(RandomFill, StaysBelowTheEndOfARange) {
  Workers workers(1);
  Filled filled({{"a", 1 << 16}}, DType::kBF16);
  RandomFill(filled.view).fill({3, 0, 0, Distribution::kUniform, 0, 1}, true, workers);
  for (std::int64_t i = 0; i < filled.view.shape.elements(); ++i)
    ASSERT_LT(static_cast<float>(static_cast<const BF16*>(filled.view.data)[i]), 1);
}

}  // namespace
}  // namespace weft::cpu::random_run_test
