// Graphs that see whole sequences: for training and for scoring.
#include "models/transformer/kernel_copies.h"
#include "models/transformer/network.h"
#include "weft/error.h"

namespace weft::models {

namespace {

using Features = std::map<std::string, Tensor>;

Tensor found(const Features& features, const std::string& name) {
  const auto at = features.find(name);
  return at == features.end() ? Tensor() : at->second;
}

Tokens tokens_of(const Features& features, const std::string& name) {
  const Tensor ids = features.at(name);
  return {ids, found(features, name + "_segments"), found(features, name + "_positions"), ids.shape()[1]};
}

void check_sizes(const TransformerOptions& o, const BatchSizes& sizes, Site site) {
  const auto refuse = [&](ErrorCode code, const std::string& what, const std::string& fix) {
    throw UserError({.code = code, .what = what, .where = site, .fix = fix});
  };
  const bool both = o.kind == Kind::kEncoderDecoder;
  if (sizes.batch < 1 || sizes.length < 1)
    refuse("model.empty-batch",
           "a batch of " + std::to_string(sizes.batch) + " sequences of length " + std::to_string(sizes.length),
           "give at least one of each");
  if (both != (sizes.inputs_length > 0))
    refuse("model.inputs-length-of-kind",
           both ? "an encoder-decoder without an inputs_length"
                : "an inputs_length for a model without a decoder's inputs",
           both ? "give the length of its inputs" : "give the length alone");
  const std::int64_t longest = std::max(sizes.length, sizes.inputs_length);
  if (o.positions == Positions::kLearned && longest > o.max_length)
    refuse("model.too-few-positions",
           "sequences of length " + std::to_string(longest) + ", but the table of positions has " +
               std::to_string(o.max_length) + " rows",
           "raise max_length, or give shorter sequences");
}

Features inputs_of(Graph& g, const TransformerOptions& o, const BatchSizes& sizes, Site site) {
  const Dim batch{"batch", sizes.batch}, length{"length", sizes.length};
  const bool placed = o.positions == Positions::kLearned || o.positions == Positions::kSinusoid;
  Features features;
  const auto declare = [&](const std::string& name, const Dim& along, bool read) {
    const auto one = [&](const std::string& full) {
      features[full] = g.input(full, {batch, along}, DType::kI32, site);
    };
    one(name);
    if (sizes.packed && read) one(name + "_segments");
    if (sizes.packed && read && placed) one(name + "_positions");
  };
  if (o.kind == Kind::kEncoderDecoder) declare("inputs", {"inputs_length", sizes.inputs_length}, true);
  if (o.kind == Kind::kEncoder) declare("inputs", length, true);
  declare("targets", length, o.kind != Kind::kEncoder);
  return features;
}

Tensor hidden_of(Network& network, const Features& features) {
  switch (network.settings().o.kind) {
    case Kind::kEncoder: return network.encode(tokens_of(features, "inputs")).hidden;
    case Kind::kLanguageModel: return network.decode(tokens_of(features, "targets"), nullptr);
    case Kind::kEncoderDecoder: break;
  }
  const Encoded encoded = network.encode(tokens_of(features, "inputs"));
  return network.decode(tokens_of(features, "targets"), &encoded);
}

// The targets that have a loss, -1 for the others.
Tensor counted(const Features& features, const TransformerOptions& o) {
  const Tensor targets = features.at("targets");
  Tensor counts = greater(targets, 0.0);
  if (o.loss_on_targets_only) counts = logical_and(counts, equal(inputs_part(targets, targets.shape()[1]), 0.0));
  return select(counts, targets, -1.0);
}

Tensor number_of(const Tensor& counted) { return cast(greater(counted, 0.0), DType::kF32); }

// Of one of `parts` parts of the batch, whose losses' mean is wanted; empty for the number of its tokens.
Tensor denominator_of(const Features& features, const TransformerOptions& o, std::int64_t parts) {
  const auto shares = static_cast<double>(parts);
  if (o.loss_denominator) return constant(Graph(features.at("targets").graph()), *o.loss_denominator / shares);
  if (!o.loss_per_token) return {};
  return maximum(reduce_sum(number_of(counted(features, o))), 1.0) / shares;
}

SequenceGraph graph_with_features(const TransformerOptions& options, const BatchSizes& sizes, Site site) {
  check(options);
  check_sizes(options, sizes, site);
  SequenceGraph made;
  made.features = inputs_of(made.graph, options, sizes, site);
  return made;
}

}  // namespace

SequenceGraph training_graph(const TransformerOptions& options, const BatchSizes& sizes, std::int64_t microbatches,
                             Site site) {
  SequenceGraph made = graph_with_features(options, sizes, site);
  Network network(made.graph, {options, true});
  const Tensor denominator = denominator_of(made.features, options, microbatches);
  const auto loss_of = [&](const Features& features) {
    const Tensor hidden = hidden_of(network, features);
    const Tensor targets = counted(features, options);
    return network.loss(hidden, targets, targets.shape()[0], denominator);
  };
  if (microbatches == 1) {
    made.loss = loss_of(made.features).named("loss");
    return made;
  }
  std::vector<std::string> names;
  Tensors whole;
  for (const auto& [name, x] : made.features) {
    names.push_back(name);
    whole.push_back(x);
  }
  const auto of_part = [&](const Tensors& part) {
    Features features;
    for (std::size_t i = 0; i < part.size(); ++i) features[names[i]] = part[i];
    return loss_of(features);
  };
  made.loss = microbatch_loss(whole, {"batch", sizes.batch}, microbatches, of_part, site).named("loss");
  return made;
}

SequenceGraph scoring_graph(const TransformerOptions& options, const BatchSizes& sizes, DecodeWeights weights,
                            Site site) {
  SequenceGraph made = graph_with_features(options, sizes, site);
  KernelCopies copies(made.graph, weights);
  Network network(made.graph, {.o = options, .multiply = copies.multiply()});
  const Tensor targets = counted(made.features, options);
  const Dim batch{"batch", sizes.batch}, vocab = network.settings().vocab();
  made.logits = network.logits(hidden_of(network, made.features));
  const Tensor counts = number_of(targets);
  const Tensor right = cast(equal(argmax(made.logits, vocab), targets), DType::kF32);
  made.negative_log_likelihood = reduce_sum_to(cross_entropy(made.logits, targets, vocab), {batch});
  made.tokens = reduce_sum_to(counts, {batch});
  made.correct = reduce_sum_to(right, {batch});
  const Tensor own = found(made.features, "targets_segments");
  const Tensor segments =
      own ? own : found(made.features, "inputs_segments");  // an encoder's targets lie as its inputs
  if (segments) made.outcomes = counts * (2.0 * cast(segments, DType::kF32) + right);
  made.copies = copies.made();
  return made;
}

}  // namespace weft::models
