// Attention over attend(). Under a layout that splits `length`, the renames in self_attention gather keys and values.
#include <cmath>

#include "weft/nn.h"

namespace weft::nn {

namespace {

Tensor product(const Tensor& x, const Dim& model, const Shape& made, const Init& init, const ProjectionOptions& options,
               const std::string& name, Site site) {
  return dense(x, made,
               {.reduced = {model},
                .bias = options.bias,
                .kernel_init = init,
                .variables = options.variables,
                .multiply = options.multiply,
                .name = name},
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

Projections project(const Tensor& x, const DimRef& model_dim, const Heads& heads, const ProjectionOptions& options,
                    Site site) {
  const Dim model = model_dim.in(x, site);
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

Tensor project_queries(const Tensor& x, const DimRef& model_dim, const Heads& heads, const ProjectionOptions& options,
                       Site site) {
  const Dim model = model_dim.in(x, site);
  const Shape made = heads.query.plus({heads.d_kv});
  Init init = kernel_init(model, made, options);
  init.a = init.a.real() * query_scale(heads, options);
  init.b *= query_scale(heads, options);
  return product(x, model, made, init, options, "q", site);
}

Projections project_memory(const Tensor& x, const DimRef& model_dim, const Heads& heads,
                           const ProjectionOptions& options, Site site) {
  const Dim model = model_dim.in(x, site);
  const Shape made = heads.memory.plus({heads.d_kv});
  const Init init = kernel_init(model, made, options);
  const Tensor k = product(x, model, made, init, options, options.shared_kv ? "kv" : "k", site);
  return {{}, k, options.shared_kv ? k : product(x, model, made, init, options, "v", site)};
}

Tensor project_back(const Tensor& mixed, const Dim& model, const Heads& heads, const ProjectionOptions& options,
                    Site site) {
  return dense(mixed, {model},
               {.reduced = heads.query.plus({heads.d_kv}),
                .bias = options.bias,
                .kernel_init = options.kernel_init,
                .variables = options.variables,
                .multiply = options.multiply,
                .name = "o"},
               site);
}

Tensor self_attention(const Tensor& x, const DimRef& length_dim, const DimRef& model_dim, const Dim& heads,
                      const Dim& d_kv, const AttentionOptions& options, Site site) {
  const Dim length = length_dim.in(x, site), model = model_dim.in(x, site);
  Graph g(x.graph());
  const Graph::Scope scope = g.scope(options.name);
  const Dim memory{options.memory, length.size};
  const auto seen = [&](const Tensor& t) { return t ? rename(t, length, memory.name, site) : Tensor(); };
  const Heads all{{heads}, {heads}, d_kv};
  const ProjectionOptions kernels{.kernel_init = options.kernel_init};
  const Projections of_x = project(x, model, all, kernels, site);
  const AttendOptions how{.causal = options.causal,
                          .length = length,
                          .bias = options.bias,
                          .query_segments = options.segments,
                          .memory_segments = seen(options.segments),
                          .scale = options.scale};
  const Tensor mixed = attend(of_x.q, seen(of_x.k), seen(of_x.v), memory, d_kv, how, site);
  return transpose(project_back(mixed, model, all, kernels, site), x.shape(), site);
}

}  // namespace weft::nn
