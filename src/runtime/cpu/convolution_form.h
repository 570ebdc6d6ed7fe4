// A convolution seen as oneDNN sees it: one batch, groups, channels, and up to three spatial dims.
#pragma once

#include <optional>
#include <vector>

#include "runtime/host/kernel.h"
#include "runtime/cpu/convolution.h"

namespace weft::cpu {

struct ConvolutionForm {
  ConvolutionShape shape;
  std::int64_t x_offset = 0;  // of the first element that a window can meet
  bool leaves_out = false;    // some elements of x are outside the shape: they meet nothing
};

// None for what stays with the reference: dtypes but f32 and bf16; no window or more than three; windows all of whose taps
// are in the padding; batch, channels or groups of several dims that do not lie like one.
std::optional<ConvolutionForm> convolution_form(const Convolve& operation, const TensorView& x, const TensorView& y,
                                                const TensorView& filter);

}  // namespace weft::cpu
