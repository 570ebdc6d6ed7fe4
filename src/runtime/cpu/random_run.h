// Random numbers in runs, on vectors: the same bits as runtime/random.h. The number of an element depends on the key,
// the step, the iteration and the element's place in the whole tensor, and on nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "program/ir.h"
#include "runtime/host/kernel.h"

namespace weft::cpu {

struct RandomRun {
  std::uint64_t key = 0;  // under the seed
  std::uint32_t step = 0, iteration = 0;
  Distribution distribution = Distribution::kUniform;
  double a = 0, b = 1;
};

constexpr std::size_t kRandomChunk = 1024;

// Memory for one chunk, in whole vectors.
struct RandomRoom {
  alignas(64) double numbers[kRandomChunk + 64];
};

// The numbers of elements `first` … `first` + count, count <= kRandomChunk, somewhere in the room.
const double* random_run(const RandomRun& run, std::uint64_t first, std::size_t count, RandomRoom& room);

// Fills a view, whose begin and whole sizes say which elements of the whole tensor it has.
class RandomFill {
 public:
  explicit RandomFill(const TensorView& out);

  // The workers share the elements. With `stays_below` no number of [a, b) is rounded to b.
  void fill(const RandomRun& run, bool stays_below, Workers& workers) const;

 private:
  // A dim, or several that lie like one both in the view and in the whole tensor.
  struct Loop {
    std::int64_t size = 1, whole = 0, out = 0;
  };
  template <class T>
  void fill_as(const RandomRun& run, Share share, bool stays_below) const;

  void* data_;
  DType dtype_;
  std::int64_t elements_ = 1, begin_ = 0;
  std::vector<Loop> outer_;  // outermost first
  Loop inner_;
};

}  // namespace weft::cpu
