// The groups of a mesh's axes, and what collectives take in them.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "plan/wire_cost.h"

namespace weft {

using AxisSet = std::uint32_t;  // bit i: axis i

class MeshGroups {
 public:
  MeshGroups(const Machine& machine, std::span<const int> sizes);

  // `name`: of the instruction. `bytes`: of the larger of a processor's input and output.
  double seconds(const Operation& operation, const char* name, AxisSet axes, double bytes) const;
  double all_reduce_seconds(AxisSet axes, double bytes) const {
    return seconds(AllReduce{}, AllReduce::kName, axes, bytes);
  }
  double all_gather_seconds(AxisSet axes, double bytes) const {
    return seconds(AllGather{}, AllGather::kName, axes, bytes);
  }

 private:
  const Machine& machine_;
  std::vector<int> sizes_;
  std::vector<std::vector<Stage>> stages_;  // by set of axes
};

}  // namespace weft
