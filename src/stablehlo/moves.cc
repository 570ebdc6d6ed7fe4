// contract, reduce, copy, concat, views, host, and moves to and from run-time places.
#include <algorithm>

#include "base/index.h"
#include "base/str.h"
#include "stablehlo/block.h"

namespace weft::stablehlo {

namespace {

// A dim that no program has.
const std::string kPlace = "#place";

// Integers as i64; u32 stays exact.
Term as_index(Writer& w, const Term& x) { return w.convert(x, "i64"); }

// Global indices of a dim, less the first one of this processor's shard. 32 bits do not overflow: an index that wraps is at
// least 2^31 - begin, behind the shard's end.
Term local_index(Block& block, const Term& index, ValueId sharded, const std::string& dim) {
  Writer& w = block.w;
  const Value& v = block.value(sharded);
  const std::size_t position = v.shape.position(dim);
  const std::int64_t whole = v.shape[position].size * block.program.mesh.size(v.sharding.dims[position]);
  const bool is_wide = index.element == "i64" || index.element == "ui32";
  const Term all = w.convert(index, is_wide ? "i64" : index_element(whole));
  const std::optional<Term> begin = block.shard_begin(sharded, dim);
  return begin ? w.apply("subtract", {all, w.broadcast(w.convert(*begin, all.element), all.shape)}) : all;
}

}  // namespace

Element index_element(std::int64_t largest) { return largest < (std::int64_t{1} << 31) ? "i32" : "i64"; }

// Products of 16-bit floats are summed in f32 and rounded once.
void write_contract(Block& block, const Instr& instr) {
  Writer& w = block.w;
  Term x = block.term(instr.inputs[0]), y = block.term(instr.inputs[1]);
  const Value& out = block.value(instr.outputs[0]);
  const Element element = element_of(out.dtype);
  const Element wide = is_float(element) && (x.element == "f64" || y.element == "f64") ? "f64" : wide_of(element);
  if (!is_float(element) || x.element != y.element || x.element == "f64") {
    x = w.convert(x, wide);
    y = w.convert(y, wide);
  }
  block.define(instr.outputs[0], w.convert(w.contract(x, y, out.shape, wide), element));
}

void write_reduce(Block& block, const Instr& instr, const ReduceDims& operation) {
  Writer& w = block.w;
  const Term x = block.term(instr.inputs[0]);
  const Element wide = x.element == "i1" ? "i1" : wide_of(x.element);
  const Term joined = w.reduce(w.convert(x, wide), operation.how, block.value(instr.outputs[0]).shape);
  block.define(instr.outputs[0], w.convert(joined, x.element));
}

void write_copy(Block& block, const Instr& instr) {
  block.define(instr.outputs[0], block.w.transpose(block.term(instr.inputs[0]), block.value(instr.outputs[0]).shape));
}

void write_concat(Block& block, const Instr& instr, const Concat& operation) {
  const Shape& out = block.value(instr.outputs[0]).shape;
  Terms parts;
  for (const ValueId id : instr.inputs) {
    const Term x = block.term(id);
    parts.push_back(block.w.transpose(x, out.resized(operation.dim, x.shape.size_of(operation.dim))));
  }
  block.define(instr.outputs[0], block.w.concatenate(parts, operation.dim));
}

void write_host(Block& block, const Instr& instr, const Host& operation) {
  if (block.in_loop)
    throw Refused{str(operation.what, " '", operation.text,
                      "' is inside a loop, and a module hands nothing to the host before its end")};
  const Value& v = block.value(instr.inputs[0]);
  block.state.host_terms.push_back(block.term(instr.inputs[0]));
  block.state.host_results.push_back(
      {operation.text, instr.inputs[0], Result::Role::kHost, v.shape, v.dtype, operation.what});
}

void write_view(Block& block, const Instr& instr, const View& operation) {
  const Shape& shape = block.value(instr.outputs[0]).shape;
  block.define(instr.outputs[0], view_of(block.storage(instr.inputs[0]), shape, operation.offset, operation.strides));
}

void write_shard(Block& block, const Instr& instr, const Shard& operation) {
  const Stored& whole = block.storage(instr.inputs[0]);
  const Shape& shape = block.value(instr.outputs[0]).shape;
  const std::int64_t size = shape.size_of(operation.dim);
  if (block.program.mesh.size(operation.axes) == 1)
    return block.define(instr.outputs[0], view_of(whole, shape, 0, whole.strides));
  const Term begin = block.w.apply("multiply", {block.coordinate(operation.axes), block.w.number(size, "i64")});
  const Term part = block.w.dynamic_slice(block.term(instr.inputs[0]), operation.dim, begin, size);
  block.define(instr.outputs[0], stored_part(part, whole));
}

void write_dynamic_slice(Block& block, const Instr& instr, const DynamicSlice& operation) {
  Writer& w = block.w;
  const Term x = block.term(instr.inputs[0]), offset = as_index(w, block.term(instr.inputs[1]));
  const Shape& out = block.value(instr.outputs[0]).shape;
  const std::int64_t size = out.size_of(operation.dim), all = x.shape.size_of(operation.dim);
  if (offset.shape.empty())
    return block.define(instr.outputs[0], w.transpose(w.dynamic_slice(x, operation.dim, offset, size), out));
  // Every index of the offset's dims has its run.
  const Shape places = offset.shape.plus({{operation.dim, size}});
  const Term begin =
      w.apply("clamp", {w.number(0, "i64", offset.shape), offset, w.number(all - size, "i64", offset.shape)});
  const Term index = w.apply("add", {w.broadcast(begin, places), w.iota(places, operation.dim, "i64")});
  block.define(instr.outputs[0], gathered(w, x, operation.dim, index, out));
}

namespace {

// x with the piece at a scalar offset. Only the run that the piece can touch is read and written, so that XLA can work in
// place. Where part of the piece falls outside, the run begins elsewhere and the piece is shifted within it.
Term updated_run(Writer& w, const Term& x, const Term& piece, const std::string& dim, const Term& offset) {
  const std::int64_t size = piece.shape.size_of(dim), all = x.shape.size_of(dim);
  const auto clamped = [&](const Term& i, std::int64_t low, std::int64_t high) {
    return w.apply("clamp", {w.number(low, "i64"), i, w.number(high, "i64")});
  };
  const Term begin = clamped(offset, 0, all - size);
  const Term shift = w.apply("subtract", {begin, clamped(offset, -size, all)});  // from -size to size
  std::vector<Padding> around(x.shape.rank());
  around[x.shape.position(dim)] = {size, size, 0};
  const Term room = w.pad(piece, w.number(0, piece.element), around);
  const Term shifted = w.dynamic_slice(room, dim, w.apply("add", {shift, w.number(size, "i64")}), size);
  const Term from = w.apply("add", {w.iota(piece.shape, dim, "i64"), w.broadcast(shift, piece.shape)});
  const Term inside = w.apply("and", {w.compare("GE", from, w.number(0, "i64", piece.shape)),
                                      w.compare("LT", from, w.number(size, "i64", piece.shape))});
  const Term old = w.dynamic_slice(x, dim, begin, size);
  return w.dynamic_update(x, w.select(inside, shifted, old), dim, begin);
}

}  // namespace

namespace {

// x with each index of the piece along `dim` at its place; of two at one place the later wins. The piece may be shorter
// along other dims.
Term updated_places(Writer& w, const Term& x, const Term& given, const std::string& dim, const Term& offset) {
  std::vector<Dim> order;
  std::vector<Padding> behind(x.shape.rank());
  for (std::size_t i = 0; i < x.shape.rank(); ++i) {
    order.push_back(given.shape.dim(x.shape[i].name));
    if (x.shape[i].name != dim) behind[i].high = x.shape[i].size - order[i].size;
  }
  const Term piece = w.transpose(given, Shape(order));
  const Shape line = {x.shape.dim(dim)}, pairs = line.plus({{"#piece", piece.shape.size_of(dim)}});
  const Term place = w.broadcast(w.rename(offset, dim, "#piece"), pairs);
  const Term meets = w.compare("EQ", w.iota(pairs, dim, "i64"), place);
  const Term number = w.select(meets, w.iota(pairs, "#piece", "i64"), w.number(-1, "i64", pairs));
  const Term last = w.reduce(number, Reduce::kMax, line), none = w.number(0, "i64", line);
  Term inside = w.broadcast(w.compare("GE", last, none), x.shape);
  for (std::size_t i = 0; i < order.size(); ++i)
    if (behind[i].high > 0) {
      const Shape own = {x.shape[i]};
      const Term there = w.compare("LT", w.iota(own, own[0].name, "i64"), w.number(order[i].size, "i64", own));
      inside = w.apply("and", {inside, w.broadcast(there, x.shape)});
    }
  const Term whole = w.pad(piece, w.number(0, x.element), behind);
  return w.select(inside, gathered(w, whole, dim, w.apply("maximum", {last, none}), x.shape), x);
}

}  // namespace

void write_dynamic_update(Block& block, const Instr& instr, const DynamicUpdate& operation) {
  Writer& w = block.w;
  const Shape& out = block.value(instr.outputs[0]).shape;
  const Term x = w.transpose(block.term(instr.inputs[0]), out);
  Term piece = block.term(instr.inputs[1]);
  const Term offset = as_index(w, block.term(instr.inputs[2]));
  if (offset.shape.has(operation.dim))
    return block.define(instr.outputs[0], updated_places(w, x, piece, operation.dim, offset));
  const std::int64_t size = piece.shape.size_of(operation.dim), all = out.size_of(operation.dim);
  piece = w.transpose(piece, out.resized(operation.dim, size));
  if (offset.shape.empty() && size <= all)
    return block.define(instr.outputs[0], updated_run(w, x, piece, operation.dim, offset));
  // Element i along the dim takes element i - offset of the piece where there is one.
  const Shape places = offset.shape.plus({{operation.dim, all}});
  const Term near_offset =
      w.apply("clamp", {w.number(-size, "i64", offset.shape), offset, w.number(all, "i64", offset.shape)});
  const Term from = w.apply("subtract", {w.iota(places, operation.dim, "i64"), w.broadcast(near_offset, places)});
  const Term inside = w.apply(
      "and", {w.compare("GE", from, w.number(0, "i64", places)), w.compare("LT", from, w.number(size, "i64", places))});
  const Term near = w.apply("clamp", {w.number(0, "i64", places), from, w.number(size - 1, "i64", places)});
  const Term spread = gathered(w, piece, operation.dim, near, out);
  block.define(instr.outputs[0], w.select(w.broadcast(inside, out), spread, x));
}

// x's dim is called otherwise, since the index may have a dim of that name.
Term gathered(Writer& w, const Term& operand, std::string_view dim, const Term& index, const Shape& out) {
  const Term x = w.rename(operand, dim, kPlace);
  Shape order = index.shape;
  Sizes offset_dims, x_batch, index_batch, sizes;
  for (std::size_t i = 0; i < x.shape.rank(); ++i) {
    const Dim& own = x.shape[i];
    const bool matched = own.name != kPlace && index.shape.has(own.name);
    sizes.push_back(matched || own.name == kPlace ? 1 : own.size);
    if (matched) {
      x_batch.push_back(static_cast<std::int64_t>(i));
      index_batch.push_back(static_cast<std::int64_t>(index.shape.position(own.name)));
    } else if (own.name != kPlace) {
      offset_dims.push_back(static_cast<std::int64_t>(order.rank()));
      order = order.plus({own});
    }
  }
  const Sizes place = {static_cast<std::int64_t>(x.shape.position(kPlace))};
  const std::string attributes =
      str("{dimension_numbers = #stablehlo.gather<offset_dims = ", list_text(offset_dims),
          ", collapsed_slice_dims = ", list_text(place), ", operand_batching_dims = ", list_text(x_batch),
          ", start_indices_batching_dims = ", list_text(index_batch), ", start_index_map = ", list_text(place),
          ", index_vector_dim = ", index.shape.rank(), ">, slice_sizes = ", array_text(sizes),
          ", indices_are_sorted = false}");
  return w.transpose(w.generic("gather", {x, index}, attributes, x.element, order), out);
}

void write_gather(Block& block, const Instr& instr, const Gather& operation) {
  Writer& w = block.w;
  const Term x = block.term(instr.inputs[0]);
  const Shape& out = block.value(instr.outputs[0]).shape;
  const Term index = local_index(block, block.term(instr.inputs[1]), instr.inputs[0], operation.dim);
  const Term none = w.number(0, index.element, index.shape);
  const Term last = w.number(x.shape.size_of(operation.dim) - 1, index.element, index.shape);
  const Term inside = w.apply("and", {w.compare("GE", index, none), w.compare("LE", index, last)});
  const Term found = gathered(w, x, operation.dim, w.apply("clamp", {none, index, last}), out);
  block.define(instr.outputs[0], w.select(w.broadcast(inside, out), found, w.number(0, x.element, out)));
}

// Sums of 16-bit floats are kept in f32. XLA drops updates whose index is outside of the output.
void write_scatter_add(Block& block, const Instr& instr, const ScatterAdd& operation) {
  Writer& w = block.w;
  const Value& out = block.value(instr.outputs[0]);
  const Shape target = out.shape.renamed(operation.dim, kPlace);
  const Term index = local_index(block, block.term(instr.inputs[0]), instr.outputs[0], operation.dim);
  Term updates = block.term(instr.inputs[1]);
  const Element element = updates.element, wide = wide_of(element);
  updates = w.convert(updates, wide);
  // A dim of the updates alone that the output lacks is summed first.
  Shape kept;
  for (const Dim& dim : updates.shape)
    if (index.shape.has(dim.name) || target.has(dim.name)) kept = kept.plus({dim});
  updates = w.reduce(updates, Reduce::kSum, kept);
  const Shape windows = kept.minus(index.shape), order = index.shape.plus(windows);
  updates = w.broadcast(updates.shape.rank() == order.rank() ? w.transpose(updates, order) : updates, order);

  Sizes window_dims, target_batch, index_batch;
  for (const Dim& dim : windows) window_dims.push_back(static_cast<std::int64_t>(order.position(dim.name)));
  Shape target_order = Shape{target.dim(kPlace)};
  for (const Dim& dim : index.shape)
    if (target.has(dim.name)) {
      target_batch.push_back(static_cast<std::int64_t>(target_order.rank()));
      index_batch.push_back(static_cast<std::int64_t>(index.shape.position(dim.name)));
      target_order = target_order.plus({dim});
    }
  target_order = target_order.plus(windows);
  const std::string attributes =
      str("{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = ", list_text(window_dims),
          ", inserted_window_dims = [0], input_batching_dims = ", list_text(target_batch),
          ", scatter_indices_batching_dims = ", list_text(index_batch),
          ", scatter_dims_to_operand_dims = [0], index_vector_dim = ", index.shape.rank(),
          ">, indices_are_sorted = false, unique_indices = false}");
  const Term zeros = w.number(0, wide, target_order);
  const Term sums =
      w.with_region("scatter", {zeros, index, updates}, {wide, wide},
                    [&](const Terms& xy) { return w.apply("add", xy); }, attributes, {{"", wide, target_order}})[0];
  block.define(instr.outputs[0], w.convert(w.transpose(sums, target), element));
}

}  // namespace weft::stablehlo
