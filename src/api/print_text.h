// The text of an array for print().
#pragma once

#include <string>

#include "weft/array.h"

namespace weft {

// The label, dtype and shape, and the first numbers.
std::string print_text(const std::string& label, const Array& array);

}  // namespace weft
