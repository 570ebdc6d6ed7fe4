// scan and sort: along the lines of one dim.
#include "base/index.h"
#include "base/str.h"
#include "stablehlo/block.h"

namespace weft::stablehlo {

namespace {

// x moved by `count` places along the dim, towards its end, or towards its begin if `reverse`.
Term shifted(Writer& w, const Term& x, const std::string& dim, std::int64_t count, bool reverse, const Term& with) {
  std::vector<Padding> dims(x.shape.rank());
  dims[x.shape.position(dim)] = reverse ? Padding{-count, count, 0} : Padding{count, -count, 0};
  return w.pad(x, with, dims);
}

}  // namespace

// Each pass joins every element with the one 1, 2, 4, … places before it: log2 passes, which XLA fuses.
void write_scan(Block& block, const Instr& instr, const Scan& operation) {
  Writer& w = block.w;
  const Term given = w.transpose(block.term(instr.inputs[0]), block.value(instr.outputs[0]).shape);
  const Element wide = given.element == "i1" ? "i1" : wide_of(given.element);
  const std::int64_t size = given.shape.size_of(operation.dim);
  const Term start = w.number(start_of(operation.how, wide), wide);
  Term x = w.convert(given, wide);
  if (operation.exclusive) x = shifted(w, x, operation.dim, 1, operation.reverse, start);
  for (std::int64_t count = 1; count < size; count *= 2)
    x = w.apply(join_of(operation.how, wide), {shifted(w, x, operation.dim, count, operation.reverse, start), x});
  block.define(instr.outputs[0], w.convert(x, given.element));
}

// A stable sort of the values with their indices. NaN counts as the largest.
void write_sort(Block& block, const Instr& instr, const Sort& operation) {
  Writer& w = block.w;
  const Term x = block.term(instr.inputs[0]);
  const Shape line = {x.shape.dim(operation.dim)};
  Term indices;
  if (instr.inputs.size() == 2) {
    indices = w.transpose(block.term(instr.inputs[1]), x.shape);
  } else {
    indices = w.iota(line, operation.dim, "i32");
    if (const auto begin = block.shard_begin(instr.inputs[0], operation.dim))
      indices = w.apply("add", {indices, w.broadcast(w.convert(*begin, "i32"), line)});
    indices = w.broadcast(indices, x.shape);
  }
  const auto is_before = [&](const Terms& pair) {
    const Term &a = pair[0], &b = pair[1];
    const Term order = w.compare(operation.ascending ? "LT" : "GT", a, b);
    if (!is_float(x.element)) return order;
    const Term a_nan = w.compare("NE", a, a), b_nan = w.compare("NE", b, b);
    const Term nan_first = operation.ascending ? w.apply("and", {w.apply("not", {a_nan}), b_nan})
                                               : w.apply("and", {a_nan, w.apply("not", {b_nan})});
    return w.apply("or", {order, nan_first});
  };
  const Terms sorted =
      w.with_region("sort", {x, indices}, {x.element, x.element, "i32", "i32"}, is_before,
                    str("{dimension = ", x.shape.position(operation.dim), " : i64, is_stable = true}"), {x, indices});
  const Shape& out = block.value(instr.outputs[0]).shape;
  for (std::size_t i = 0; i < 2; ++i) {
    Term first = w.slice(sorted[i], operation.dim, 0, out.size_of(operation.k));
    if (operation.k != operation.dim) first = w.rename(first, operation.dim, operation.k);
    block.define(instr.outputs[i], w.transpose(first, out));
  }
}

}  // namespace weft::stablehlo
