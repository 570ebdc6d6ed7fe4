// What libweft_cuda.so exports.
#pragma once

#include "runtime/cuda/open.h"

namespace weft {

constexpr const char* kCudaEntry = "weft_cuda_engine_1";
using CudaEntry = void (*)(CudaLibrary& library);

}  // namespace weft
