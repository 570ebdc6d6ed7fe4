// cumsum: the running sum along a dim. On a split dim each processor scans its own run and adds what lies before it:
// one all_gather of a total per processor.
#include "ops/rules.h"

namespace weft {

namespace {

constexpr const char* kRank = "#rank";

// The sum of the totals of the processors before this one (after it, if reversed).
ValueId sum_of_others(Lowering& l, ValueId x, const std::string& dim, const Axes& axes, bool reverse) {
  Builder& b = l.builder;
  ValueType total = b.type(x);
  const std::size_t at = total.shape.position(dim);
  total.shape = total.shape.minus({total.shape[at]});
  total.sharding.dims.erase(total.sharding.dims.begin() + static_cast<std::ptrdiff_t>(at));
  const ValueId mine = b.emit_one(ReduceDims{Reduce::kSum}, {x}, total);

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
      {.op = "literal", .dtype = dtype, .literal = 0},
      {.op = "select", .args = {2, 3, 4}, .dtype = dtype},
  };
  const ValueId others = b.map(nodes, {me, all}, b.type(all));
  return b.reduce(Reduce::kSum, others, total);
}

std::vector<ValueId> lower_cumsum(Lowering& l) {
  const std::string dim = l.call.attr<Dim>("dim").name;
  const bool exclusive = l.call.attr<bool>("exclusive"), reverse = l.call.attr<bool>("reverse");
  const ValueId local = l.builder.emit_one(Scan{dim, Reduce::kSum, exclusive, reverse}, {l.inputs[0]}, l.out());
  const Axes& axes = l.axes_of(dim);
  if (axes.empty()) return {local};
  return {l.builder.map("add", {local, sum_of_others(l, l.inputs[0], dim, axes, reverse)}, l.out())};
}

const SampleInput kX{{{"a", 6}, {"b", 12}, {"c", 2}}, uniform(-1, 1), DType::kF32};
const Dim kB{"b", 12};

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
    .samples = {{{kX},
                 [](Graph&, const Tensors& x) {
                   return Tensors{cumsum(x[0], kB), cumsum(x[0], kB, true)};
                 }},
                {{kX},
                 [](Graph&, const Tensors& x) {
                   return Tensors{cumsum(x[0], kB, false, true), cumsum(x[0], kB, true, true)};
                 }},
                {{{kX.shape, whole(-9, 9), DType::kI32}},
                 [](Graph&, const Tensors& x) {
                   return Tensors{cumsum(x[0], {"a", 6})};
                 }}},
});

}  // namespace

Tensor cumsum(const Tensor& x, const Dim& dim, bool exclusive, bool reverse, Site site) {
  return apply(kCumsum, {x}, {{"dim", dim}, {"exclusive", exclusive}, {"reverse", reverse}}, site);
}

}  // namespace weft
