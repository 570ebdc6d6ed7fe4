// Compiling CUDA source while the program runs. Needs neither a driver nor a GPU.
#pragma once

#include <string>

namespace weft::cuda {

// The PTX of the source for an architecture such as "sm_90". Sums of products are not contracted and denormals are kept,
// so that results have the bits of the CPU engine. InternalError with the compiler's log if the source is wrong.
std::string compile_to_ptx(const std::string& source, const std::string& architecture);
// The same as what a card of this architecture runs.
std::string compile_to_cubin(const std::string& source, const std::string& architecture);

std::string nvrtc_version();  // "13.0"

}  // namespace weft::cuda
