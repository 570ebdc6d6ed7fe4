// ShardingRule: what a split of each dim of an op means. Data over dim names; no index maps.
#pragma once

#include <map>
#include <string>

#include "base/reduce.h"
#include "weft/dim.h"

namespace weft {

// What happens when a dim is split.
struct DimRule {
  enum class Kind {
    kPass,    // the same split in every operand and result that has it; no talk
    kReduce,  // each processor joins its own part: the result is partial over the dim's axes
    kTalk,    // the op's lowering moves data along the dim's axes itself
    kWhole,   // a split is refused: the user brings the dim together where it can be seen
  };
  Kind kind = Kind::kPass;
  Reduce how = Reduce::kSum;
};

struct ShardingRule {
  std::map<std::string, DimRule> dims;  // dims not named here pass
  // The results' dims are laid out by themselves, not together with the operands' (reshape, rename, with_layout):
  // the lowering reshards.
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
