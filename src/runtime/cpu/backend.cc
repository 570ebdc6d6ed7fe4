#include "runtime/cpu/kernels.h"

namespace weft {

// What is not named here is the reference's: it moves few bytes, or none.
const Backend& cpu_backend() {
  static const Backend kBackend = [] {
    Backend backend = reference_backend();
    backend.name = "cpu";
    backend.makers[Contract::kName] = cpu::contract;
    backend.makers[Attend::kName] = cpu::attend;
    backend.makers[AttendBack::kName] = cpu::attend_back;
    backend.makers[Fused::kName] = cpu::fused;
    backend.makers[Map::kName] = cpu::map;
    backend.makers[ReduceDims::kName] = cpu::reduce;
    return backend;
  }();
  return kBackend;
}

}  // namespace weft
