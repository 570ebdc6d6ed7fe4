// Helpers that declare the families of pointwise ops.
#pragma once

#include <cmath>

#include "ops/rules.h"

namespace weft {

// A function of one floating-point operand: the entry of this name in kernels/pointwise-inl.h, derivative by `gradient`.
const OpDef& unary(const std::string& name, const std::string& doc, Fill fill,
                   std::function<Tensor(const Grad&)> gradient);

// A function of two operands, broadcast by name: the entry of this name in kernels/pointwise-inl.h. `gradient` gives both
// derivatives before they are summed to the operands' shapes.
struct BinaryDef {
  std::string name, doc;
  Fill fill_x, fill_y;
  std::function<Tensors(const Grad&)> gradient = {};  // empty: none, for the reason below
  std::string no_gradient = {};
};
const OpDef& binary(BinaryDef def);

// A number as a scalar of the dtype of x. UserError if the dtype cannot hold it.
Tensor number_like(const Tensor& x, const Number& number, const std::string& op, Site site);

// Applies a binary op; a number takes the dtype of the tensor operand.
Tensor apply_binary(const OpDef& op, const Operand& x, const Operand& y, Site site);

}  // namespace weft
