// The CUDA engine as the rest of Weft sees it: a library that is opened when it is first asked for. Without the CUDA
// toolkit the build has absent.cc in place of open.cc.
#pragma once

#include <string>

namespace weft {

class Engine;

struct CudaLibrary {
  const Engine* engine = nullptr;  // null: it cannot be used
  std::string found = {};          // the card and the versions of its libraries, or why it cannot be used
  std::string fix = {};            // what to do if it cannot
};

// Opens the library at the first call. From any thread.
const CudaLibrary& cuda_library();

}  // namespace weft
