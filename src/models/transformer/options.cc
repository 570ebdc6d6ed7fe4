// Whether options make a model, and what follows from them alone.
#include <cmath>
#include <sstream>

#include "models/transformer/settings.h"
#include "weft/error.h"

namespace weft::models {

namespace {

std::string text(double number) {
  std::ostringstream out;
  out << number;
  return out.str();
}

[[noreturn]] void refuse(ErrorCode code, const std::string& option, const std::string& what, const std::string& fix) {
  throw UserError({.code = code, .what = what, .where = option, .fix = fix});
}

// Far beyond any model; without them a slip of the finger would build a graph for hours, or overflow.
constexpr std::int64_t kMostLayers = 10000, kLargest = std::int64_t{1} << 31;
constexpr double kMostWeights = static_cast<double>(kMostElements);

void bounded(const std::string& option, std::int64_t value, std::int64_t least, std::int64_t most = kLargest) {
  if (value >= least && value <= most) return;
  refuse("model.size-out-of-range", option, option + " cannot be " + std::to_string(value),
         value < least ? "give at least " + std::to_string(least) : "give at most " + std::to_string(most));
}

// `below`: 0 for no bound.
void in_range(const std::string& option, double value, double below) {
  if (value >= 0 && std::isfinite(value) && (below == 0 || value < below)) return;
  refuse("model.number-out-of-range", option, option + " cannot be " + text(value),
         below == 0 ? "give a number from 0 on" : "give a number from 0 on and below " + text(below));
}

void positive(const std::string& option, double value) {
  if (value > 0 && std::isfinite(value)) return;
  refuse("model.number-not-positive", option, option + " cannot be " + text(value), "give a number above 0");
}

void check_sizes(const TransformerOptions& o) {
  bounded("vocab", o.vocab, 2);
  bounded("vocab_divisor", o.vocab_divisor, 1);
  bounded("d_model", o.d_model, 1);
  bounded("heads", o.heads, 1);
  bounded("d_kv", o.d_kv, 1);
  bounded("d_ff", o.d_ff, 1);
  bounded("layers", o.layers, 1, kMostLayers);
  bounded("decoder_layers", o.decoder_layers, 0, kMostLayers);
  bounded("memory_heads", o.memory_heads, 0);
  bounded("loss_chunks", o.loss_chunks, 1);
  bounded("max_length", o.max_length, 0);
  bounded("buckets", o.buckets, 0);
  if (o.memory_heads > 1 && o.heads % o.memory_heads != 0)
    refuse("model.memory-heads-do-not-divide", "memory_heads",
           std::to_string(o.memory_heads) + " memory heads do not divide " + std::to_string(o.heads) + " heads",
           "give 0 for as many as heads, 1 to share one among all heads, or a divisor of heads");
  if (o.decoder_layers > 0 && o.kind != Kind::kEncoderDecoder)
    refuse("model.decoder-layers-without-encoder", "decoder_layers",
           "decoder_layers is set, but the model has no encoder", "set layers alone, or make it an encoder-decoder");
}

void check_positions(const TransformerOptions& o) {
  if (o.positions == Positions::kLearned) bounded("max_length", o.max_length, 1);
  if (o.positions == Positions::kSinusoid && o.d_model % 2 != 0)
    refuse("model.odd-sinusoid-width", "d_model", "sinusoid positions of an odd d_model, " + std::to_string(o.d_model),
           "give an even one");
  if (o.positions == Positions::kRotary && o.d_kv % 2 != 0)
    refuse("model.odd-rotary-width", "d_kv", "rotary positions of an odd d_kv, " + std::to_string(o.d_kv),
           "give an even one");
  positive("rotary_base", o.rotary_base);
  if (!Settings{o}.relative()) return;
  bounded("buckets", o.buckets, 4);
  if (o.max_distance <= o.buckets / 2)
    refuse("model.max-distance-too-small", "max_distance",
           "a max_distance of " + std::to_string(o.max_distance) + " with " + std::to_string(o.buckets) + " buckets",
           "half of the buckets hold one distance each: give more than " + std::to_string(o.buckets / 2));
}

void check_layers(const TransformerOptions& o) {
  positive("norm_epsilon", o.norm_epsilon);
  if (o.activation.empty())
    refuse("model.no-activation", "activation", "no activation is given", "give one, or several for their product");
  for (const std::string& name : o.activation) try {
      nn::activation(name);
    } catch (const UserError& error) {
      refuse(error.text().code, "activation", error.text().what, error.text().fix);
    }
  in_range("dropout", o.dropout, 1);
  in_range("attention_dropout", o.attention_dropout, 1);
  if (o.prefix && o.kind != Kind::kLanguageModel)
    refuse("model.prefix-of-other-kind", "prefix",
           "prefix is set, but only a language model reads its inputs as a part of its targets",
           "leave it out: an encoder sees all of its inputs anyway");
  for (const auto& [name, dtype] :
       {std::pair{"stored", o.stored}, {"activations", o.activations}, {"slice", o.slice.value_or(o.stored)}})
    if (!is_float(dtype))
      refuse("model.dtype-not-float", name, std::string(name) + " is no floating-point dtype",
             "give f32, bf16, f16 or f64");
}

void check_loss(const TransformerOptions& o) {
  in_range("label_smoothing", o.label_smoothing, 1);
  in_range("z_loss", o.z_loss, 0);
  if (o.loss_denominator) positive("loss_denominator", *o.loss_denominator);
  if (o.loss_denominator && o.loss_per_token)
    refuse("model.two-loss-denominators", "loss_denominator", "both loss_denominator and loss_per_token are set",
           "set one of them");
  if (o.loss_on_targets_only && !o.prefix)
    refuse("model.targets-only-without-prefix", "loss_on_targets_only",
           "loss_on_targets_only is set, but without prefix there is no inputs part",
           "set prefix too, or leave it out");
}

// In double, which counts them exactly as far as models go and tells how many too many there are.
double count_weights(const TransformerOptions& o) {
  const Settings s{o};
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  const double d_model = real(o.d_model), d_kv = real(o.d_kv), d_ff = real(o.d_ff), heads = real(o.heads);
  const double per_norm = o.norm == Norm::kScale ? 1 : o.norm == Norm::kLayer && o.norm_bias ? 2 * d_model : d_model;
  const double columns = d_kv * (heads + (o.shared_kv ? 1 : 2) * static_cast<double>(s.heads().memory.elements()));
  const double attention = d_model * (columns + d_kv * heads) + (o.attention_bias ? columns + d_model : 0);
  const auto factors = static_cast<double>(o.activation.size());
  const double feed_forward = (factors + 1) * d_model * d_ff + (o.ff_bias ? factors * d_ff + d_model : 0);
  const double contextual = o.positions == Positions::kRelativeContextual ? heads * d_kv * real(o.buckets) : 0;
  const double per_layer_table = o.positions == Positions::kRelative ? heads * real(o.buckets) : 0;
  const double layer = attention + contextual + per_layer_table + feed_forward + 2 * per_norm;
  const double cross = attention + per_norm;
  const double stack = per_norm + (o.positions == Positions::kLearned ? real(o.max_length) * d_model : 0) +
                       (o.positions == Positions::kRelativeShared ? heads * real(o.buckets) : 0);
  const bool both = o.kind == Kind::kEncoderDecoder;
  const double tables = (both && !o.shared_embedding ? 2 : 1) + (o.tied ? 0 : 1);
  return tables * real(padded_vocab(o)) * d_model + real(o.layers) * layer + stack +
         (both ? real(s.decoder_layers()) * (layer + cross) + stack : 0);
}

void check_weights(const TransformerOptions& o) {
  if (const double count = count_weights(o); count > kMostWeights)
    refuse("model.too-many-weights", "vocab, d_model, heads, d_kv, d_ff and layers",
           "a model of " + text(count) + " weights",
           "make it smaller: a model has at most " + text(kMostWeights) + " weights");
}

}  // namespace

void check(const TransformerOptions& options) {
  check_sizes(options);
  check_positions(options);
  check_layers(options);
  check_loss(options);
  check_weights(options);
}

std::int64_t padded_vocab(const TransformerOptions& o) {
  return (o.vocab + o.vocab_divisor - 1) / o.vocab_divisor * o.vocab_divisor;
}

bool Settings::relative() const {
  return o.positions == Positions::kRelative || o.positions == Positions::kRelativeShared ||
         o.positions == Positions::kRelativeContextual;
}

nn::Heads Settings::heads() const {
  const Dim d_kv{"d_kv", o.d_kv}, all{"heads", o.heads};
  if (o.memory_heads == 0 || o.memory_heads == o.heads) return {{all}, {all}, d_kv};
  if (o.memory_heads == 1) return {{all}, {}, d_kv};
  const Dim groups{"heads", o.memory_heads};
  return {{groups, {"query_heads", o.heads / o.memory_heads}}, {groups}, d_kv};
}

Tensor Settings::table(Graph& g, const std::string& name, const Shape& shape) const {
  VariableOptions as = variables();
  as.activation = o.slice.value_or(o.stored);
  return g.variable(name, shape, o.init.value_or(init::normal(o.tied && o.tied_scale ? 1 : 0.02)), as);
}

std::int64_t weights(const TransformerOptions& o) { return static_cast<std::int64_t>(count_weights(o)); }

}  // namespace weft::models
