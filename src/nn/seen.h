// Variables as a layer sees them.
#pragma once

#include "weft/nn.h"

namespace weft::nn {

// Stored as asked, seen in the dtype of x.
inline VariableOptions seen_as(const Tensor& x, VariableOptions options) {
  options.activation = x.dtype();
  return options;
}

}  // namespace weft::nn
