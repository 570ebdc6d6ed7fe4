// The operations of Writer that move or sum elements.
#include <algorithm>

#include "base/index.h"
#include "base/str.h"
#include "stablehlo/writer.h"

namespace weft::stablehlo {

namespace {

// Where the dims of `from` are in `in`.
Sizes positions(const Shape& from, const Shape& in) {
  Sizes all;
  for (const Dim& dim : from) all.push_back(static_cast<std::int64_t>(in.position(dim.name)));
  return all;
}

std::string arrow(const Terms& operands, Element element, const Shape& shape) {
  return str(" : (", types_text(operands), ") -> ", type_text(element, shape));
}

}  // namespace

// XLA wants the dims of x in the order that they have in the result.
Term Writer::broadcast(const Term& given, const Shape& shape) {
  if (given.shape == shape) return given;
  Shape order;
  for (const Dim& dim : shape)
    if (given.shape.has(dim.name)) order = order.plus({dim});
  const Term x = transpose(given, order);
  if (order == shape) return x;
  return emit(x.element, shape,
              str("stablehlo.broadcast_in_dim ", x.id, ", dims = ", list_text(positions(x.shape, shape)),
                  arrow({x}, x.element, shape)));
}

Term Writer::transpose(const Term& x, const Shape& order) {
  if (x.shape == order) return x;
  return emit(x.element, order,
              str("stablehlo.transpose ", x.id, ", dims = ", list_text(positions(order, x.shape)),
                  arrow({x}, x.element, order)));
}

Term Writer::reshape(const Term& x, const Shape& shape) {
  bool same = x.shape.rank() == shape.rank();
  for (std::size_t i = 0; same && i < shape.rank(); ++i) same = x.shape[i].size == shape[i].size;
  if (same) return {x.id, x.element, shape};
  return emit(x.element, shape, str("stablehlo.reshape ", x.id, arrow({x}, x.element, shape)));
}

Term Writer::rename(const Term& x, std::string_view from, const std::string& to) {
  return {x.id, x.element, x.shape.renamed(from, to)};
}

Term Writer::slice(const Term& x, std::string_view dim, std::int64_t begin, std::int64_t end, std::int64_t step) {
  if (begin == 0 && end == x.shape.size_of(dim) && step == 1) return x;
  std::vector<std::string> ranges;
  for (const Dim& d : x.shape)
    if (d.name != dim) ranges.push_back(str("0:", d.size));
    else ranges.push_back(step == 1 ? str(begin, ":", end) : str(begin, ":", end, ":", step));
  const Shape shape = x.shape.resized(dim, (end - begin + step - 1) / step);
  return emit(x.element, shape,
              str("stablehlo.slice ", x.id, " [", join(ranges, ", "), "]", arrow({x}, x.element, shape)));
}

// Negative padding is written as a slice: XLA's CPU compiler reads behind the end of an operand that a fusion pads so
// (xla-cpu-pjrt 0.0.1).
Term Writer::pad(const Term& given, const Term& with, const std::vector<Padding>& dims) {
  Term x = given;
  Sizes low, high, interior;
  std::vector<Dim> sizes = x.shape.dims();
  bool changes = false, all_cut = false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const Padding& p = dims[i];
    const std::int64_t spread = sizes[i].size + p.interior * (sizes[i].size - 1);
    all_cut = all_cut || -p.low >= spread || -p.high >= spread;
    low.push_back(std::max<std::int64_t>(p.low, 0));
    high.push_back(std::max<std::int64_t>(p.high, 0));
    interior.push_back(p.interior);
    sizes[i].size = spread + p.low + p.high;
    changes = changes || low[i] != 0 || high[i] != 0 || p.interior != 0;
  }
  const Shape shape(std::move(sizes));
  if (all_cut) return broadcast(with, shape);
  const auto cut = [&](bool after) {
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if ((dims[i].interior > 0) != after) continue;  // what is spread out is cut afterwards
      const std::int64_t begin = std::max<std::int64_t>(-dims[i].low, 0), size = x.shape[i].size;
      x = slice(x, x.shape[i].name, begin, size - std::max<std::int64_t>(-dims[i].high, 0));
    }
  };
  cut(false);
  if (changes) {
    std::vector<Dim> padded;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const Dim& d = x.shape[i];
      padded.push_back({d.name, d.size + interior[i] * (d.size - 1) + low[i] + high[i]});
    }
    const Shape wide(std::move(padded));
    x = emit(x.element, wide,
             str("stablehlo.pad ", x.id, ", ", with.id, ", low = ", list_text(low), ", high = ", list_text(high),
                 ", interior = ", list_text(interior), arrow({x, with}, x.element, wide)));
  }
  cut(true);
  return x;
}

Term Writer::concatenate(const Terms& parts, std::string_view dim) {
  if (parts.size() == 1) return parts[0];
  std::int64_t size = 0;
  for (const Term& part : parts) size += part.shape.size_of(dim);
  const Shape shape = parts[0].shape.resized(dim, size);
  return emit(parts[0].element, shape,
              str("stablehlo.concatenate ", ids_text(parts), ", dim = ", shape.position(dim),
                  arrow(parts, parts[0].element, shape)));
}

Term Writer::reverse(const Term& x, const std::vector<std::string>& dims) {
  Sizes at;
  for (const std::string& dim : dims) at.push_back(static_cast<std::int64_t>(x.shape.position(dim)));
  return at.empty() ? x
                    : emit(x.element, x.shape,
                           str("stablehlo.reverse ", x.id, ", dims = ", list_text(at), " : ", type_text(x)));
}

Term Writer::dynamic_slice(const Term& x, std::string_view dim, const Term& begin, std::int64_t size) {
  const Shape shape = x.shape.resized(dim, size);
  Terms operands = {x};
  Sizes sizes;
  const Term zero = x.shape.rank() > 1 ? number(0, begin.element) : begin;
  for (const Dim& d : shape) {
    operands.push_back(d.name == dim ? begin : zero);
    sizes.push_back(d.size);
  }
  return emit(x.element, shape,
              str("stablehlo.dynamic_slice ", ids_text(operands), ", sizes = ", list_text(sizes),
                  arrow(operands, x.element, shape)));
}

Term Writer::dynamic_update(const Term& x, const Term& piece, std::string_view dim, const Term& begin) {
  Terms operands = {x, piece};
  const Term zero = x.shape.rank() > 1 ? number(0, begin.element) : begin;
  for (const Dim& d : x.shape) operands.push_back(d.name == dim ? begin : zero);
  return emit(x.element, x.shape,
              str("stablehlo.dynamic_update_slice ", ids_text(operands), arrow(operands, x.element, x.shape)));
}

Term Writer::reduce(const Term& x, Reduce how, const Shape& out) {
  Sizes gone;
  Shape kept;
  for (std::size_t i = 0; i < x.shape.rank(); ++i)
    if (out.has(x.shape[i].name)) kept = kept.plus({x.shape[i]});
    else gone.push_back(static_cast<std::int64_t>(i));
  if (gone.empty()) return transpose(x, out);
  const Term start = number(start_of(how, x.element), x.element);
  return transpose(
      emit(x.element, kept,
           str("stablehlo.reduce(", x.id, " init: ", start.id, ") applies stablehlo.", join_of(how, x.element),
               " across dimensions = ", list_text(gone), arrow({x, start}, x.element, kept))),
      out);
}

Term Writer::contract(const Term& x, const Term& y, const Shape& out, Element element) {
  Shape batch, summed, order;
  for (const Dim& dim : x.shape)
    if (y.shape.has(dim.name)) (out.has(dim.name) ? batch : summed) = (out.has(dim.name) ? batch : summed).plus({dim});
  order = batch.plus(x.shape.minus(batch).minus(summed)).plus(y.shape.minus(batch).minus(summed));
  const std::string precision = x.element == "f32" ? ", precision = [HIGHEST, HIGHEST]" : "";
  const std::string batching = batch.empty() ? ""
                                             : str(", batching_dims = ", list_text(positions(batch, x.shape)), " x ",
                                                   list_text(positions(batch, y.shape)));
  return transpose(emit(element, order,
                        str("stablehlo.dot_general ", x.id, ", ", y.id, batching,
                            ", contracting_dims = ", list_text(positions(summed, x.shape)), " x ",
                            list_text(positions(summed, y.shape)), precision, arrow({x, y}, element, order))),
                   out);
}

}  // namespace weft::stablehlo
