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
  if (const auto* operation = instr.as<ScatterAdd>())
    bytes = cpu::scatter_bytes(input(0), input(1), output(), operation->dim);
  return bytes ? *bytes : reference_engine().workspace_bytes(program, instr, strides);
}

}  // namespace

// What is not named here is the reference's: it moves few bytes, or none.
const Engine& cpu_engine() {
  static const Engine kBackend = [] {
    Engine engine = reference_engine();
    engine.name = "cpu";
    engine.makers[Contract::kName] = cpu::contract;
    engine.makers[Attend::kName] = cpu::attend;
    engine.makers[AttendBack::kName] = cpu::attend_back;
    engine.makers[Fused::kName] = cpu::fused;
    engine.makers[Map::kName] = cpu::map;
    engine.makers[ReduceDims::kName] = cpu::reduce;
    engine.makers[Copy::kName] = cpu::copy;
    engine.makers[Concat::kName] = cpu::concat;
    engine.makers[DynamicSlice::kName] = cpu::take;
    engine.makers[DynamicUpdate::kName] = cpu::put;
    engine.makers[Gather::kName] = cpu::gather;
    engine.makers[ScatterAdd::kName] = cpu::scatter_add;
    engine.makers[Random::kName] = cpu::random;
    engine.makers[Scan::kName] = cpu::scan;
    engine.makers[Sort::kName] = cpu::sort;
    engine.makers[Convolve::kName] = cpu::convolve;
    engine.makers[Pool::kName] = cpu::pool;
    engine.workspace_bytes = workspace_bytes;
    return engine;
  }();
  return kBackend;
}

}  // namespace weft
