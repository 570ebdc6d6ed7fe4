// The CUDA engine as the rest of Weft sees it: a library that is opened when it is first asked for. Without the CUDA
// toolkit the build has absent.cc in place of open.cc.
#pragma once

#include <memory>
#include <string>

#include "comm/wire.h"

namespace weft {

class Engine;

struct CudaLibrary {
  const Engine* engine = nullptr;  // null: there is none; without a card it compiles and explains, and runs nothing
  const Engine* nondeterministic = nullptr;  // likewise, with sums in any order where that is faster
  // Likewise, for processors that have a card each, in a process each, joined by the wire nccl.
  const Engine* over_nccl = nullptr;
  const Engine* nondeterministic_over_nccl = nullptr;
  std::unique_ptr<comm::Wire> (*make_nccl_wire)(int processors) = nullptr;  // null: there is no engine
  std::string nccl = {};                                                    // the version of NCCL, or why there is none
  bool has_card = false;                                                    // that programs can run on
  std::string found = {};  // the card and the versions of its libraries, or why no program can run
  std::string fix = {};    // what to do then
};

// Opens the library at the first call. From any thread.
const CudaLibrary& cuda_library();

// UserError: why the device cannot be used. `instead`: what else would do, before what the library says.
[[noreturn]] void refuse_cuda(const std::string& where, const std::string& instead = {});

}  // namespace weft
