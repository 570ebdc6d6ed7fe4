// The search for numbers that are none.
#pragma once

#include <string>

#include "runtime/backend.h"

namespace weft {

// "nan at [batch=3 vocab=17]", in the indices of the whole tensor, for the first element of a float view that is not
// finite; "" if there is none.
std::string not_finite(const TensorView& view);

}  // namespace weft
