#include "runtime/host/host_engine.h"
#include "runtime/host/kernels.h"
#include "runtime/reference/kernels.h"

namespace weft {

namespace {

KernelTable reference_table() {
  return with_common_kernels({{Map::kName, reference::map},
                              {Contract::kName, reference::contract},
                              {ReduceDims::kName, reference::reduce},
                              {Copy::kName, reference::copy},
                              {Concat::kName, reference::concat},
                              {DynamicSlice::kName, reference::take},
                              {DynamicUpdate::kName, reference::put},
                              {Gather::kName, reference::gather},
                              {ScatterAdd::kName, reference::scatter_add},
                              {Scan::kName, reference::scan},
                              {Sort::kName, reference::sort},
                              {Convolve::kName, reference::convolve},
                              {Pool::kName, reference::pool},
                              {Attend::kName, reference::attend},
                              {AttendBack::kName, reference::attend_back},
                              {Random::kName, reference::random}});
}

}  // namespace

std::int64_t reference::wide_bytes(const Program& program, const Instr& instr) {
  const auto wide = [&](ValueId id) {
    return aligned_bytes(program.values[static_cast<std::size_t>(id)].shape.elements() * std::int64_t{sizeof(double)});
  };
  if (instr.is<Contract>()) return wide(instr.inputs[0]) + wide(instr.inputs[1]) + wide(instr.outputs[0]);
  if (instr.is<ScatterAdd>()) return wide(instr.outputs[0]);
  return 0;
}

const HostEngine& reference_engine() {
  static const HostEngine engine("reference", reference_table(),
                                 {.workspace_bytes =
                                      [](const Program& program, const Instr& instr, const auto& strides) {
                                        return reference::wide_bytes(program, instr) +
                                               host::packing_bytes(program, instr, strides);
                                      }},
                                 false);
  return engine;
}

}  // namespace weft
