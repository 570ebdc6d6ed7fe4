#include "runtime/reference/kernels.h"

namespace weft {

namespace {

using Maker = std::function<BoundCollective(const KernelArgs&)>;

// A collective of one operand and result, for several one after another.
Maker each(const Maker& make) {
  return [make](const KernelArgs& args) -> BoundCollective {
    if (args.inputs.size() == 1) return make(args);
    std::vector<Kernel> starts, dones;
    for (std::size_t i = 0; i < args.inputs.size(); ++i) {
      KernelArgs one = args;
      one.inputs = {args.inputs[i]};
      one.outputs = {args.outputs[i]};
      BoundCollective talk = make(one);
      starts.push_back(std::move(talk.start));
      dones.push_back(std::move(talk.done));
    }
    const auto all = [](const std::vector<Kernel>& kernels) -> Kernel {
      return [kernels](const StepState& state) {
        for (const Kernel& kernel : kernels) kernel(state);
      };
    };
    return {all(starts), all(dones)};
  };
}

}  // namespace

const Engine& reference_engine() {
  static const Engine kBackend{"reference",
                               {{Map::kName, reference::map},
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
                                {Random::kName, reference::random},
                                {AxisIndex::kName, reference::axis_index},
                                {Constant::kName, reference::constant},
                                {Host::kName, reference::host}},
                               {{AllReduce::kName, reference::all_reduce},
                                {ReduceScatter::kName, each(reference::reduce_scatter)},
                                {AllGather::kName, each(reference::all_gather)},
                                {AllToAll::kName, reference::all_to_all},
                                {Permute::kName, reference::permute}},
                               reference::workspace_bytes};
  return kBackend;
}

}  // namespace weft
