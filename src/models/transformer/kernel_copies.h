// Copies of the kernels that a decoder multiplies with, in variables "copy/<dtype>/<kernel>" [made…, reduced…]: the numbers of
// one output lie side by side, so a product of few rows reads the copy from its begin to its end.
#pragma once

#include <map>

#include "weft/nn.h"
#include "weft/transformer.h"

namespace weft::models {

class KernelCopies {
 public:
  KernelCopies(const Graph& graph, DecodeWeights weights) : g_(graph), weights_(weights) {}
  KernelCopies(const KernelCopies&) = delete;
  KernelCopies& operator=(const KernelCopies&) = delete;

  // The product of x and the copy of a kernel; empty if there are no copies. Lives no longer than this object.
  nn::Multiply multiply();

  const WeightCopies& made() const { return made_; }

 private:
  struct Copy {
    Tensor kernel, scale;  // scale: of i8, for each output
  };

  const Copy& copy_of(const Tensor& kernel, const Shape& reduced, DType dtype, Site site);
  Tensor product(const Tensor& x, const Tensor& kernel, const Shape& output, Site site);
  Tensor product_of_i8(const Tensor& x, const Copy& copy, const Shape& reduced, const Shape& output, Site site);

  Graph g_;
  const DecodeWeights weights_;
  std::map<std::string, Copy> copies_;
  WeightCopies made_;
};

}  // namespace weft::models
