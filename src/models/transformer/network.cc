#include "models/transformer/network.h"

#include <cmath>

namespace weft::models {

namespace {

constexpr double kHidden = -1e9;

// A negative id is a token without a loss.
Tensor token_of(const Tensor& ids) { return maximum(ids, 0.0 - ids); }

// All of the inputs part, and the place that reads its end, see each other.
Tensor prefix_bias(const Tensor& ids, const Dim& length) {
  const Tensor part = inputs_part(ids, length);
  const Tensor region = maximum(part, shift(part, length, 1));
  const Tensor priority = iota(Graph(ids.graph()), length) * (1.0 - region);
  const Tensor of_memory = rename(priority, length, memory_dim(length.size).name);
  return select(greater_equal(priority, of_memory), constant(Graph(ids.graph()), 0.0), kHidden);
}

}  // namespace

Tensor token_segments(const Tensor& ids) { return cast(not_equal(ids, 0.0), DType::kI32); }

Tensor shifted(const Tensor& ids, const Tensor& segments, const Dim& length) {
  const Tensor before = shift(token_of(ids), length, 1);
  return segments ? select(equal(segments, shift(segments, length, 1)), before, 0.0) : before;
}

Tensor inputs_part(const Tensor& ids, const Dim& length) {
  constexpr double kEnd = 1;
  const Tensor ends = cast(equal(token_of(ids), kEnd), DType::kI32);
  return 1.0 - mod(cumsum(ends, length, true), 2.0);
}

Tensor Network::embedding(const std::string& scope) {
  const std::string name = scope.empty() || s_.o.shared_embedding ? "/embedding" : "/" + scope + "/embedding";
  Tensor& table = embeddings_[name];
  if (!table) table = s_.table(g_, name, {s_.vocab(), s_.d_model()});
  return table;
}

Tensor Network::embed(const Tensor& ids, const Tensor& positions, const Dim& length, const std::string& scope) {
  Tensor x = cast(gather(embedding(scope), ids, s_.vocab()), DType::kF32);
  if (s_.o.positions == Positions::kLearned) {
    const Dim rows{"max_length", s_.o.max_length};
    const Tensor table = s_.table(g_, scope.empty() ? "/positions" : "/" + scope + "/positions", {rows, s_.d_model()});
    const auto first = [&] {
      return rename(slice(table, rows, 0, length.size), {rows.name, length.size}, length.name);
    };
    x = x + cast(positions ? gather(table, positions, rows) : first(), DType::kF32);
  }
  if (s_.o.positions == Positions::kSinusoid)
    x = x + nn::sinusoids(positions ? positions : iota(g_, length), s_.d_model());
  return cast(x, s_.o.activations);
}

Pass Network::pass_over(const Dim& length, const Tensor& segments, bool causal, const Tensor& bias) const {
  const Dim memory = memory_dim(length.size);
  const auto looked_at = [length, memory](const Tensor& x) { return x ? rename(x, length, memory.name) : Tensor(); };
  Pass pass{.memory = memory, .places = iota(g_, length), .seen = {}, .keep = {}, .remember = {}};
  pass.seen = {.causal = causal,
               .length = length.name,
               .bias = bias,
               .query_segments = segments,
               .memory_segments = looked_at(segments)};
  pass.looks_ahead = !causal;
  if (segments) pass.keep = not_equal(segments, 0.0);
  pass.remember = [looked_at](const std::string&, const nn::Projections& of_x) {
    const Tensor k = looked_at(of_x.k);
    return nn::Projections{{}, k, of_x.v == of_x.k ? k : looked_at(of_x.v)};
  };
  return pass;
}

void Network::attach(Pass& pass, const Encoded& encoded, const Tensor& query_segments) const {
  pass.cross_memory = memory_dim(encoded.length.size);
  pass.cross_seen = {.query_segments = query_segments,
                     .memory_segments = rename(encoded.segments, encoded.length, pass.cross_memory.name)};
  pass.recall = [encoded, s = s_, memory = pass.cross_memory.name](const std::string&) {
    const nn::Projections of = nn::project_memory(encoded.hidden, s.d_model(), s.heads(), projection_options(s));
    const Tensor k = rename(of.k, encoded.length, memory);
    return nn::Projections{{}, k, of.v == of.k ? k : rename(of.v, encoded.length, memory)};
  };
}

Encoded Network::encode(const Tokens& inputs) {
  const std::string scope = s_.o.kind == Kind::kEncoderDecoder ? "encoder" : "";
  const Tensor segments = inputs.segments ? inputs.segments : token_segments(inputs.ids);
  const Tensor x = embed(inputs.ids, inputs.positions, inputs.length, scope);
  return {stack(x, s_, pass_over(inputs.length, segments, false), s_.o.layers, scope), segments, inputs.length};
}

Tensor Network::decode(const Tokens& targets, const Encoded* encoded) {
  Tensor segments = targets.segments;
  if (!segments && (encoded || s_.o.prefix)) segments = token_segments(targets.ids);
  const Tensor before = shifted(targets.ids, segments, targets.length);
  const Tensor x = embed(before, targets.positions, targets.length, decoder_scope());
  const Tensor bias = s_.o.prefix ? prefix_bias(targets.ids, targets.length) : Tensor();
  Pass pass = pass_over(targets.length, segments, !s_.o.prefix, bias);
  if (encoded) attach(pass, *encoded, segments);
  return stack(x, s_, pass, encoded ? s_.decoder_layers() : s_.o.layers, decoder_scope());
}

Tensor Network::scaled(const Tensor& hidden) const {
  return s_.o.tied && s_.o.tied_scale ? hidden / std::sqrt(static_cast<double>(s_.o.d_model)) : hidden;
}

Tensor Network::tied_kernel(const Tensor& hidden) {
  return s_.o.tied ? cast(embedding(decoder_scope()), hidden.dtype()) : Tensor();
}

Tensor Network::logits(const Tensor& hidden) {
  const Shape made = hidden.shape().minus({s_.d_model()}).plus({s_.vocab()});
  const Tensor tied = tied_kernel(hidden);
  const auto product = [&] {
    return s_.multiply ? s_.multiply(scaled(hidden), tied, made, Site::current())
                       : einsum({scaled(hidden), tied}, made);
  };
  const Tensor y = tied ? product()
                        : nn::dense(hidden, {s_.vocab()},
                                    {.reduced = {s_.d_model()},
                                     .bias = false,
                                     .kernel_init = s_.o.init,
                                     .variables = s_.variables(),
                                     .multiply = s_.multiply,
                                     .name = "logits"});
  return cast(y, DType::kF32).named("logits");
}

Tensor Network::loss(const Tensor& hidden, const Tensor& targets, const Dim& batch, const Tensor& denominator) {
  return nn::projected_cross_entropy(scaled(hidden), targets, batch, s_.d_model(), s_.vocab(),
                                     {.chunks = s_.o.loss_chunks,
                                      .z_loss = s_.o.z_loss,
                                      .label_smoothing = s_.o.label_smoothing,
                                      .denominator = denominator,
                                      .kernel = tied_kernel(hidden),
                                      .kernel_init = s_.o.init,
                                      .variables = s_.variables()});
}

}  // namespace weft::models
