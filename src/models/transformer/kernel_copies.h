// Copies of the kernels that a decoder multiplies with. Graphs of one session may have both forms of a kernel.
//
// Plain, "copy/<dtype>/<kernel>": [made…, reduced…]. The numbers of one output lie side by side.
// In panels, "copy/<dtype>_panels/<kernel>": [made… / lanes, reduced… / word, lanes, word]. The outputs are divided into
// panels of `lanes`. A panel has, for each word of the summed dims, that word of each of its outputs. A word is 32 bits: one
// f32, two bf16 or four i8.
#pragma once

#include <map>
#include <string>

#include "weft/nn.h"
#include "weft/transformer.h"

namespace weft::models {

class KernelCopies {
 public:
  KernelCopies(const Graph& graph, DecodeWeights weights, KernelPanels panels = {})
      : g_(graph), weights_(weights), panels_(std::move(panels)) {}
  KernelCopies(const KernelCopies&) = delete;
  KernelCopies& operator=(const KernelCopies&) = delete;

  // The product of x and the copy of a kernel; empty if there are no copies. Lives no longer than this object.
  nn::Multiply multiply();

  const WeightCopies& made() const { return made_; }

 private:
  struct Copy {
    Tensor kernel, scale;    // scale: of i8, for each output
    std::int64_t words = 0;  // the numbers of a word, if the copy is in panels; 0: plain
  };

  const Copy& copy_of(const Tensor& kernel, const Shape& reduced, DType dtype, Site site);
  std::int64_t words_of(const Tensor& kernel, const Shape& reduced, const Shape& made, DType dtype) const;
  Tensor product(const Tensor& x, const Tensor& kernel, const Shape& output, Site site);
  Tensor product_of_i8(const Tensor& x, const Copy& copy, const Shape& reduced, const Shape& output, Site site);
  // x and the copy, summed; in `dtype`.
  Tensor multiplied(const Tensor& x, const Copy& copy, const Shape& reduced, const Shape& output, DType dtype,
                    Site site) const;

  Graph g_;
  const DecodeWeights weights_;
  const KernelPanels panels_;
  std::map<std::string, Copy> copies_;
  WeightCopies made_;
};

}  // namespace weft::models
