// Windows along dims that may be split: their sizes, and what each processor needs of its neighbours.
//
// Processors along a split dim (ranks) hold equal blocks of elements and of places. Forward, rank r needs the elements
// that its places meet: a run that starts at r * (block of places) * stride - before. Back, it needs the places that meet
// its elements; since one program serves all ranks, its elements are taken from a multiple of the stride on, so that
// windows lie alike on every rank, and what comes before its block is cut off afterwards.
#pragma once

#include <vector>

#include "ops/rules.h"
#include "weft/convolution.h"

namespace weft {

// Places along the dim; 0 if the window is longer than what it walks along.
std::int64_t places_of(const Window& w);
// UserError for sizes and steps that are not positive or too large to count, and where there is no place.
void check_window(const OpCall& call, const Window& w);
// `shape` with the dims of the windows as large as the windows' places, or as the windows' dims.
Shape with_places(Shape shape, const std::vector<Window>& windows);
Shape with_elements(Shape shape, const std::vector<Window>& windows);

// The window as an instruction on whole dims has it.
WindowDim whole_window(const Window& w);

// One window dim of an op whose dim is split over more than one processor.
class SplitWindow {
 public:
  SplitWindow(Lowering& l, const Window& w);

  const std::string& dim() const { return w_.dim.name; }

  // --- Forward ---
  // The elements that this rank's places meet, zeros outside the dim; windows then walk without padding.
  ValueId elements(ValueId x) const;
  WindowDim forward() const;
  // `elements(x)` with another number outside the dim; unchanged if all lie inside.
  ValueId filled(ValueId elements, double outside) const;

  // --- Back ---
  // The places that meet this rank's elements, zeros where there are none; and the elements from a multiple of the stride.
  ValueId places(ValueId y) const;
  ValueId aligned(ValueId x) const;
  std::int64_t aligned_size() const { return block_ + lead_; }
  WindowDim back() const;
  // The block of this rank from what was computed for its aligned elements.
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
  std::int64_t first_place_ = 0;  // of rank 0; others are block / stride further each
};

}  // namespace weft
