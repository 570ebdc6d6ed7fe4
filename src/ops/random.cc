// Random numbers, keyed by the op's name and each element's global index: the same under every layout.
#include "base/str.h"
#include "ops/rules.h"

namespace weft {

namespace {

const OpDef& random_op(const std::string& name, const std::string& doc, Distribution distribution, double a, double b) {
  const auto build = [name, a, b](Graph& g, const Tensors&) -> Tensors {
    const Shape shape{{"a", 6}, {"b", 4}};
    if (name == "random_uniform") return {random_uniform(g, shape, a, b)};
    if (name == "random_normal") return {random_normal(g, shape, a, b)};
    if (name == "random_bernoulli") return {random_bernoulli(g, shape, a)};
    return {random_truncated_normal(g, shape, a, b)};
  };
  return define_op({
      .name = name,
      .doc = doc,
      .shape = [](const OpCall& call) { return std::vector<TensorType>{call.attr<TensorType>("type")}; },
      .sharding = sharding_rule::pointwise(),
      .gradient = [](const Grad& g) { return Tensors(g.xs().size()); },
      .lower = [distribution](Lowering& l) -> std::vector<ValueId> {
        return {l.builder.emit_one(Random{distribution, l.call.attr<double>("a"), l.call.attr<double>("b"), l.key},
                                   l.inputs, l.out())};
      },
      .flops = flops_rule::per_element(10),
      .samples = {{{}, build}},
  });
}

const OpDef& kUniform = random_op("random_uniform", "Uniform in [low, high).", Distribution::kUniform, -1, 2);
const OpDef& kNormal = random_op("random_normal", "Normal.", Distribution::kNormal, 1, 2);
const OpDef& kTruncated =
    random_op("random_truncated_normal", "Normal, within two deviations.", Distribution::kTruncatedNormal, 0, 1);
const OpDef& kBernoulli =
    random_op("random_bernoulli", "1 with a given probability, else 0.", Distribution::kBernoulli, 0.3, 0);

// In a loop the iteration is an operand: draws differ between iterations, and a recomputed iteration draws the same
// numbers.
Tensor draw(const Graph& g, const OpDef& op, const Shape& shape, double a, double b, DType dtype, Site site) {
  const int loop = g.data()->loop;
  Tensors iteration;
  if (loop >= 0) iteration.emplace_back(g.data(), g.data()->loops[static_cast<std::size_t>(loop)].iteration);
  return apply_all(g, op, iteration, {{"type", TensorType{shape, dtype}}, {"a", a}, {"b", b}}, site)[0];
}

}  // namespace

Tensor random_uniform(const Graph& g, const Shape& shape, double low, double high, DType dtype, Site site) {
  if (!(low < high))
    throw UserError({.code = "random-uniform.empty-range",
                     .what = str("random_uniform draws from [", low, ", ", high, ")"),
                     .where = str("random_uniform at ", to_string(site)),
                     .fix = "give a lower end below the upper end"});
  return draw(g, kUniform, shape, low, high, dtype, site);
}
Tensor random_normal(const Graph& g, const Shape& shape, double mean, double deviation, DType dtype, Site site) {
  return draw(g, kNormal, shape, mean, deviation, dtype, site);
}
Tensor random_truncated_normal(const Graph& g, const Shape& shape, double mean, double deviation, DType dtype,
                               Site site) {
  return draw(g, kTruncated, shape, mean, deviation, dtype, site);
}
Tensor random_bernoulli(const Graph& g, const Shape& shape, double probability, DType dtype, Site site) {
  if (!(probability >= 0 && probability <= 1))
    throw UserError({.code = "random-bernoulli.bad-probability",
                     .what = str("random_bernoulli gives 1 with probability ", probability),
                     .where = str("random_bernoulli at ", to_string(site)),
                     .fix = "give a probability from 0 to 1"});
  return draw(g, kBernoulli, shape, probability, 0, dtype, site);
}

Tensor random_gumbel(const Graph& g, const Shape& shape, DType dtype, Site site) {
  const Tensor uniform = random_uniform(g, shape, 1e-9, 1, DType::kF32, site);
  const Tensor gumbel = negative(log(negative(log(uniform, site), site), site), site);
  return dtype == DType::kF32 ? gumbel : cast(gumbel, dtype, site);
}

Tensor multiplicative_jitter(const Tensor& x, double epsilon, Site site) {
  if (!(epsilon >= 0))
    throw UserError({.code = "multiplicative-jitter.bad-epsilon",
                     .what = str("multiplicative_jitter cannot use epsilon ", epsilon),
                     .where = str("multiplicative_jitter at ", to_string(site)),
                     .fix = "give a number of at least 0"});
  if (epsilon == 0) return x;
  return multiply(x, random_uniform(Graph(x.graph()), x.shape(), 1 - epsilon, 1 + epsilon, x.dtype(), site), site);
}

namespace {

void expect_noise_dims(const Tensor& x, const Shape& noise_shape, Site site) {
  for (const Dim& dim : noise_shape)
    if (!x.shape().has(dim))
      throw UserError(
          {.code = "dropout.unknown-dim",
           .what = str("dropout draws along dim ", dim, ", which '", x.name(), "' ", x.shape(), " does not have"),
           .where = str("dropout at ", to_string(site)),
           .fix = "name dims of the tensor, with their sizes; all other dims share one draw"});
}

}  // namespace

Tensor dropout(const Tensor& x, double keep, const DimRefs& noise_dims, Site site) {
  const Shape noise_shape = noise_dims.in(x, site);
  if (keep <= 0 || keep > 1)
    throw UserError({.code = "dropout.bad-probability",
                     .what = str("dropout keeps elements with probability ", keep),
                     .where = str("dropout at ", to_string(site)),
                     .fix = "give a probability above 0 and at most 1"});
  expect_noise_dims(x, noise_shape, site);
  if (keep == 1) return x;
  const Tensor kept = random_bernoulli(Graph(x.graph()), noise_shape, keep, DType::kBool, site);
  return select(kept, multiply(x, 1 / keep, site), 0.0, site);
}
Tensor dropout(const Tensor& x, double keep, Site site) { return dropout(x, keep, x.shape(), site); }

Tensor dropout(const Tensor& x, const Tensor& keep, const DimRefs& noise_dims, Site site) {
  const Shape noise_shape = noise_dims.in(x, site);
  if (keep.dtype() != DType::kF32 || !keep.shape().empty())
    throw UserError({.code = "dropout.bad-probability-tensor",
                     .what = str("dropout keeps elements with a probability that is ", keep.dtype(), " ", keep.shape()),
                     .where = str("dropout at ", to_string(site)),
                     .fix = "give an f32 scalar"});
  expect_noise_dims(x, noise_shape, site);
  const Tensor kept = less(random_uniform(Graph(x.graph()), noise_shape, 0, 1, DType::kF32, site), keep, site);
  const Tensor scale = reciprocal(keep, site);
  const Tensor scaled = multiply(x, x.dtype() == DType::kF32 ? scale : cast(scale, x.dtype(), site), site);
  return select(kept, scaled, 0.0, site);
}
Tensor dropout(const Tensor& x, const Tensor& keep, Site site) { return dropout(x, keep, x.shape(), site); }

}  // namespace weft
