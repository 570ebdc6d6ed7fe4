// split: a tensor in equal ranges of one dim. It is one op with many results, so its gradient is one concat. Slices
// would give a sum of as many padded tensors.
#include "base/str.h"
#include "language/shape_math.h"
#include "ops/exchange.h"
#include "ops/rules.h"
#include "ops/samples.h"

namespace weft {

namespace {

std::vector<TensorType> split_type(const OpCall& call) {
  const Dim dim = call.attr<Dim>("dim");
  const auto parts = call.attr<std::int64_t>("parts");
  shape_rule::expect_dim(call, call.in(), dim);
  return std::vector(static_cast<std::size_t>(parts),
                     TensorType{call.in().resized(dim.name, dim.size / parts), call.inputs[0].dtype});
}

std::vector<ValueId> lower_split(Lowering& l) {
  const std::string dim = l.call.attr<Dim>("dim").name;
  const std::int64_t size = l.call.out().size_of(dim);
  std::vector<ValueId> parts;
  for (std::size_t i = 0; i < l.call.outputs.size(); ++i)
    parts.push_back(
        assemble(l.builder, dim, size, l.axes_of(dim), {{l.inputs[0], static_cast<std::int64_t>(i) * size, size, 0}}));
  return parts;
}

const OpDef& kSplit = define_op({
    .name = "split",
    .doc = "A tensor in equal runs of one dim.",
    .shape = split_type,
    .sharding = sharding_rule::talks_along("dim"),
    .gradient = [](const Grad& g) -> Tensors { return {concat(g.dys(), g.attr<Dim>("dim").name, g.site())}; },
    .lower = lower_split,
    .flops = flops_rule::none(),
    .samples = {{{kSampleInput}, [](Graph&, const Tensors& x) { return split(x[0], kSampleDim, 3); }},
                {{kSampleInput},
                 [](Graph&, const Tensors& x) {
                   return unstack(x[0], {"c", 2});
                 }},
                {{kSampleInput}, [](Graph&, const Tensors& x) { return Tensors{split(x[0], kSampleDim, 2)[1]}; }}},
});

// Rows have size one, which no axis divides: stacking and unstacking use a separate dim that no layout names.
constexpr const char* kRow = "#row";

}  // namespace

Tensors split(const Tensor& x, const DimRef& along, int parts, Site site) {
  const Dim dim = along.in(x, site);
  if (parts < 1 || dim.size % parts != 0)
    throw UserError({.code = "split.uneven-parts",
                     .what = str("cannot split dim ", dim, " into ", parts, " parts"),
                     .where = str("split at ", to_string(site)),
                     .fix = "give a number of parts that divides the size"});
  return apply_all(kSplit, {x}, {{"dim", dim}, {"parts", static_cast<std::int64_t>(parts)}}, site);
}

Tensor stack(const Tensors& xs, const std::string& dim, Site site) {
  if (is_own_dim(dim))
    throw UserError({.code = "stack.reserved-dim",
                     .what = str("stack along '", dim, "', but dim names that begin with '", kOwnDim,
                                 "' are reserved for the library"),
                     .where = str("stack at ", to_string(site)),
                     .fix = "give the new dim another name"});
  Tensors rows;
  {
    const OwnDimsGuard own(xs.empty() ? nullptr : xs[0].graph());
    for (const Tensor& x : xs) rows.push_back(reshape(x, Shape{{kRow, 1}}.plus(x.shape()), site));
  }
  return rename(concat(rows, kRow, site), {kRow, static_cast<std::int64_t>(xs.size())}, dim, site);
}

Tensors unstack(const Tensor& x, const DimRef& along, Site site) {
  const Dim dim = along.in(x, site);
  const OwnDimsGuard own(x.graph());
  Tensors results;
  const Dim rows{kRow, dim.size};
  for (const Tensor& row : split(rename(x, dim, kRow, site), rows, static_cast<int>(dim.size), site))
    results.push_back(reshape(row, x.shape().minus({dim}), site));
  return results;
}

}  // namespace weft
