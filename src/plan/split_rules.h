// Which dims of a graph may be split, and which dims may share an axis: the refusals of the partitioner that are known
// before it runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "language/graph_data.h"

namespace weft {

using DimSet = std::uint32_t;  // bit i: dim i of a SplitRules
constexpr std::size_t kMostDims = 32;

class SplitRules {
 public:
  // `wanted`: the tensors that the program computes.
  SplitRules(const GraphData& graph, const std::vector<TensorId>& wanted);

  const std::vector<std::string>& dims() const { return dims_; }  // that an op does not need whole, sorted
  const std::vector<std::string>& all_dims() const { return all_dims_; }
  int find(const std::string& dim) const;  // position in dims(), or -1
  // The parts into which every tensor with the dim can be split: the divisors of this number.
  std::int64_t divisor(std::size_t dim) const { return divisors_[dim]; }
  // The dims that some tensor or op has together with this dim: they cannot be on one axis.
  DimSet meets(std::size_t dim) const { return meets_[dim]; }

  // The sets of dims, of those in `allowed`, that one axis of this size may split; the empty set first.
  std::vector<DimSet> roles(int size, DimSet allowed) const;
  std::vector<std::string> names(DimSet set) const;

 private:
  std::vector<std::string> dims_, all_dims_;
  std::vector<std::int64_t> divisors_;
  std::vector<DimSet> meets_;
};

// The nodes that these tensors depend on, the bodies of loops included, ascending.
std::vector<NodeId> nodes_for(const GraphData& graph, const std::vector<TensorId>& wanted);

}  // namespace weft
