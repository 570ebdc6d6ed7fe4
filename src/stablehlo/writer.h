// Writes the operations of a module, one line each. Dims are matched by name: a broadcast, a transposition or a
// contraction is told by the names of its operands and of its result.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/reduce.h"
#include "stablehlo/term.h"

namespace weft::stablehlo {

using Terms = std::vector<Term>;
using Sizes = std::vector<std::int64_t>;

// Low, high and interior padding of a dim; low and high may be negative.
struct Padding {
  std::int64_t low = 0, high = 0, interior = 0;
};

class Writer {
 public:
  // ---- elements. Operands have one shape.
  Term apply(std::string_view op, const Terms& operands);  // gives the type of its operands
  Term compare(std::string_view direction, const Term& x, const Term& y);
  Term select(const Term& condition, const Term& yes, const Term& no);
  Term convert(const Term& x, Element element);  // x itself if it has the element type

  Term number(const Number& number, Element element, const Shape& shape = {});
  Term constant(const std::vector<Number>& numbers, Element element, const Shape& shape);
  Term iota(const Shape& shape, std::string_view dim, Element element);

  // ---- moves
  Term broadcast(const Term& x, const Shape& shape);                         // every dim of x is in `shape`
  Term transpose(const Term& x, const Shape& order);                         // the same dims
  Term reshape(const Term& x, const Shape& shape);                           // the same elements
  Term rename(const Term& x, std::string_view from, const std::string& to);  // writes nothing
  Term slice(const Term& x, std::string_view dim, std::int64_t begin, std::int64_t end, std::int64_t step = 1);
  Term pad(const Term& x, const Term& with, const std::vector<Padding>& dims);
  Term concatenate(const Terms& parts, std::string_view dim);
  Term reverse(const Term& x, const std::vector<std::string>& dims);
  // `size` elements of `dim` from the scalar `begin` on, clamped to fit.
  Term dynamic_slice(const Term& x, std::string_view dim, const Term& begin, std::int64_t size);
  Term dynamic_update(const Term& x, const Term& piece, std::string_view dim, const Term& begin);

  // ---- sums
  // Joins the dims that are absent from `out`, in the element type of x; gives the order of `out`.
  Term reduce(const Term& x, Reduce how, const Shape& out);
  // Sum over the dims absent from `out` of x * y, which have one element type. Floats are summed in `element`.
  Term contract(const Term& x, const Term& y, const Shape& out, Element element);

  // ---- regions
  using Condition = std::function<Term(const Terms& carried)>;
  using LoopBody = std::function<Terms(const Terms& carried, const Terms& outside)>;
  // Repeats `body` while `condition` holds. Both see the carried values, the body also `outside`.
  Terms loop(const Terms& carried, const Terms& outside, const Condition& condition, const LoopBody& body);
  // The operation `head`, up to its operands, with one region over scalar arguments, then `tail`, its attributes.
  using Region = std::function<Term(const Terms& arguments)>;
  Terms with_region(std::string_view op, const Terms& operands, const std::vector<Element>& arguments,
                    const Region& region, std::string_view attributes, const Terms& results);

  // The same values, which the compiler can neither merge with others nor compute before all of them exist.
  Terms barrier(const Terms& values);

  // A call of a library's function, which XLA knows by its name and `description`. Operands are row-major, results lie in
  // the given orders, the innermost dim first. XLA adds a workspace as the last result.
  Terms library_call(std::string_view name, const Terms& operands, std::string_view description, const Terms& results,
                     const std::vector<Sizes>& orders);

  // An operation in generic form: "stablehlo.op"(operands) {attributes}; `result` gives the type.
  Term generic(std::string_view op, const Terms& operands, std::string_view attributes, Element element,
               const Shape& shape);

  // ---- the module around it
  Term argument(Element element, const Shape& shape);  // a fresh id, which the caller declares
  void line(const std::string& text);
  // Of all lines from here on. "" is none.
  void locate(const std::string& text);
  std::string lines() const { return lines_; }
  std::string locations() const;  // the definitions that lines refer to

  // Things that are computed once per region and may be used again in it: see Scope.
  std::map<std::string, Term>& known() { return scopes_.back(); }

 private:
  std::string fresh();
  Term emit(Element element, const Shape& shape, const std::string& operation);
  std::string block(const Terms& arguments) const;

  std::string lines_;
  int next_ = 0;
  std::size_t indent_ = 2;
  std::vector<std::map<std::string, Term>> scopes_ = {{}};
  std::map<std::string, int> locations_;
  std::string location_;  // " loc(#loc3)"
};

// The identity of a reduction in an element type.
Number start_of(Reduce how, Element element);
// The operation that joins two elements.
std::string_view join_of(Reduce how, Element element);

std::string ids_text(const Terms& terms);    // "%1, %2"
std::string types_text(const Terms& terms);  // "tensor<f32>, tensor<f32>"
std::string list_text(const Sizes& sizes);   // "[1, 2]"
std::string array_text(const Sizes& sizes);  // "array<i64: 1, 2>"

}  // namespace weft::stablehlo
