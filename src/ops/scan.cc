// cumsum and cummax: the running sum and maximum along a dim. On a split dim each processor scans its shard and joins
// it with the totals of the shards before it: one all_gather of a total per processor.
#include <limits>

#include "ops/rules.h"
#include "ops/samples.h"

namespace weft {

namespace {

constexpr const char* kRank = "#rank";

// The sum or maximum of the totals of the processors before this one (after it, if reversed); `none` stands for those
// that do not count.
ValueId total_of_others(Lowering& l, ValueId x, const std::string& dim, Reduce how, const Number& none, bool reverse) {
  const Axes& axes = l.axes_of(dim);
  Builder& b = l.builder;
  ValueType total = b.type(x);
  const std::size_t at = total.shape.position(dim);
  total.shape = total.shape.minus({total.shape[at]});
  total.sharding.dims.erase(total.sharding.dims.begin() + static_cast<std::ptrdiff_t>(at));
  const ValueId mine = b.emit_one(ReduceDims{how}, {x}, total);

  ValueType row = total;
  row.shape = Shape{{kRank, 1}}.plus(total.shape);
  row.sharding.dims.insert(row.sharding.dims.begin(), axes);
  const ValueId all = b.all_gather(b.reshape(mine, row.shape, row.sharding), kRank, axes);

  const ValueId me = b.axis_index(axes);
  const DType dtype = total.dtype;
  std::vector<MapNode> nodes = {
      {.op = "index", .dtype = DType::kI64, .dim = kRank},
      {.op = "input", .dtype = DType::kI64, .input = 0},
      {.op = reverse ? "greater" : "less", .args = {0, 1}, .dtype = DType::kBool},
      {.op = "input", .dtype = dtype, .input = 1},
      {.op = "literal", .dtype = dtype, .literal = none},
      {.op = "select", .args = {2, 3, 4}, .dtype = dtype},
  };
  const ValueId others = b.map(nodes, {me, all}, b.type(all));
  return b.reduce(how, others, total);
}

std::vector<ValueId> lower_cumsum(Lowering& l) {
  const std::string dim = l.call.attr<Dim>("dim").name;
  const bool exclusive = l.call.attr<bool>("exclusive"), reverse = l.call.attr<bool>("reverse");
  const ValueId local = l.builder.emit_one(Scan{dim, Reduce::kSum, exclusive, reverse}, {l.inputs[0]}, l.out());
  if (l.axes_of(dim).empty()) return {local};
  const ValueId others = total_of_others(l, l.inputs[0], dim, Reduce::kSum, 0, reverse);
  return {l.builder.map("add", {local, others}, l.out())};
}

// No element of the dtype is lower.
Number lowest(DType dtype) {
  switch (dtype) {
    case DType::kI32: return std::numeric_limits<std::int32_t>::min();
    case DType::kI64: return std::numeric_limits<std::int64_t>::min();
    case DType::kI8: return std::numeric_limits<std::int8_t>::min();
    case DType::kU32:
    case DType::kU8:
    case DType::kBool: return 0;
    default: return -std::numeric_limits<double>::infinity();
  }
}

std::vector<ValueId> lower_cummax(Lowering& l) {
  const std::string dim = l.call.attr<Dim>("dim").name;
  const bool reverse = l.call.attr<bool>("reverse");
  const ValueId local = l.builder.emit_one(Scan{dim, Reduce::kMax, false, reverse}, {l.inputs[0]}, l.out());
  if (l.axes_of(dim).empty()) return {local};
  const Number none = lowest(l.call.inputs[0].dtype);
  const ValueId others = total_of_others(l, l.inputs[0], dim, Reduce::kMax, none, reverse);
  return {l.builder.map("maximum", {local, others}, l.out())};
}

// Each dy goes to the element that was the largest so far; of equals to the first that was met.
Tensors gradient_of_cummax(const Grad& g) {
  const Dim dim = g.attr<Dim>("dim");
  const bool reverse = g.attr<bool>("reverse");
  const Site site = g.site();
  // Places are counted from where the scan begins.
  Tensor place = iota(Graph(g.dy().graph()), dim, DType::kI32, site);
  if (reverse) place = subtract(dim.size - 1, place, site);
  const Tensor before = shift(g.y(), dim, reverse ? -1 : 1, false, site);
  const Tensor is_first = logical_or(equal(place, 0, site), greater(g.x(0), before, site), site);
  Tensor winner = cummax(select(is_first, broadcast(place, g.dy().shape(), site), 0, site), dim, reverse, site);
  if (reverse) winner = subtract(dim.size - 1, winner, site);
  return {put_along(g.dy(), winner, dim, site)};
}

const OpDef& kCumsum = define_op({
    .name = "cumsum",
    .doc = "The running sum along a dim, inclusive or exclusive, from either end.",
    .shape =
        [](const OpCall& call) {
          shape_rule::expect_dim(call, call.in(), call.attr<Dim>("dim"));
          return std::vector<TensorType>{call.inputs[0]};
        },
    .sharding = sharding_rule::talks_along("dim"),
    .gradient = [](const Grad& g) -> Tensors {
      return {cumsum(g.dy(), g.attr<Dim>("dim"), g.attr<bool>("exclusive"), !g.attr<bool>("reverse"), g.site())};
    },
    .lower = lower_cumsum,
    .flops = flops_rule::per_element(1),
    .samples = {{{kSampleInput},
                 [](Graph&, const Tensors& x) {
                   return Tensors{cumsum(x[0], kSampleDim), cumsum(x[0], kSampleDim, true)};
                 }},
                {{kSampleInput},
                 [](Graph&, const Tensors& x) {
                   return Tensors{cumsum(x[0], kSampleDim, false, true), cumsum(x[0], kSampleDim, true, true)};
                 }},
                {{{kSampleInput.shape, whole(-9, 9), DType::kI32}},
                 [](Graph&, const Tensors& x) {
                   return Tensors{cumsum(x[0], {"a", 6})};
                 }}},
});

const OpDef& kCummax = define_op({
    .name = "cummax",
    .doc = "The largest element so far along a dim, from either end. NaN wins.",
    .shape =
        [](const OpCall& call) {
          shape_rule::expect_dim(call, call.in(), call.attr<Dim>("dim"));
          return std::vector<TensorType>{call.inputs[0]};
        },
    .sharding = sharding_rule::talks_along("dim"),
    .gradient = gradient_of_cummax,
    .lower = lower_cummax,
    .flops = flops_rule::per_element(1),
    .samples = {{{kSampleInput},
                 [](Graph&, const Tensors& x) {
                   return Tensors{cummax(x[0], kSampleDim), cummax(x[0], kSampleDim, true)};
                 }},
                {{{kSampleInput.shape, whole(-9, 9), DType::kI32}},
                 [](Graph&, const Tensors& x) {
                   return Tensors{cummax(x[0], {"a", 6}), cummax(x[0], kSampleDim, true)};
                 }}},
});

}  // namespace

Tensor cummax(const Tensor& x, const DimRef& dim, bool reverse, Site site) {
  return apply(kCummax, {x}, {{"dim", dim.in(x, site)}, {"reverse", reverse}}, site);
}

Tensor cumsum(const Tensor& x, const DimRef& dim, bool exclusive, bool reverse, Site site) {
  return apply(kCumsum, {x}, {{"dim", dim.in(x, site)}, {"exclusive", exclusive}, {"reverse", reverse}}, site);
}

}  // namespace weft
