// ShardingRule: what happens when a dim of an op is split. The rule is data over dim names; there are no index maps.
#pragma once

#include <map>
#include <string>

#include "base/reduce.h"
#include "weft/dim.h"

namespace weft {

// What happens when one dim is split.
struct DimRule {
  enum class Kind {
    kPass,    // every operand and result that has the dim is split alike; nothing is communicated
    kReduce,  // each processor reduces its part; the result is partial over the dim's axes
    kTalk,    // the op's lowering moves data along the dim's axes
    kWhole,   // a split is refused; the user must gather the dim explicitly
  };
  Kind kind = Kind::kPass;
  Reduce how = Reduce::kSum;
};

struct ShardingRule {
  std::map<std::string, DimRule> dims;  // dims that are not named here are kPass
  // The results' dims have a layout independent of the operands' (reshape, rename, with_layout): the lowering reshards.
  bool reshards_output = false;

  DimRule of(const std::string& dim) const {
    const auto found = dims.find(dim);
    return found == dims.end() ? DimRule{} : found->second;
  }
  ShardingRule& reduce(const std::string& dim, Reduce how) {
    dims[dim] = {DimRule::Kind::kReduce, how};
    return *this;
  }
  ShardingRule& talk(const std::string& dim) {
    dims[dim] = {DimRule::Kind::kTalk, Reduce::kSum};
    return *this;
  }
  ShardingRule& whole(const std::string& dim) {
    dims[dim] = {DimRule::Kind::kWhole, Reduce::kSum};
    return *this;
  }
};

}  // namespace weft
