// Windows along dims that may be split: their sizes, and the elements that each processor needs from its neighbours.
//
// Processors along a split dim (ranks) hold equal blocks of elements and of output positions ("places"). Forward, rank
// r needs the elements that its places read: a range that starts at r * (block of places) * stride - before. Backward,
// it needs the places that read its elements. One program serves all ranks, so the range of elements starts at a
// multiple of the stride: windows then have the same alignment on every rank. The elements before the rank's block are
// cut off afterwards.
#pragma once

#include <vector>

#include "ops/rules.h"
#include "weft/convolution.h"

namespace weft {

// The number of places along the dim; 0 if the window is longer than the padded dim.
std::int64_t places_of(const Window& w);
// UserError for sizes and steps that are not positive or too large to count, and for windows without a place.
void check_window(const OpCall& call, const Window& w);
// `shape` with the sizes of the window dims replaced by the number of places, or by the sizes of the windows' dims.
Shape with_places(Shape shape, const std::vector<Window>& windows);
Shape with_elements(Shape shape, const std::vector<Window>& windows);

// The window of an instruction on unsplit dims.
WindowDim whole_window(const Window& w);

// One window dim of an op whose dim is split over more than one processor.
class SplitWindow {
 public:
  SplitWindow(Lowering& l, const Window& w);

  const std::string& dim() const { return w_.dim.name; }

  // --- Forward ---
  // The elements that this rank's places read, zeros outside the dim; windows then need no padding.
  ValueId elements(ValueId x) const;
  WindowDim forward() const;
  // `elements(x)` with another number outside the dim; unchanged if the range is inside the dim.
  ValueId filled(ValueId elements, double outside) const;

  // --- Backward ---
  // The places that read this rank's elements, zeros if there are none; and the elements from a multiple of the stride.
  ValueId places(ValueId y) const;
  ValueId aligned(ValueId x) const;
  std::int64_t aligned_size() const { return block_ + lead_; }
  WindowDim back() const;
  // The block of this rank from the result for its aligned elements.
  ValueId cut(ValueId x) const;

 private:
  ValueId run(ValueId x, std::int64_t size, std::int64_t length,
              const std::function<std::int64_t(std::int64_t)>& start) const;
  std::int64_t reach() const { return (places_block_ - 1) * w_.stride + (w_.filter.size - 1) * w_.dilation + 1; }

  Builder& b_;
  Window w_;
  const Axes& axes_;
  std::int64_t ranks_, block_, places_block_;
  std::int64_t lead_ = 0;         // the longest distance from a multiple of the stride to a block
  std::int64_t first_place_ = 0;  // of rank 0; each next rank is block / stride further
};

}  // namespace weft
