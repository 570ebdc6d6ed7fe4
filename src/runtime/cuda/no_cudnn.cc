// Without the headers of cuDNN.
#include "runtime/cuda/cudnn.h"

namespace weft::cuda {

const SdpaPlan* sdpa_plan(const Sdpa&) { return nullptr; }
std::string sdpa_refusal(const Sdpa&) { return describe_cudnn(); }
std::string describe_cudnn() { return "no cuDNN (its headers were not there when this was built: run scripts/setup)"; }
bool has_cudnn() { return false; }

}  // namespace weft::cuda
