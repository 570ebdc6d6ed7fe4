// Attention in primitives: the scores are whole tensors. Under a layout a split `length` meets an unsplit `memory`, and
// the rename in self_attention is where keys and values are gathered.
#include <cmath>

#include "weft/nn.h"

namespace weft::nn {

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Dim& memory, const Dim& d_kv,
                 const Tensor& bias, Site site) {
  // The factor goes to q: it is smaller than the scores.
  const Tensor scaled = multiply(q, 1 / std::sqrt(static_cast<double>(d_kv.size)), site);
  Tensor scores = einsum({scaled, k}, q.shape().minus({d_kv}).plus({memory}), site);
  if (bias) scores = add(scores, bias, site);
  const Shape mixed = q.shape().minus({d_kv}).plus(v.shape().minus({memory}));
  return einsum({softmax(scores, memory, site), v}, mixed, site);
}

Tensor causal_bias(const Graph& g, const Dim& length, const Dim& memory, DType dtype, Site site) {
  const Tensor ahead = less(iota(g, length, DType::kI32, site), iota(g, memory, DType::kI32, site), site);
  return select(ahead, constant(g, -1e9, {}, dtype, site), 0.0, site);
}

Tensor self_attention(const Tensor& x, const Dim& length, const Dim& model, const Dim& heads, const Dim& d_kv,
                      const AttentionOptions& options, Site site) {
  Graph g(x.graph());
  const Graph::Scope scope = g.scope(options.name);
  const Dim memory{options.memory, length.size};
  const Tensor seen = rename(x, length, memory.name, site);
  const auto project = [&](const Tensor& from, const char* name) {
    return dense(from, {heads, d_kv},
                 {.reduced = {model}, .bias = false, .kernel_init = options.kernel_init, .name = name}, site);
  };
  const Tensor q = project(x, "q"), k = project(seen, "k"), v = project(seen, "v");
  Tensor bias = options.bias;
  if (options.causal) {
    const Tensor causal = causal_bias(g, length, memory, x.dtype(), site);
    bias = bias ? add(bias, causal, site) : causal;
  }
  const Tensor mixed = attention(q, k, v, memory, d_kv, bias, site);
  const Tensor y = dense(
      mixed, {model}, {.reduced = {heads, d_kv}, .bias = false, .kernel_init = options.kernel_init, .name = "o"}, site);
  return transpose(y, x.shape(), site);
}

}  // namespace weft::nn
