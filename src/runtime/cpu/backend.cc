#include "runtime/cpu/kernels.h"

namespace weft {

// What is not named here is the reference's: it moves few bytes, or none.
const Backend& cpu_backend() {
  static const Backend kBackend = [] {
    Backend backend = reference_backend();
    backend.name = "cpu";
    backend.makers[Contract::kName] = cpu::contract;
    return backend;
  }();
  return kBackend;
}

}  // namespace weft
