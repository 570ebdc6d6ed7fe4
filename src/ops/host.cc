// print and scalar_metric: values sent to the host. A split value is gathered for it; explain lists the gather.
#include "base/str.h"
#include "ops/rules.h"

namespace weft {

namespace {

std::vector<ValueId> lower_host(Lowering& l) {
  const ValueId whole = l.context.reshard(l.inputs[0], unsplit(l.call.in()));
  l.builder.emit(Host{l.call.attr<std::string>("what"), l.call.attr<std::string>("text")},
                 {l.builder.dense(whole, l.builder.value(whole).shape)}, {});
  return {l.inputs[0]};
}

const OpDef& kHost = define_op({
    .name = "host",
    .doc = "x itself; the host also gets it, to print or to report.",
    .shape = shape_rule::same_as(0),
    .sharding = sharding_rule::pointwise(),
    .gradient = [](const Grad& g) -> Tensors { return {g.dy()}; },
    .lower = lower_host,
    .flops = flops_rule::none(),
    .samples = {{{{{{"a", 6}, {"b", 4}}, uniform(-1, 1), DType::kF32}},
                 [](Graph&, const Tensors& x) { return Tensors{print(x[0], "x")}; }}},
});

Tensor hand_over(const Tensor& x, const std::string& what, const std::string& text, Site site) {
  return apply(kHost, {x}, {{"what", what}, {"text", text}}, site);
}

}  // namespace

Tensor print(const Tensor& x, const std::string& label, Site site) { return hand_over(x, "print", label, site); }

void scalar_metric(const std::string& name, const Tensor& x, Site site) {
  if (!x.shape().empty())
    throw UserError({.code = "metric.not-scalar",
                     .what = str("metric '", name, "' of '", x.name(), "' ", x.shape(), " is not a scalar"),
                     .where = str("scalar_metric at ", to_string(site)),
                     .fix = "reduce it first, for instance with mean()"});
  if (x.graph()->loop >= 0)
    throw UserError({.code = "metric.inside-loop",
                     .what = str("metric '", name, "' is inside the body of a loop"),
                     .where = str("scalar_metric at ", to_string(site)),
                     .fix = "return it from the body, carried or summed, and report the result of loop()"});
  for (const TensorId id : x.graph()->metrics)
    if (const Node& other = x.graph()->node(id); other.attrs.get<std::string>("text") == name)
      throw UserError({.code = "metric.duplicate-name",
                       .what = str("there is a metric '", name, "' already, at ", to_string(other.site)),
                       .where = str("scalar_metric at ", to_string(site)),
                       .fix = "give the metric another name"});
  x.graph()->metrics.push_back(hand_over(x, "metric", name, site).id());
}

}  // namespace weft
