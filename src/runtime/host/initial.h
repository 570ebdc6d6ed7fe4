// Initial values of variables.
#pragma once

#include <string>

#include "runtime/host/kernel.h"
#include "weft/array.h"
#include "weft/graph.h"

namespace weft {

// A variable's first values, by its name and the seed alone; `out` is a shard of it, of zeros, that the workers share.
void fill_initial(const TensorView& out, const std::string& name, const Init& init, std::uint64_t seed,
                  Workers& workers);
Array initial_value(const std::string& name, const Init& init, const Shape& shape, DType dtype, std::uint64_t seed);

}  // namespace weft
