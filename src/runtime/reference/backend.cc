#include "runtime/reference/kernels.h"

namespace weft {

namespace {

using Maker = std::function<Kernel(const KernelArgs&)>;

// A kernel of one operand and result, for several one after another.
Maker each(Maker make) {
  return [make](const KernelArgs& args) -> Kernel {
    if (args.inputs.size() == 1) return make(args);
    std::vector<Kernel> kernels;
    for (std::size_t i = 0; i < args.inputs.size(); ++i) {
      KernelArgs one = args;
      one.inputs = {args.inputs[i]};
      one.outputs = {args.outputs[i]};
      kernels.push_back(make(one));
    }
    return [kernels](const StepState& state) {
      for (const Kernel& kernel : kernels) kernel(state);
    };
  };
}

}  // namespace

const Backend& reference_backend() {
  static const Backend kBackend{"reference",
                                {{Map::kName, reference::map},
                                 {Contract::kName, reference::contract},
                                 {ReduceDims::kName, reference::reduce},
                                 {Copy::kName, reference::copy},
                                 {Concat::kName, reference::concat},
                                 {Take::kName, reference::take},
                                 {Put::kName, reference::put},
                                 {Gather::kName, reference::gather},
                                 {ScatterAdd::kName, reference::scatter_add},
                                 {Scan::kName, reference::scan},
                                 {TopK::kName, reference::top_k},
                                 {Random::kName, reference::random},
                                 {AxisIndex::kName, reference::axis_index},
                                 {Constant::kName, reference::constant},
                                 {Host::kName, reference::host},
                                 {AllReduce::kName, reference::all_reduce},
                                 {ReduceScatter::kName, each(reference::reduce_scatter)},
                                 {AllGather::kName, each(reference::all_gather)},
                                 {AllToAll::kName, reference::all_to_all},
                                 {Permute::kName, reference::permute}}};
  return kBackend;
}

}  // namespace weft
