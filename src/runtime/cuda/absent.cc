#include "runtime/cuda/open.h"

namespace weft {

const CudaLibrary& cuda_library() {
  static const CudaLibrary kAbsent{.found = "this build of Weft has no CUDA engine",
                                   .fix = "install the CUDA toolkit and build Weft again, or use --device cpu"};
  return kAbsent;
}

}  // namespace weft
