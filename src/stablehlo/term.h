// Terms: SSA values of a module, with their element type and named dims.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/dim.h"
#include "weft/dtype.h"
#include "weft/number.h"

namespace weft::stablehlo {

// An element type as StableHLO writes it: "f32", "bf16", "ui8", "i1", …. Also "ui64", which no dtype has.
using Element = std::string_view;

Element element_of(DType dtype);
bool is_float(Element element);
bool is_unsigned(Element element);  // i1 too
// The type that sums of this element are kept in: f32 for 16-bit floats, i32 for i1, else the element itself.
Element wide_of(Element element);

struct Term {
  std::string id;  // "%12"
  Element element;
  Shape shape;  // dims in the order of storage; unnamed to the module
};

std::string type_text(Element element, const Shape& shape);  // "tensor<4x8xf32>"
std::string type_text(const Term& term);
// A number as a literal of the element type; NaN and infinities by their bits.
std::string literal_text(const Number& number, Element element);
// "dense<…>" of numbers in row-major order.
std::string dense_text(const std::vector<Number>& numbers, Element element, const Shape& shape);

// The text in double quotes, with quotes, backslashes and control characters escaped.
std::string quoted(std::string_view text);

}  // namespace weft::stablehlo
