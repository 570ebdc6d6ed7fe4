#include "train/tasks/transformer.h"

#include <cmath>
#include <cstdio>

#include "train/decode_weights.h"
#include "train/parts.h"
#include "weft/error.h"
#include "weft/evaluate.h"

namespace weft::train {

namespace {

using models::Kind, models::Norm, models::Positions;

[[maybe_unused]] const TaskDefinition& kTransformer = define_task(
    {.kinds = {"lm", "encoder_decoder", "encoder"}, .make = [] { return std::make_unique<TransformerTask>(); }});

const std::vector<std::pair<std::string, Norm>> kNorms = {
    {"rms", Norm::kRms}, {"layer", Norm::kLayer}, {"scale", Norm::kScale}};
const std::vector<std::pair<std::string, Positions>> kPositions = {
    {"none", Positions::kNone},
    {"learned", Positions::kLearned},
    {"sinusoid", Positions::kSinusoid},
    {"rotary", Positions::kRotary},
    {"relative", Positions::kRelative},
    {"relative_shared", Positions::kRelativeShared},
    {"relative_contextual", Positions::kRelativeContextual}};
template <class T>
std::vector<std::pair<std::string, T>> dtypes() {
  return {{"f32", DType::kF32}, {"bf16", DType::kBF16}};
}

models::BatchSizes batch_sizes(const Config& config, bool has_inputs, bool packed) {
  return {.batch = config.sequences(),
          .length = config.batch.length,
          .inputs_length = has_inputs ? config.batch.inputs_length : 0,
          .packed = packed};
}

evaluate::Scores scores_of(const Sums& sums) {
  const auto sum = [&](const char* name) { return sums.contains(name) ? sums.at(name) : 0; };
  const auto count = [&](const char* name) { return std::llround(sum(name)); };
  evaluate::Scores scores;
  scores.negative_log_likelihood = sum("negative_log_likelihood");
  scores.tokens = count("tokens");
  scores.correct = count("correct");
  scores.sequences = count("sequences");
  scores.whole = count("whole");
  return scores;
}

Sums sums_of(const evaluate::Scores& scores) {
  const auto real = [](std::int64_t count) { return static_cast<double>(count); };
  return {{"negative_log_likelihood", scores.negative_log_likelihood},
          {"tokens", real(scores.tokens)},
          {"correct", real(scores.correct)},
          {"sequences", real(scores.sequences)},
          {"whole", real(scores.whole)}};
}

class TransformerDecoder : public TextDecoder {
 public:
  TransformerDecoder(decode::Decoder decoder, bool translates)
      : decoder_(std::move(decoder)), translates_(translates) {}

  void start(const std::vector<std::vector<std::int32_t>>& rows) override {
    if (translates_) decoder_.rows({}, rows);
    else decoder_.rows(rows);
  }
  std::optional<decode::Finished> next() override { return decoder_.next(); }
  void set_prefix(const std::vector<std::int32_t>& ids) override { decoder_.set_prefix(ids); }
  void on_token(std::function<void(std::size_t row, std::int32_t id)> listener) override {
    decoder_.on_token(std::move(listener));
  }
  void stop_when(std::function<bool(std::size_t row, std::span<const std::int32_t> ids)> rule) override {
    decoder_.stop_when(std::move(rule));
  }
  decode::Speed speed() const override { return decoder_.speed(); }

 private:
  decode::Decoder decoder_;
  bool translates_;
};

}  // namespace

void TransformerTask::set_kind(const std::string& kind) {
  Task::set_kind(kind);
  options.kind = kind == "encoder_decoder" ? Kind::kEncoderDecoder
                 : kind == "encoder"       ? Kind::kEncoder
                                           : Kind::kLanguageModel;
}

std::vector<Setting> TransformerTask::settings() {
  models::TransformerOptions& o = options;
  return {
      {"vocab", &o.vocab, "tokens; 0: as many as data.vocabulary has"},
      {"vocab_divisor", &o.vocab_divisor, "the vocab dim is rounded up to a multiple of this"},
      {"d_model", &o.d_model, "width between the layers"},
      {"heads", &o.heads, "of every attention"},
      {"memory_heads", &o.memory_heads, "heads of keys and values: 0 all, 1 multi-query, else a divisor of heads"},
      {"d_kv", &o.d_kv, "width of a head"},
      {"d_ff", &o.d_ff, "width inside the feed-forward nets"},
      {"layers", &o.layers, "of the model, or of its encoder"},
      {"decoder_layers", &o.decoder_layers, "of an encoder_decoder's decoder; 0: as many as layers"},
      {"norm", choice(o.norm, kNorms), "before every sublayer", kIdentity},
      {"norm_bias", &o.norm_bias, "whether a layer norm has a bias"},
      {"norm_epsilon", &o.norm_epsilon, "added to the mean square", kIdentity},
      {"positions", choice(o.positions, kPositions), "how the model knows them", kIdentity},
      {"max_length", &o.max_length, "rows of the learned table of positions"},
      {"buckets", &o.buckets, "of relative positions"},
      {"max_distance", &o.max_distance, "beyond it, relative positions share a bucket", kIdentity},
      {"rotary_base", &o.rotary_base, "the longest wave of rotary positions", kIdentity},
      {"activation", &o.activation, "of the feed-forward nets; two are multiplied, as [\"gelu\", \"linear\"]",
       kIdentity},
      {"ff_bias", &o.ff_bias, "whether feed-forward nets have biases"},
      {"attention_bias", &o.attention_bias, "whether the projections of attentions have biases"},
      {"tied", &o.tied, "the logits' table is the embedding's", kIdentity},
      {"tied_scale", &o.tied_scale, "with tied: hidden values times 1/sqrt(d_model) make the logits", kIdentity},
      {"shared_embedding", &o.shared_embedding, "encoder and decoder have one embedding", kIdentity},
      {"shared_kv", &o.shared_kv, "keys and values are the same", kIdentity},
      {"fold_scaling", &o.fold_scaling, "1/sqrt(d_kv) lies in the queries' first kernel, not in the scores", kIdentity},
      {"extra_logit", &o.extra_logit, "one more class of every attention's softmax", kIdentity, "no such class"},
      {"prefix", &o.prefix, "the part up to the end-of-sequence token sees all of itself", kIdentity},
      {"dropout", &o.dropout, "probability that an element is dropped, after every sublayer"},
      {"dropout_along_length", &o.dropout_along_length, "one draw for all positions"},
      {"attention_dropout", &o.attention_dropout, "the same, in the attentions"},
      {"label_smoothing", &o.label_smoothing, "how much of a target is spread over all tokens"},
      {"z_loss", &o.z_loss, "times log(Z)^2, added to the loss"},
      {"loss_denominator", &o.loss_denominator, "what the summed loss is divided by, in place of the positions", false,
       "the number of positions"},
      {"loss_per_token", &o.loss_per_token, "the denominator is the number of targets that count"},
      {"loss_on_targets_only", &o.loss_on_targets_only, "with prefix: inputs have no loss"},
      {"loss_chunks", &o.loss_chunks, "parts of the batch whose logits exist at a time"},
      {"recompute", &o.recompute, "layers are computed again in the backward pass, to save memory"},
      {"stored", choice(o.stored, dtypes<DType>()), "dtype of the variables"},
      {"slice", choice(o.slice, dtypes<std::optional<DType>>()),
       "dtype in which the optimizer updates them, by default as stored", false, "as `stored`"},
      {"activations", choice(o.activations, dtypes<DType>()), "dtype of what is between them"},
  };
}

void TransformerTask::complete(const Config& config) {
  if (options.vocab == 0) options.vocab = data::Vocabulary::of(config.data.vocabulary).size();
  // Most tokens of an encoder's rows are not masked and have no loss: the mean is over those that have one.
  if (options.kind == Kind::kEncoder && !options.loss_denominator) options.loss_per_token = true;
}

void TransformerTask::check(const Config& config) const {
  if (options.kind == Kind::kEncoder && !(config.data.mask > 0 && config.data.mask < 1))
    throw UserError(
        {.code = "data.encoder-without-mask",
         .what = "an encoder learns to guess masked tokens, but data.mask is " + number_text(config.data.mask),
         .where = "data.mask",
         .fix = "set data.mask to a number above 0 and below 1, such as 0.15"});
  models::check(options);
}

void TransformerTask::choose_data(const Config& config, data::SourceOptions& source) const {
  source.vocab_limit = options.vocab;
  if (options.kind != Kind::kEncoder) return;
  source.mask = config.data.mask;
  source.mask_id = static_cast<std::int32_t>(config.data.mask_id);
}

TrainingGraph TransformerTask::training_graph(const Config& config, bool packed) const {
  models::SequenceGraph made =
      models::training_graph(options, batch_sizes(config, has_inputs(), packed), config.batch.microbatches);
  return {made.graph, std::move(made.features), made.loss};
}

EvaluationGraph TransformerTask::evaluation_graph(const Config& config, bool packed) const {
  models::SequenceGraph made =
      models::scoring_graph(options, batch_sizes(config, has_inputs(), packed), decode::weights_of(config.decode));
  EvaluationGraph graph{
      made.graph,
      std::move(made.features),
      {{"negative_log_likelihood", made.negative_log_likelihood}, {"tokens", made.tokens}, {"correct", made.correct}},
      made.copies};
  if (made.outcomes) graph.results["outcomes"] = made.outcomes;
  return graph;
}

Graph TransformerTask::weights(const Config& config) const {
  TransformerTask small = *this;
  small.options.loss_chunks = 1;  // a batch of one row has no more
  return small.Task::weights(config);
}

void TransformerTask::add_rows(const EvaluationGraph& graph, const Values& values, std::int64_t begin, std::int64_t end,
                               Sums& sums) const {
  evaluate::Scores scores = scores_of(sums);
  const auto result = [&](const char* name) -> const Array& { return values[graph.results.at(name)]; };
  const Array &nll = result("negative_log_likelihood"), &tokens = result("tokens"), &correct = result("correct");
  const auto one = [](const Array& all, std::int64_t row) { return Array({{"batch", 1}}, {all.at(row)}, DType::kF32); };
  if (graph.results.contains("outcomes")) scores.add_packed(nll, tokens, correct, result("outcomes"));
  else
    for (std::int64_t row = begin; row < end; ++row) scores.add(one(nll, row), one(tokens, row), one(correct, row), 1);
  sums = sums_of(scores);
}

std::vector<Metric> TransformerTask::metrics(const Sums& sums) const {
  const evaluate::Scores scores = scores_of(sums);
  const std::int64_t words = sums.contains("words") ? std::llround(sums.at("words")) : 0;
  const auto real = [](std::int64_t count) { return static_cast<double>(count); };
  std::vector<Metric> all = {{.name = "tokens", .value = real(scores.tokens), .is_count = true},
                             {.name = "log_perplexity", .value = scores.log_perplexity(), .is_logged = true}};
  if (words > 0) {  // files of tokens have no words
    all.push_back({.name = "words", .value = real(words), .is_count = true});
    all.push_back({.name = "log_perplexity_per_word", .value = scores.log_perplexity_per_word(words)});
  }
  all.push_back({.name = "token_accuracy", .value = scores.token_accuracy(), .is_logged = true});
  all.push_back({.name = "sequences", .value = real(scores.sequences), .is_count = true});
  all.push_back({.name = "sequence_accuracy", .value = scores.sequence_accuracy()});
  return all;
}

std::vector<double> TransformerTask::example_figures(const Sums& sums) const {
  return {-sums.at("negative_log_likelihood"), sums.at("tokens"), sums.at("correct")};
}

std::vector<std::string> TransformerTask::summary(const Sums& sums) const {
  const evaluate::Scores scores = scores_of(sums);
  const auto text = [](const char* format, double value) {
    char made[64];
    std::snprintf(made, sizeof made, format, value);
    return std::string(made);
  };
  return {text("log-perplexity %.4f", scores.log_perplexity()),
          text("perplexity %.2f", std::exp(scores.log_perplexity())),
          text("accuracy %.1f %%", 100 * scores.token_accuracy())};
}

Decoding TransformerTask::decoding() const {
  if (options.kind == Kind::kEncoder) return Decoding::kNone;
  if (options.kind == Kind::kEncoderDecoder) return Decoding::kTranslation;
  return options.prefix ? Decoding::kAnswer : Decoding::kContinuation;
}

namespace {

// The room of a decoder for inputs and prompts.
struct DecoderRoom {
  std::int64_t inputs, prompt;

  DecoderRoom(bool translates, std::int64_t longest) {
    constexpr std::int64_t kUnit = 16;  // of the room for inputs
    inputs = translates ? (longest + kUnit - 1) / kUnit * kUnit : 0;
    prompt = translates ? 0 : longest;
  }
};

}  // namespace

std::unique_ptr<TextDecoder> TransformerTask::decoder(Session& session, const Config& config, std::int64_t batch,
                                                      std::int64_t /*shortest*/, std::int64_t longest) const {
  const bool translates = decoding() == Decoding::kTranslation;
  const DecoderRoom room(translates, longest);
  return std::make_unique<TransformerDecoder>(
      decode::Decoder(session, options, layout_of(config), batch, room.inputs, room.prompt, config.decode), translates);
}

decode::DecoderMemory TransformerTask::decoder_memory(const Config& config, std::int64_t batch,
                                                      std::int64_t /*shortest*/, std::int64_t longest) const {
  const DecoderRoom room(decoding() == Decoding::kTranslation, longest);
  return decode::planned_memory(options, Mesh::parse(config.mesh.mesh), layout_of(config), batch, room.inputs,
                                room.prompt, config.decode, store_of(config), {config.mesh.device});
}

}  // namespace weft::train
