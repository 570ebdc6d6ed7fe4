// Attention over attend(). Under a layout that splits `length`, the renames in self_attention gather keys and values.
#include <cmath>

#include "weft/nn.h"

namespace weft::nn {

namespace {

Tensor product(const Tensor& x, const Dim& model, const Shape& made, const Init& init, const ProjectionOptions& options,
               const std::string& name, Site site) {
  return dense(x, made,
               {.reduced = {model}, .bias = false, .kernel_init = init, .variables = options.variables, .name = name},
               site);
}

Init kernel_init(const Dim& model, const Shape& made, const ProjectionOptions& options) {
  return options.kernel_init.value_or(init::variance_scaling(1, init::Fan::kIn, {model}, made));
}

// The factor that makes the initial values of q smaller.
double query_scale(const Heads& heads, const ProjectionOptions& options) {
  return options.fold_scaling ? 1 / std::sqrt(static_cast<double>(heads.d_kv.size)) : 1;
}

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Dim& memory, const Dim& d_kv,
                 const Tensor& bias, Site site) {
  return attend(q, k, v, memory, d_kv, {.bias = bias}, site);
}

Tensor scored_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Dim& memory, const Dim& d_kv,
                        const ScoredAttentionOptions& options, Site site) {
  constexpr double kHidden = -1e9;
  const Graph g(q.graph());
  const AttendOptions& how = options.attend;
  const Shape dims = q.shape().minus({d_kv}).plus({memory});
  const double scale = how.scale.value_or(1 / std::sqrt(static_cast<double>(d_kv.size)));
  const Tensor wide_q = cast(q, DType::kF32, site), wide_k = cast(k, DType::kF32, site);
  Tensor scores = multiply(einsum({wide_q, wide_k}, dims, site), scale, site);
  if (how.bias) scores = add(scores, how.bias, site);
  if (how.causal) {
    const Tensor place = iota(g, q.shape().dim(how.length), DType::kI32, site);
    scores = select(less_equal(iota(g, memory, DType::kI32, site), place, site), scores, kHidden, site);
  }
  if (how.query_segments) scores = select(equal(how.query_segments, how.memory_segments, site), scores, kHidden, site);
  scores = transpose(scores, dims, site);
  Tensor weights =
      options.extra_logit ? softmax(scores, memory, *options.extra_logit, site) : softmax(scores, memory, site);
  if (options.keep < 1) weights = dropout(weights, options.keep, dims.minus(options.same_draw), site);
  return einsum({cast(weights, v.dtype(), site), v}, q.shape(), site);
}

Projections project(const Tensor& x, const Dim& model, const Heads& heads, const ProjectionOptions& options,
                    Site site) {
  if (options.shared_kv || heads.memory != heads.query) {
    const Tensor q = project_queries(x, model, heads, options, site);
    const Projections memory = project_memory(x, model, heads, options, site);
    return {q, memory.k, memory.v};
  }
  // One product for all three; q, k and v are its slices.
  const Dim qkv{"qkv", 3};
  const Shape made = heads.query.plus({heads.d_kv});
  const Init init =
      init::stacked(kernel_init(model, made, options), qkv.name, {"q", "k", "v"}, {query_scale(heads, options), 1, 1});
  const Tensors parts = unstack(product(x, model, Shape{qkv}.plus(made), init, options, qkv.name, site), qkv, site);
  return {parts[0], parts[1], parts[2]};
}

Tensor project_queries(const Tensor& x, const Dim& model, const Heads& heads, const ProjectionOptions& options,
                       Site site) {
  const Shape made = heads.query.plus({heads.d_kv});
  Init init = kernel_init(model, made, options);
  init.a = init.a.real() * query_scale(heads, options);
  init.b *= query_scale(heads, options);
  return product(x, model, made, init, options, "q", site);
}

Projections project_memory(const Tensor& x, const Dim& model, const Heads& heads, const ProjectionOptions& options,
                           Site site) {
  const Shape made = heads.memory.plus({heads.d_kv});
  const Init init = kernel_init(model, made, options);
  const Tensor k = product(x, model, made, init, options, options.shared_kv ? "kv" : "k", site);
  return {{}, k, options.shared_kv ? k : product(x, model, made, init, options, "v", site)};
}

Tensor project_back(const Tensor& mixed, const Dim& model, const Heads& heads, const ProjectionOptions& options,
                    Site site) {
  return dense(mixed, {model},
               {.reduced = heads.query.plus({heads.d_kv}),
                .bias = false,
                .kernel_init = options.kernel_init,
                .variables = options.variables,
                .name = "o"},
               site);
}

Tensor self_attention(const Tensor& x, const Dim& length, const Dim& model, const Dim& heads, const Dim& d_kv,
                      const AttentionOptions& options, Site site) {
  Graph g(x.graph());
  const Graph::Scope scope = g.scope(options.name);
  const Dim memory{options.memory, length.size};
  const auto seen = [&](const Tensor& t) { return t ? rename(t, length, memory.name, site) : Tensor(); };
  const Heads all{{heads}, {heads}, d_kv};
  const ProjectionOptions kernels{.kernel_init = options.kernel_init};
  const Projections of_x = project(x, model, all, kernels, site);
  const AttendOptions how{.causal = options.causal,
                          .length = length.name,
                          .bias = options.bias,
                          .query_segments = options.segments,
                          .memory_segments = seen(options.segments),
                          .scale = options.scale};
  const Tensor mixed = attend(of_x.q, seen(of_x.k), seen(of_x.v), memory, d_kv, how, site);
  return transpose(project_back(mixed, model, all, kernels, site), x.shape(), site);
}

}  // namespace weft::nn
