// Attention over attend(). Under a layout that splits `length`, the renames in self_attention are where keys and values
// are gathered.
#include "weft/nn.h"

namespace weft::nn {

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Dim& memory, const Dim& d_kv,
                 const Tensor& bias, Site site) {
  return attend(q, k, v, memory, d_kv, {.bias = bias}, site);
}

Tensor self_attention(const Tensor& x, const Dim& length, const Dim& model, const Dim& heads, const Dim& d_kv,
                      const AttentionOptions& options, Site site) {
  Graph g(x.graph());
  const Graph::Scope scope = g.scope(options.name);
  const Dim memory{options.memory, length.size}, qkv{"qkv", 3};
  const auto seen = [&](const Tensor& t) { return t ? rename(t, length, memory.name, site) : Tensor(); };
  const Init each = options.kernel_init.value_or(init::variance_scaling(1, init::Fan::kIn, {model}, {heads, d_kv}));
  // One product for all three: q, k and v are its slices.
  const Tensor joined = dense(x, {qkv, heads, d_kv},
                              {.reduced = {model},
                               .bias = false,
                               .kernel_init = init::stacked(each, qkv.name, {"q", "k", "v"}),
                               .name = qkv.name},
                              site);
  const Tensors parts = unstack(joined, qkv, site);
  const AttendOptions how{.causal = options.causal,
                          .length = length.name,
                          .bias = options.bias,
                          .query_segments = options.segments,
                          .memory_segments = seen(options.segments),
                          .scale = options.scale};
  const Tensor mixed = attend(parts[0], seen(parts[1]), seen(parts[2]), memory, d_kv, how, site);
  const Tensor y = dense(
      mixed, {model}, {.reduced = {heads, d_kv}, .bias = false, .kernel_init = options.kernel_init, .name = "o"}, site);
  return transpose(y, x.shape(), site);
}

}  // namespace weft::nn
