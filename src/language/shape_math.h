// Functions of dims and shapes for the rooms of src, besides weft/dim.h.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/dim.h"

namespace weft {

// Names that begin with it are reserved for dims inside the library's functions, so that they never equal a name of a
// program. Graphs and layouts refuse these names.
constexpr char kOwnDim = '#';
constexpr bool is_own_dim(std::string_view name) { return name.starts_with(kOwnDim); }

std::vector<std::int64_t> dense_strides(const Shape& shape);  // of the row-major order
double volume(const Shape& shape);  // the product of the sizes as a double, for example the flops of a contraction

}  // namespace weft
