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
    backend.makers[Copy::kName] = cpu::copy;
    backend.makers[Concat::kName] = cpu::concat;
    backend.makers[Take::kName] = cpu::take;
    backend.makers[Put::kName] = cpu::put;
    backend.makers[Gather::kName] = cpu::gather;
    backend.makers[ScatterAdd::kName] = cpu::scatter_add;
    backend.makers[Random::kName] = cpu::random;
    backend.makers[Scan::kName] = cpu::scan;
    backend.makers[Sort::kName] = cpu::sort;
    backend.makers[Convolve::kName] = cpu::convolve;
    backend.makers[Pool::kName] = cpu::pool;
    return backend;
  }();
  return kBackend;
}

}  // namespace weft
