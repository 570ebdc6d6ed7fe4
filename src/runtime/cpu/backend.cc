#include "runtime/cpu/kernels.h"
#include "runtime/strided.h"

namespace weft {

namespace {

std::int64_t workspace_bytes(const Program& program, const Instr& instr,
                             const std::vector<std::vector<std::int64_t>>& strides) {
  const auto input = [&](std::size_t i) { return unplaced_view(program, instr.inputs[i], strides); };
  const auto output = [&] { return unplaced_view(program, instr.outputs[0], strides); };
  std::optional<std::int64_t> bytes;
  if (instr.is<Contract>()) bytes = cpu::contract_bytes(input(0), input(1), output());
  if (const auto* work = instr.as<ScatterAdd>()) bytes = cpu::scatter_bytes(input(0), input(1), output(), work->dim);
  return bytes ? *bytes : reference_backend().workspace_bytes(program, instr, strides);
}

}  // namespace

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
    backend.workspace_bytes = workspace_bytes;
    return backend;
  }();
  return kBackend;
}

}  // namespace weft
