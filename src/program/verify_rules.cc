#include "program/verify_rules.h"

#include <algorithm>
#include <set>

#include "base/index.h"
#include "base/str.h"
#include "kernels/pointwise.h"
#include "weft/error.h"

namespace weft {

void Checked::fail(const std::string& rule) const { throw BrokenRule{rule}; }

namespace {

bool same_type(const Value& v, const ValueType& type) {
  return v.dtype == type.dtype && v.shape == type.shape && v.sharding == type.sharding;
}

ValueType type_of(const Value& v) { return {v.dtype, v.shape, v.sharding}; }

void counts(const Checked& c, std::size_t inputs, std::size_t outputs) {
  c.demand(c.instr.inputs.size() == inputs, "takes ", inputs, " operands");
  c.demand(c.instr.outputs.size() == outputs, "gives ", outputs, " values");
}

void one_dtype(const Checked& c) {
  for (std::size_t i = 0; i < c.instr.inputs.size(); ++i)
    c.demand(c.in(i).dtype == c.out().dtype, "operands and output have one dtype");
}

// Every dim of `shape` that `other` names too has the same size there.
void sizes_agree(const Checked& c, const Shape& shape, const Shape& other) {
  for (const Dim& dim : shape)
    c.demand(!other.has(dim.name) || other.has(dim), "dim '", dim.name, "' has one local size");
}

void known_axes(const Checked& c, const Axes& axes) {
  std::set<int> seen;
  for (int axis : axes) {
    c.demand(axis >= 0 && at(axis) < c.program.mesh.axes().size(), "axes are in the mesh");
    c.demand(seen.insert(axis).second, "an axis occurs once");
  }
}

// What result_of says of every operand; its own complaints become broken rules.
template <class W>
void typed_as_result(const Checked& c, const W& operation) {
  c.demand(!operation.axes.empty(), "talks along at least one axis");
  known_axes(c, operation.axes);
  for (std::size_t i = 0; i < c.instr.inputs.size(); ++i) try {
      const ValueType want = result_of(operation, type_of(c.in(i)), c.program.mesh);
      if (!same_type(c.out(i), want))
        c.fail(str("output ", i, " is ", want.dtype, " ", want.shape, " ",
                   text_of(want.sharding, want.shape, c.program.mesh)));
    } catch (const InternalError& error) {
      c.fail(error.text().what);
    }
}

template <class W>
void reduction(const Checked& c, const W& operation) {
  for (std::size_t i = 0; i < c.instr.inputs.size(); ++i)
    c.demand(c.in(i).sharding.pending == operation.how, "operand ", i, " waits for ", operation.how);
  typed_as_result(c, operation);
}

void node_of(const Checked& c, const std::vector<MapNode>& nodes, std::size_t index) {
  const MapNode& n = nodes[index];
  const auto dtype_of_arg = [&](std::size_t i) { return nodes[at(n.args[i])].dtype; };
  for (int arg : n.args) c.demand(arg >= 0 && at(arg) < index, "args are earlier nodes");
  const bool is_leaf = n.op == "input" || n.op == "literal" || n.op == "index";
  c.demand(!is_leaf || n.args.empty(), "'", n.op, "' has no args");
  if (n.op == "input") {
    c.demand(n.input >= 0 && at(n.input) < c.instr.inputs.size(), "inputs are in range");
    c.demand(n.dtype == c.in(at(n.input)).dtype, "$", n.input, " has its operand's dtype");
  } else if (n.op == "literal") {
    c.demand(!why_not_held(n.literal, n.dtype), "a literal of ", n.dtype, " is a number that ", n.dtype, " holds");
  } else if (n.op == "index") {
    c.demand(c.out().shape.has(n.dim), "index dim '", n.dim, "' is in the output");
    c.demand(n.dtype != DType::kBool, "an index is a number");
  } else if (n.op == "select") {
    c.demand(n.args.size() == 3 && dtype_of_arg(0) == DType::kBool, "select takes a bool and two values");
    c.demand(dtype_of_arg(1) == n.dtype && dtype_of_arg(2) == n.dtype, "select gives the dtype of its values");
  } else if (n.op == "cast") {
    c.demand(n.args.size() == 1, "'cast' takes one arg");
  } else {
    std::vector<DType> operands;
    for (std::size_t i = 0; i < n.args.size(); ++i) operands.push_back(dtype_of_arg(i));
    const std::string misuse = pointwise_misuse(n.op, operands, n.dtype);
    c.demand(misuse.empty(), misuse);
  }
}

// --- One rule per kind of instruction ---

void rule(const Checked& c, const Contract&) {
  counts(c, 2, 1);
  const Shape &x = c.in(0).shape, &y = c.in(1).shape, &out = c.out().shape;
  for (std::size_t i = 0; i < 2; ++i)
    c.demand(is_float(c.in(i).dtype) == is_float(c.out().dtype), "multiplies floats to floats, integers to integers");
  sizes_agree(c, x, y);
  sizes_agree(c, out, x);
  sizes_agree(c, out, y);
  for (const Dim& dim : x.plus(y))
    c.demand(out.has(dim.name) || (x.has(dim.name) && y.has(dim.name)), "dim '", dim.name,
             "', absent from the output, is in both operands");
  for (const Dim& dim : out)
    c.demand(x.has(dim.name) || y.has(dim.name), "output dim '", dim.name, "' is in an operand");
}

void rule(const Checked& c, const Map& operation) {
  c.demand(c.instr.outputs.size() == 1, "gives 1 value");
  for (std::size_t i = 0; i < c.instr.inputs.size(); ++i)
    for (const Dim& dim : c.in(i).shape)
      c.demand(c.out().shape.has(dim), "dim '", dim.name, "' of operand ", i, " is in the output, of the same size");
  c.demand(!operation.nodes.empty(), "a map has nodes");
  for (std::size_t i = 0; i < operation.nodes.size(); ++i) node_of(c, operation.nodes, i);
  c.demand(operation.nodes.back().dtype == c.out().dtype, "the last node has the output's dtype");
}

void rule(const Checked& c, const ReduceDims&) {
  counts(c, 1, 1);
  one_dtype(c);
  for (const Dim& dim : c.out().shape)
    c.demand(c.in(0).shape.has(dim), "output dim '", dim.name, "' is in the operand, of the same size");
}

void rule(const Checked& c, const Copy&) {
  counts(c, 1, 1);
  one_dtype(c);
  c.demand(same_dims(c.in(0).shape, c.out().shape), "a copy keeps the dims");
  for (std::size_t i = 0; i < c.out().shape.rank(); ++i)
    c.demand(c.in(0).sharding.dims[c.in(0).shape.position(c.out().shape[i].name)] == c.out().sharding.dims[i],
             "a copy keeps the sharding");
}

void rule(const Checked& c, const Concat& operation) {
  c.demand(!c.instr.inputs.empty() && c.instr.outputs.size() == 1, "takes operands and gives 1 value");
  one_dtype(c);
  std::int64_t size = 0;
  for (std::size_t i = 0; i < c.instr.inputs.size(); ++i) {
    const Shape& x = c.in(i).shape;
    c.demand(x.has(operation.dim) && c.out().shape.has(operation.dim), "every operand has the dim");
    size += x.size_of(operation.dim);
    c.demand(same_dims(x.resized(operation.dim, c.out().shape.size_of(operation.dim)), c.out().shape), "operand ", i,
             " has the output's other dims");
  }
  c.demand(size == c.out().shape.size_of(operation.dim), "sizes along the dim add up");
}

// Of a run along `dim`: one for all, or one for each index of other dims.
void offset_fits(const Checked& c, const Value& offset, const std::string& dim) {
  c.demand(is_integer(offset.dtype), "the offset is an integer");
  for (const Dim& own : offset.shape)
    c.demand(own.name != dim && c.in(0).shape.has(own), "dim '", own.name,
             "' of the offset is another dim of the operand");
}

void rule(const Checked& c, const DynamicSlice& operation) {
  counts(c, 2, 1);
  offset_fits(c, c.in(1), operation.dim);
  c.demand(c.in(0).dtype == c.out().dtype, "keeps the dtype");
  c.demand(c.in(0).shape.has(operation.dim) && c.out().shape.has(operation.dim), "operand and output have the dim");
  const std::int64_t size = c.out().shape.size_of(operation.dim);
  c.demand(size <= c.in(0).shape.size_of(operation.dim), "takes no more than there is");
  c.demand(same_dims(c.in(0).shape.resized(operation.dim, size), c.out().shape), "the other dims are kept");
}

// Each index of the piece along `dim` has its place.
void places_fit(const Checked& c, const std::string& dim) {
  const Shape &x = c.in(0).shape, &piece = c.in(1).shape;
  c.demand(is_integer(c.in(2).dtype), "the offset is an integer");
  c.demand(c.in(2).shape == Shape{piece.dim(dim)},
           "an offset with the dim has the piece's size of it, and no other dim");
  c.demand(piece.rank() == x.rank(), "the piece has the other dims");
  for (const Dim& own : piece)
    c.demand(x.has(own.name) && (own.name == dim || own.size <= x.size_of(own.name)), "the piece has the other dims");
}

void rule(const Checked& c, const DynamicUpdate& operation) {
  counts(c, 3, 1);
  c.demand(c.in(0).dtype == c.out().dtype && c.in(1).dtype == c.out().dtype, "keeps the dtype");
  c.demand(c.in(0).shape.has(operation.dim) && c.in(1).shape.has(operation.dim), "operand and piece have the dim");
  c.demand(same_dims(c.in(0).shape, c.out().shape), "keeps the shape");
  if (c.in(2).shape.has(operation.dim)) return places_fit(c, operation.dim);
  offset_fits(c, c.in(2), operation.dim);
  c.demand(same_dims(c.in(1).shape.resized(operation.dim, c.out().shape.size_of(operation.dim)), c.out().shape),
           "the piece has the other dims");
}

void rule(const Checked& c, const Gather& operation) {
  counts(c, 2, 1);
  const Shape &x = c.in(0).shape, &indices = c.in(1).shape;
  c.demand(is_integer(c.in(1).dtype), "indices are integers");
  c.demand(c.in(0).dtype == c.out().dtype, "keeps the dtype");
  c.demand(x.has(operation.dim), "the operand has the dim");
  const Shape rest = x.minus({x.dim(operation.dim)});
  sizes_agree(c, rest, indices);
  c.demand(same_dims(rest.plus(indices), c.out().shape), "gives the operand's other dims and those of the indices");
}

void rule(const Checked& c, const ScatterAdd& operation) {
  counts(c, 2, 1);
  const Shape &indices = c.in(0).shape, &updates = c.in(1).shape, &out = c.out().shape;
  c.demand(is_integer(c.in(0).dtype), "indices are integers");
  c.demand(c.in(1).dtype == c.out().dtype, "keeps the dtype");
  c.demand(out.has(operation.dim), "the output has the dim");
  sizes_agree(c, indices, updates);
  const Shape rest = out.minus({out.dim(operation.dim)});
  sizes_agree(c, rest, indices);
  sizes_agree(c, rest, updates);
  for (const Dim& dim : rest)
    c.demand(indices.has(dim.name) || updates.has(dim.name), "output dim '", dim.name, "' is in an operand");
}

void rule(const Checked& c, const Scan& operation) {
  counts(c, 1, 1);
  c.demand(c.in(0).shape.has(operation.dim), "the operand has the dim");
  c.demand(c.in(0).dtype == c.out().dtype && same_dims(c.in(0).shape, c.out().shape), "keeps dtype and dims");
}

void rule(const Checked& c, const Sort& operation) {
  c.demand(c.instr.inputs.size() == 1 || c.instr.inputs.size() == 2, "takes 1 or 2 operands");
  c.demand(c.instr.outputs.size() == 2, "gives 2 values");
  const Shape &x = c.in(0).shape, &out = c.out().shape;
  c.demand(x.has(operation.dim) && out.has(operation.k), "the operand has the dim, the output its k");
  c.demand(out.size_of(operation.k) <= x.size_of(operation.dim), "k is at most the size of the dim");
  c.demand(same_dims(x.minus({x.dim(operation.dim)}), out.minus({out.dim(operation.k)})), "the other dims are kept");
  c.demand(c.out(0).dtype == c.in(0).dtype && c.out(1).dtype == DType::kI32, "gives values, and indices in i32");
  c.demand(out == c.out(1).shape, "values and indices have one shape");
  if (c.instr.inputs.size() == 2)
    c.demand(c.in(1).dtype == DType::kI32 && same_dims(c.in(1).shape, x), "the second operand holds an i32 for each");
}

// Places, taps and steps so small that no index overflows.
void windows(const Checked& c, const std::vector<WindowDim>& windows, const Shape& x, const Shape& y) {
  constexpr __int128 kMost = std::int64_t{1} << 60;
  c.demand(!windows.empty(), "there is a window");
  std::set<std::string> dims;
  for (const WindowDim& w : windows) {
    c.demand(x.has(w.dim) && y.has(w.dim), "x and y have the dim of a window");
    c.demand(dims.insert(w.dim).second, "a dim has one window");
    c.demand(w.size >= 1 && w.stride >= 1 && w.dilation >= 1, "taps, stride and dilation are positive");
    const __int128 last =
        static_cast<__int128>(y.size_of(w.dim)) * w.stride + static_cast<__int128>(w.size) * w.dilation;
    c.demand(last + (w.before < 0 ? -w.before : w.before) < kMost, "the windows stay within what can be counted");
  }
}

void rule(const Checked& c, const Convolve& operation) {
  counts(c, 2, 1);
  one_dtype(c);
  c.demand(is_float(c.out().dtype), "convolves floats");
  const WindowRoles roles = roles_of(c.instr);
  const auto shape = [&](ValueId id) -> const Shape& { return c.program.values[id].shape; };
  const Shape &x = shape(roles.x), &y = shape(roles.y), &filter = shape(roles.filter);
  windows(c, operation.windows, x, y);
  Shape rest = x.plus(y).plus(filter);
  std::set<std::string> taps;
  for (const WindowDim& w : operation.windows) {
    c.demand(taps.insert(w.filter).second, "a dim of the filter has one window");
    c.demand(filter.has(w.filter) && filter.size_of(w.filter) == w.size, "the filter has the taps of a window");
    c.demand(!filter.has(w.dim) && !x.has(w.filter) && !y.has(w.filter), "taps are the filter's own, places are not");
    rest = rest.minus({{w.dim, 1}, {w.filter, 1}});
  }
  for (const Dim& dim : rest) {
    const auto fits = [&](const Shape& s) { return !s.has(dim.name) || s.has(dim); };
    c.demand(fits(x) && fits(y) && fits(filter), "dim '", dim.name, "' has one local size");
    c.demand(x.has(dim) + y.has(dim) + filter.has(dim) >= 2, "dim '", dim.name, "' is in two of x, y and filter");
  }
}

void rule(const Checked& c, const Pool& operation) {
  const bool forward = operation.direction == Direction::kForward, winners = operation.kind == PoolKind::kWinners;
  const bool counted = winners && forward && c.instr.inputs.size() == 2;
  counts(c, counted ? 2 : winners ? 3 : 1, 1);
  one_dtype(c);
  c.demand(is_float(c.out().dtype), "pools floats");
  c.demand(operation.direction != Direction::kToFilter, "a pool has no filter");
  c.demand(operation.kind != PoolKind::kMax || forward, "max goes forward; back it is winners");
  const WindowRoles roles = roles_of(c.instr);
  const auto shape = [&](ValueId id) -> const Shape& { return c.program.values[id].shape; };
  const Shape &x = shape(roles.x), &y = shape(roles.y);
  windows(c, operation.windows, x, y);
  Shape kept = x;
  for (const WindowDim& w : operation.windows) {
    c.demand(w.filter.empty(), "a pool has no filter");
    kept = kept.resized(w.dim, y.size_of(w.dim));
  }
  c.demand(same_dims(kept, y), "x and y have the same dims but for the windows");
  if (!winners) return;
  c.demand(counted || same_dims(c.in(2).shape, forward ? x : y), "the third operand lies like what is summed");
  c.demand(same_dims(c.out().shape, forward ? y : x), "gives the other side");
}

void rule(const Checked& c, const Attend&) { check_attend(c); }
void rule(const Checked& c, const AttendBack&) { check_attend(c); }

void rule(const Checked& c, const Random& operation) {
  if (!c.instr.inputs.empty()) {
    counts(c, 1, 1);
    c.demand(c.in(0).dtype == DType::kI64 && c.in(0).shape.empty(), "the iteration is an i64 scalar");
  } else {
    counts(c, 0, 1);
  }
  c.demand((operation.distribution == Distribution::kBits) == (c.out().dtype == DType::kU32),
           "bits are u32, and only they");
}

void rule(const Checked& c, const AxisIndex& operation) {
  counts(c, 0, 1);
  known_axes(c, operation.axes);
  c.demand(c.out().dtype == DType::kI64 && c.out().shape.empty(), "gives an i64 scalar");
}

void rule(const Checked& c, const Constant& operation) {
  counts(c, 0, 1);
  c.demand(static_cast<std::int64_t>(operation.data.size()) == c.out().shape.elements(), "one number per element");
  c.demand(std::none_of(operation.data.begin(), operation.data.end(),
                        [&](const Number& number) { return why_not_held(number, c.out().dtype).has_value(); }),
           "numbers that the dtype holds");
}

void rule(const Checked& c, const Host& operation) {
  counts(c, 1, 0);
  c.demand(operation.what == "print" || operation.what == "metric", "hands over to print or metric");
}

void rule(const Checked& c, const View& operation) {
  counts(c, 1, 1);
  one_dtype(c);
  c.demand(operation.strides.size() == c.out().shape.rank(), "one stride per output dim");
}

void rule(const Checked& c, const Shard& operation) {
  counts(c, 1, 1);
  c.demand(c.in(0).shape.has(operation.dim), "the operand has the dim");
  typed_as_result(c, operation);
}

// Several values in one collective.
void travel_together(const Checked& c) {
  c.demand(!c.instr.inputs.empty() && c.instr.inputs.size() == c.instr.outputs.size(), "as many values as operands");
  for (std::size_t i = 1; i < c.instr.inputs.size(); ++i)
    c.demand(c.in(i).dtype == c.in(0).dtype, "operands that travel together have one dtype");
}

void all_have(const Checked& c, const std::string& dim) {
  for (std::size_t i = 0; i < c.instr.inputs.size(); ++i) c.demand(c.in(i).shape.has(dim), "the operand has the dim");
}

void rule(const Checked& c, const AllReduce& operation) {
  travel_together(c);
  reduction(c, operation);
}

void rule(const Checked& c, const ReduceScatter& operation) {
  travel_together(c);
  all_have(c, operation.dim);
  reduction(c, operation);
}

void rule(const Checked& c, const AllGather& operation) {
  travel_together(c);
  all_have(c, operation.dim);
  typed_as_result(c, operation);
}

void rule(const Checked& c, const AllToAll& operation) {
  counts(c, 1, 1);
  c.demand(c.in(0).shape.has(operation.split) && c.in(0).shape.has(operation.gather), "the operand has both dims");
  c.demand(operation.split != operation.gather, "splits one dim and gathers another");
  typed_as_result(c, operation);
}

void rule(const Checked& c, const Permute& operation) {
  counts(c, 1, 1);
  typed_as_result(c, operation);
  const int ranks = c.program.mesh.size(operation.axes);
  c.demand(static_cast<int>(operation.to.size()) == ranks, "one target per rank");
  std::set<std::int64_t> targets;
  for (std::int64_t to : operation.to) {
    c.demand(to >= -1 && to < ranks, "targets are ranks, or -1");
    c.demand(to == -1 || targets.insert(to).second, "no two ranks send to one");
  }
}

// What these demand of their operands is not told by types alone: verify.cc has it.
void rule(const Checked&, const Done&) {}
void rule(const Checked&, const Loop&) {}
void rule(const Checked&, const Fused&) {}

}  // namespace

void check_instruction(const Checked& checked) {
  std::visit([&](const auto& operation) { rule(checked, operation); }, checked.instr.operation);
}

}  // namespace weft
