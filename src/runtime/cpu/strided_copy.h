// Any strided move, shared by the workers: runs of memory by memcpy, transpositions by blocks, the rest one by one.
#pragma once

#include <vector>

#include "runtime/host/kernel.h"
#include "runtime/host/workers.h"

namespace weft::cpu {

// to = from, dims matched by name; a dim that `from` lacks is repeated. Running it allocates nothing.
class StridedCopy {
 public:
  StridedCopy(const TensorView& from, const TensorView& to);

  // With source and target so many elements further on.
  void run(Workers& workers, std::int64_t from_offset = 0, std::int64_t to_offset = 0) const;
  // Likewise, by the calling worker alone.
  void run_alone(std::int64_t from_offset, std::int64_t to_offset) const {
    run_part({0, tasks_}, from_offset, to_offset);
  }
  // Whether so many of these copies are worth waking the workers for.
  bool is_shared(std::int64_t copies = 1) const;

 private:
  struct Loop {
    std::int64_t size = 1, from = 0, to = 0;  // strides, in elements
  };
  void run_part(Share tasks, std::int64_t from_offset, std::int64_t to_offset) const;
  void run_task(const std::byte* from, std::byte* to, std::int64_t piece) const;

  const std::byte* from_;
  std::byte* to_;
  std::int64_t bytes_;       // of an element
  bool in_place_ = false;    // it lies there already
  std::vector<Loop> outer_;  // outermost first
  Loop across_;              // of a transposition: side by side in the source
  Loop inner_;               // side by side in the target
  bool transposes_ = false;
  std::int64_t pieces_ = 1, piece_ = 1;  // of the inner loop, or of `across_`
  std::int64_t tasks_ = 1;
};

// to[c * to_stride + r] = from[r * from_stride + c] for r < rows, c < cols; elements of `bytes` 1, 2, 4 or 8.
void transpose(const std::byte* from, std::int64_t from_stride, std::byte* to, std::int64_t to_stride,
               std::int64_t rows, std::int64_t cols, std::int64_t bytes);

}  // namespace weft::cpu
