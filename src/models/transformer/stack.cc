#include "models/transformer/stack.h"

namespace weft::models {

namespace {

Tensor norm(const Tensor& x, const Settings& s, const std::string& name) {
  const Dim dim = s.d_model();
  if (s.o.norm == Norm::kLayer)
    return nn::layer_norm(
        x, dim, {.epsilon = s.o.norm_epsilon, .bias = s.o.norm_bias, .variables = s.variables(), .name = name});
  return nn::rms_norm(
      x, dim,
      {.epsilon = s.o.norm_epsilon, .one_scale = s.o.norm == Norm::kScale, .variables = s.variables(), .name = name});
}

Tensor feed_forward(const Tensor& x, const Settings& s) {
  Graph g(x.graph());
  const auto scope = g.scope("feed_forward");
  nn::DenseOptions dense{.reduced = {s.d_model()},
                         .bias = s.o.ff_bias,
                         .kernel_init = s.o.init,
                         .variables = s.variables(),
                         .multiply = s.multiply,
                         .name = "in"};
  std::vector<nn::Activation> activations;
  for (const std::string& name : s.o.activation) activations.push_back(nn::activation(name));
  dense.activation = activations[0];
  const Tensor h =
      activations.size() == 1 ? nn::dense(x, {s.d_ff()}, dense) : nn::dense_product(x, {s.d_ff()}, activations, dense);
  dense.reduced = {s.d_ff()};
  dense.activation = {};
  dense.name = "out";
  return nn::dense(dropped(h, s), {s.d_model()}, dense);
}

// Padding stays out of every layer.
Tensor masked(const Tensor& x, const Pass& pass) { return pass.keep ? x * cast(pass.keep, x.dtype()) : x; }

struct Layer {
  const Settings& s;
  const Pass& pass;
  Tensor shared_bias;

  Tensor operator()(Tensor x, const std::string& name) const {
    x = x + dropped(self_attention(masked(norm(x, s, "attention_norm"), pass), s, pass, name, shared_bias), s);
    if (pass.recall)
      x = x + dropped(cross_attention(masked(norm(x, s, "cross_attention_norm"), pass), s, pass, name), s);
    return x + dropped(feed_forward(masked(norm(x, s, "feed_forward_norm"), pass), s), s);
  }
};

}  // namespace

Tensor dropped(const Tensor& x, const Settings& s) {
  if (!s.training || s.o.dropout == 0) return x;
  const Shape lengths{{"length", 1}, {"inputs_length", 1}};
  return dropout(x, 1 - s.o.dropout, s.o.dropout_along_length ? x.shape().minus(lengths) : x.shape());
}

Tensor stack(const Tensor& x, const Settings& s, const Pass& pass, std::int64_t layers, const std::string& scope) {
  Graph g(x.graph());
  std::optional<Graph::Scope> outer;
  if (!scope.empty()) outer.emplace(g.data(), scope);
  Layer layer{s, pass, {}};
  if (s.o.positions == Positions::kRelativeShared) layer.shared_bias = relative_bias(g, s, pass);
  Tensor y = dropped(x, s);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string name = "layer_" + std::to_string(i);
    const auto inner = g.scope(name);
    const std::string path = scope.empty() ? name : scope + "/" + name;
    if (s.training && s.o.recompute) y = recompute(g, [&] { return Tensors{layer(y, path)}; })[0];
    else y = layer(y, path);
  }
  return dropped(masked(norm(y, s, "final_norm"), pass), s);
}

}  // namespace weft::models
