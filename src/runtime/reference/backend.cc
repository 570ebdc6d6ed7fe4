#include "runtime/reference/kernels.h"

namespace weft {

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
                                 {Sort::kName, reference::sort},
                                 {Convolve::kName, reference::convolve},
                                 {Pool::kName, reference::pool},
                                 {Random::kName, reference::random},
                                 {AxisIndex::kName, reference::axis_index},
                                 {Constant::kName, reference::constant},
                                 {Host::kName, reference::host}},
                                {{AllReduce::kName, reference::all_reduce},
                                 {ReduceScatter::kName, reference::reduce_scatter},
                                 {AllGather::kName, reference::all_gather},
                                 {AllToAll::kName, reference::all_to_all},
                                 {Permute::kName, reference::permute}}};
  return kBackend;
}

}  // namespace weft
