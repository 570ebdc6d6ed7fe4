#include "models/transformer/attention.h"

#include <cmath>

namespace weft::models {

namespace {

Tensor buckets_of(const Settings& s, const Pass& pass) {
  const Graph g(pass.places.graph());
  const Tensor distances = iota(g, pass.memory) - pass.places;
  return nn::relative_buckets(distances, {.buckets = s.o.buckets,
                                          .max_distance = s.o.max_distance,
                                          .both_ways = pass.looks_ahead,
                                          .reach = pass.memory.size - 1});
}

// As relative_bias, from a table that each query makes for itself.
Tensor contextual_bias(const Tensor& q, const Settings& s, const Pass& pass) {
  Graph g(q.graph());
  const nn::Heads heads = s.heads();
  const Shape made = heads.query.plus({heads.d_kv, s.buckets()});
  const Init init = s.o.init.value_or(init::variance_scaling(1, init::Fan::kIn, {heads.d_kv}, {s.buckets()}));
  const auto scope = g.scope("relative");
  VariableOptions as_q = s.variables();
  as_q.activation = q.dtype();
  const Tensor kernel = g.variable("kernel", made, init, as_q);
  Tensor table = cast(einsum({q, kernel}, q.shape().minus({heads.d_kv}).plus({s.buckets()})), DType::kF32);
  if (!s.o.fold_scaling) table = table / std::sqrt(static_cast<double>(heads.d_kv.size));
  return gather(table, buckets_of(s, pass), s.buckets());
}

Tensor mixed(const Settings& s, const nn::Projections& of, const Dim& memory, AttendOptions how) {
  const Dim d_kv = s.heads().d_kv;
  if (s.o.fold_scaling) how.scale = 1;
  how.extra_logit = s.o.extra_logit;
  if (s.training) how.keep = 1 - s.o.attention_dropout;
  if (s.o.dropout_along_length)
    for (const char* length : {"length", "inputs_length"})
      if (of.q.shape().has(length)) how.same_draw = {length};
  return attend(of.q, of.k, of.v, memory, d_kv, how);
}

Tensor sum(const Tensor& a, const Tensor& b) { return a && b ? a + b : a ? a : b; }

}  // namespace

nn::ProjectionOptions projection_options(const Settings& s) {
  return {.shared_kv = s.o.shared_kv,
          .bias = s.o.attention_bias,
          .fold_scaling = s.o.fold_scaling,
          .kernel_init = s.o.init,
          .variables = s.variables(),
          .multiply = s.multiply};
}

Tensor relative_bias(Graph& g, const Settings& s, const Pass& pass) {
  const auto scope = g.scope("relative");
  VariableOptions wide = s.variables();
  wide.activation = DType::kF32;
  const Init init = s.o.init.value_or(init::normal(1 / std::sqrt(static_cast<double>(s.o.d_model))));
  const Tensor table = g.variable("table", s.heads().query.plus({s.buckets()}), init, wide);
  return gather(table, buckets_of(s, pass), s.buckets());
}

Tensor self_attention(const Tensor& x, const Settings& s, const Pass& pass, const std::string& layer,
                      const Tensor& shared_bias) {
  Graph g(x.graph());
  const auto scope = g.scope("attention");
  const nn::Heads heads = s.heads();
  const nn::ProjectionOptions kernels = projection_options(s);
  nn::Projections of = nn::project(x, s.d_model(), heads, kernels);
  AttendOptions how = pass.seen;
  how.bias = sum(how.bias, shared_bias);
  if (s.o.positions == Positions::kRelative) how.bias = sum(how.bias, relative_bias(g, s, pass));
  if (s.o.positions == Positions::kRelativeContextual) how.bias = sum(how.bias, contextual_bias(of.q, s, pass));
  if (s.o.positions == Positions::kRotary) {
    of.q = nn::rotary(of.q, pass.places, heads.d_kv, s.o.rotary_base);
    of.k = nn::rotary(of.k, pass.places, heads.d_kv, s.o.rotary_base);
  }
  const nn::Projections at = pass.remember(layer + "/attention", of);
  const Tensor y = mixed(s, {of.q, at.k, at.v}, pass.memory, how);
  return transpose(nn::project_back(y, s.d_model(), heads, kernels), x.shape());
}

Tensor cross_attention(const Tensor& x, const Settings& s, const Pass& pass, const std::string& layer) {
  Graph g(x.graph());
  const auto scope = g.scope("cross_attention");
  const nn::Heads heads = s.heads();
  const nn::ProjectionOptions kernels = projection_options(s);
  const Tensor q = nn::project_queries(x, s.d_model(), heads, kernels);
  const nn::Projections at = pass.recall(layer + "/cross_attention");
  const Tensor y = mixed(s, {q, at.k, at.v}, pass.cross_memory, pass.cross_seen);
  return transpose(nn::project_back(y, s.d_model(), heads, kernels), x.shape());
}

}  // namespace weft::models
