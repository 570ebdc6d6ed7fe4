// The pointwise functions as CUDA source, for NVRTC: kernels are generated as text behind it and compiled with it. In
// namespace weft, weft::bodies::tanh()(x) is the function of a float, a double or a vmath::Wrapped<int> or <long long>;
// truths are bool. Compile with --std=c++20 --fmad=false, and results have the bits of the CPU engine, but for exp of f32
// and functions that are made of it (tanh, sigmoid, gelu, …): these take the card's exponential, within the same bounds.
#pragma once

#include <string>

namespace weft {

std::string cuda_pointwise_source();

}  // namespace weft
