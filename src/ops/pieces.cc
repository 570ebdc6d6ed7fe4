// slice, pad, concat, shift: move ranges of elements along one dim, split or not.
#include <algorithm>

#include "base/str.h"
#include "ops/exchange.h"
#include "ops/rules.h"
#include "ops/samples.h"

namespace weft {

namespace {

Dim dim_of(const OpCall& call) { return call.attr<Dim>("dim"); }

ValueId assembled(Lowering& l, const std::vector<Piece>& pieces) {
  const std::string dim = dim_of(l.call).name;
  return assemble(l.builder, dim, l.call.out().size_of(dim), l.axes_of(dim), pieces);
}

// --- slice ---

std::vector<TensorType> static_slice_type(const OpCall& call) {
  const Dim dim = dim_of(call);
  shape_rule::expect_dim(call, call.in(), dim);
  const auto begin = call.attr<std::int64_t>("begin"), size = call.attr<std::int64_t>("size");
  if (begin < 0 || size < 1 || begin > dim.size - size)
    throw UserError({.code = "slice.out-of-range",
                     .what = str("slice takes ", size, " elements from ", begin, " on of dim ", dim),
                     .where = call.where(),
                     .fix = str("stay within 0 and ", dim.size, ", with at least one element")});
  return {{call.in().resized(dim.name, size), call.inputs[0].dtype}};
}

const OpDef& kSlice = define_op({
    .name = "slice",
    .doc = "A run of elements of one dim.",
    .shape = static_slice_type,
    .sharding = sharding_rule::talks_along("dim"),
    .gradient = [](const Grad& g) -> Tensors {
      const std::int64_t begin = g.attr<std::int64_t>("begin"), size = g.attr<std::int64_t>("size");
      const Dim dim = g.attr<Dim>("dim");
      return {pad(g.dy(), {dim.name, size}, begin, dim.size - begin - size, g.site())};
    },
    .lower = [](Lowering& l) -> std::vector<ValueId> {
      const auto size = l.call.attr<std::int64_t>("size");
      return {assembled(l, {{l.inputs[0], l.call.attr<std::int64_t>("begin"), size, 0}})};
    },
    .flops = flops_rule::none(),
    .samples = {{{kSampleInput}, [](Graph&, const Tensors& x) { return Tensors{slice(x[0], kSampleDim, 1, 4)}; }},
                {{kSampleInput},
                 [](Graph&, const Tensors& x) {
                   return Tensors{slice(x[0], kSampleDim, 8, 4), slice(x[0], kSampleDim, 0, 6)};
                 }}},
});

// --- pad ---

std::vector<TensorType> pad_type(const OpCall& call) {
  const Dim dim = dim_of(call);
  shape_rule::expect_dim(call, call.in(), dim);
  const auto before = call.attr<std::int64_t>("before"), after = call.attr<std::int64_t>("after");
  if (before < 0 || after < 0 || before > kMostElements || after > kMostElements)
    throw UserError({.code = "pad.bad-padding",
                     .what = str("cannot pad dim ", dim, " by ", before, " before and ", after, " after"),
                     .where = call.where(),
                     .fix = before < 0 || after < 0 ? "give padding of at least 0; use slice() to cut"
                                                    : str("give at most ", kMostElements)});
  return {{call.in().resized(dim.name, before + dim.size + after), call.inputs[0].dtype}};
}

const OpDef& kPad = define_op({
    .name = "pad",
    .doc = "Zeros before and after along one dim.",
    .shape = pad_type,
    .sharding = sharding_rule::talks_along("dim"),
    .gradient = [](const Grad& g) -> Tensors {
      const Dim dim = g.attr<Dim>("dim");
      return {slice(g.dy(), g.dy().shape().dim(dim.name), g.attr<std::int64_t>("before"), dim.size, g.site())};
    },
    .lower = [](Lowering& l) -> std::vector<ValueId> {
      return {assembled(l, {{l.inputs[0], 0, dim_of(l.call).size, l.call.attr<std::int64_t>("before")}})};
    },
    .flops = flops_rule::none(),
    .samples = {{{kSampleInput}, [](Graph&, const Tensors& x) { return Tensors{pad(x[0], kSampleDim, 3, 9)}; }},
                {{kSampleInput}, [](Graph&, const Tensors& x) { return Tensors{pad(x[0], kSampleDim, 0, 12)}; }}},
});

// --- concat ---

std::vector<TensorType> concat_type(const OpCall& call) {
  const std::string name = dim_of(call).name;
  shape_rule::expect_same_dtypes(call);
  std::int64_t size = 0;
  for (const TensorType& input : call.inputs) {
    if (!input.shape.has(name) || !same_dims(input.shape.resized(name, 1), call.in().resized(name, 1)))
      throw UserError({.code = "concat.shapes-differ",
                       .what = str("cannot concat along '", name, "' of ", call.in(), " and ", input.shape),
                       .where = call.where(),
                       .fix = str("give tensors with the same dims and sizes except '", name, "'")});
    size += input.shape.size_of(name);
  }
  return {{call.in().resized(name, size), call.inputs[0].dtype}};
}

Tensors concat_gradient(const Grad& g) {
  const std::string name = g.attr<Dim>("dim").name;
  Tensors dxs;
  std::int64_t begin = 0;
  for (const Tensor& x : g.xs()) {
    const std::int64_t size = x.shape().size_of(name);
    dxs.push_back(transpose(slice(g.dy(), g.y().shape().dim(name), begin, size, g.site()), x.shape(), g.site()));
    begin += size;
  }
  return dxs;
}

std::vector<ValueId> lower_concat(Lowering& l) {
  const std::string name = dim_of(l.call).name;
  std::vector<Piece> pieces;
  std::int64_t to = 0;
  for (std::size_t i = 0; i < l.inputs.size(); ++i) {
    const std::int64_t size = l.call.in(i).size_of(name);
    // All sources in the first one's dim order.
    std::vector<Dim> order = l.builder.value(l.inputs[0]).shape.dims();
    order[l.call.in().position(name)].size = l.builder.value(l.inputs[i]).shape.size_of(name);
    pieces.push_back({l.builder.dense(l.inputs[i], order), 0, size, to});
    to += size;
  }
  return {assembled(l, pieces)};
}

const OpDef& kConcat = define_op({
    .name = "concat",
    .doc = "Tensors one after another along one dim.",
    .shape = concat_type,
    .sharding = sharding_rule::talks_along("dim"),
    .gradient = concat_gradient,
    .lower = lower_concat,
    .flops = flops_rule::none(),
    .samples = {{{kSampleInput, {{{"a", 6}, {"b", 4}, {"c", 2}}, uniform(-1, 1), DType::kF32}},
                 [](Graph&, const Tensors& x) {
                   return Tensors{concat({x[1], x[0], x[1], x[1]}, "b")};
                 }},
                {{kSampleInput, {{{"c", 2}, {"b", 12}, {"a", 6}}, uniform(-1, 1), DType::kF32}},
                 [](Graph&, const Tensors& x) { return Tensors{concat(x, "b")}; }},
                {{kSampleInput, kSampleInput}, [](Graph&, const Tensors& x) { return Tensors{stack(x, "s")}; }}},
});

// --- shift ---

// The ranges of a dim of `size` that stay inside when moved by `offset`.
std::vector<Piece> shifted(ValueId x, std::int64_t size, std::int64_t offset, bool wrap) {
  if (wrap) {
    const std::int64_t by = ((offset % size) + size) % size;
    if (by == 0) return {{x, 0, size, 0}};
    return {{x, 0, size - by, by}, {x, size - by, by, 0}};
  }
  if (offset >= size || offset <= -size) return {};
  return {{x, offset < 0 ? -offset : 0, size - (offset < 0 ? -offset : offset), offset < 0 ? 0 : offset}};
}

const OpDef& kShift = define_op({
    .name = "shift",
    .doc = "Moves elements along one dim by a fixed offset, wrapping or filling with zeros.",
    .shape =
        [](const OpCall& call) {
          shape_rule::expect_dim(call, call.in(), dim_of(call));
          return std::vector<TensorType>{call.inputs[0]};
        },
    .sharding = sharding_rule::talks_along("dim"),
    .gradient = [](const Grad& g) -> Tensors {
      return {shift(g.dy(), g.attr<Dim>("dim"), -g.attr<std::int64_t>("offset"), g.attr<bool>("wrap"), g.site())};
    },
    .lower = [](Lowering& l) -> std::vector<ValueId> {
      const std::vector<Piece> pieces =
          shifted(l.inputs[0], dim_of(l.call).size, l.call.attr<std::int64_t>("offset"), l.call.attr<bool>("wrap"));
      if (pieces.empty()) return {l.builder.fill(0, l.out())};
      return {assembled(l, pieces)};
    },
    .flops = flops_rule::none(),
    .samples = {{{kSampleInput},
                 [](Graph&, const Tensors& x) {
                   return Tensors{shift(x[0], kSampleDim, 2), shift(x[0], kSampleDim, 2, true)};
                 }},
                {{kSampleInput},
                 [](Graph&, const Tensors& x) {
                   return Tensors{shift(x[0], kSampleDim, -5), shift(x[0], kSampleDim, -7, true)};
                 }},
                {{kSampleInput},
                 [](Graph&, const Tensors& x) {
                   return Tensors{shift(x[0], kSampleDim, 6, true), shift(x[0], kSampleDim, 13)};
                 }}},
});

}  // namespace

Tensor slice(const Tensor& x, const DimRef& dim, std::int64_t begin, std::int64_t size, Site site) {
  return apply(kSlice, {x}, {{"dim", dim.in(x, site)}, {"begin", begin}, {"size", size}}, site);
}

Tensor pad(const Tensor& x, const DimRef& dim, std::int64_t before, std::int64_t after, Site site) {
  return apply(kPad, {x}, {{"dim", dim.in(x, site)}, {"before", before}, {"after", after}}, site);
}

Tensor concat(const Tensors& xs, const DimRef& dim, Site site) {
  return apply(kConcat, xs, {{"dim", Dim{dim.name(), 1}}}, site);
}

Tensor shift(const Tensor& x, const DimRef& along, std::int64_t offset, bool wrap, Site site) {
  const Dim dim = along.in(x, site);
  // At most the complete size, so that the opposite offset exists.
  const std::int64_t size = std::max<std::int64_t>(dim.size, 1);
  const std::int64_t by = wrap ? offset % size : std::clamp(offset, -size, size);
  return apply(kShift, {x}, {{"dim", dim}, {"offset", by}, {"wrap", wrap}}, site);
}

}  // namespace weft
