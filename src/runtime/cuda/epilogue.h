// Maps of what a product gives, computed as its kernel writes it: the product itself then is not written.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/cuda/work.h"

namespace weft::cuda {

// Statements that take element `i` of the product, row-major and a long long, from the register `a`, and write the results
// of the maps.
struct Epilogue {
  std::vector<Param> params;
  std::string text;
};

// Of `then`, a map or a fused body that reads the product's result at the same element. Nothing if it is of another kind,
// or if its results would lie where the product reads: then other blocks may still read there.
std::optional<Epilogue> epilogue_of(const Work& product, const Work& then);

}  // namespace weft::cuda
