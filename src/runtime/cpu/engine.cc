#include "runtime/cpu/kernels.h"
#include "runtime/host/host_engine.h"
#include "runtime/host/kernels.h"
#include "runtime/host/strided.h"
#include "runtime/reference/kernels.h"

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
  return bytes ? *bytes : reference::wide_bytes(program, instr) + host::packing_bytes(program, instr, strides);
}

KernelTable cpu_table() {
  return with_common_kernels({{Map::kName, cpu::map},
                              {Contract::kName, cpu::contract},
                              {ReduceDims::kName, cpu::reduce},
                              {Copy::kName, cpu::copy},
                              {Concat::kName, cpu::concat},
                              {DynamicSlice::kName, cpu::take},
                              {DynamicUpdate::kName, cpu::put},
                              {Gather::kName, cpu::gather},
                              {ScatterAdd::kName, cpu::scatter_add},
                              {Scan::kName, cpu::scan},
                              {Sort::kName, cpu::sort},
                              {Convolve::kName, cpu::convolve},
                              {Pool::kName, cpu::pool},
                              {Attend::kName, cpu::attend},
                              {AttendBack::kName, cpu::attend_back},
                              {Random::kName, cpu::random},
                              {Fused::kName, cpu::fused}});
}

}  // namespace

const HostEngine& cpu_engine() {
  static const HostEngine engine("cpu", cpu_table(), {.fuses = true, .workspace_bytes = workspace_bytes}, true);
  return engine;
}

}  // namespace weft
