// The text that stands before all kernels: pointwise functions, stored types, joins over threads, random numbers.
#pragma once

#include <string>

namespace weft::cuda {

std::string kernel_prelude();
// The part of it for steps of decoding.
std::string decode_prelude();

}  // namespace weft::cuda
