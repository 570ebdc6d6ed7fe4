// The task of kind text_classifier: which of some labels a text has. A convolution along the tokens' embeddings, the
// maximum of each filter over the text, and a dense layer to the labels (Kim 2014). The data is pairs: a text and its label.
#include <algorithm>
#include <set>

#include "weft/config.h"
#include "weft/convolution.h"
#include "weft/error.h"
#include "weft/nn.h"

namespace weft::train {

namespace {

// 1 for a token, 0 for padding.
Tensor is_token(const Tensor& ids) { return cast(greater(ids, 0.0), DType::kF32); }

class TextClassifier : public Task {
 public:
  std::unique_ptr<Task> clone() const override { return std::make_unique<TextClassifier>(*this); }

  std::vector<Setting> settings() override {
    return {{"labels", &labels_, "the targets that the data has, in the order of the logits", kIdentity},
            {"d_model", &d_model_, "width of the embedding"},
            {"d_ff", &d_ff_, "number of filters"},
            {"width", &width_, "tokens that a filter sees at a time"},
            {"dropout", &dropout_, "probability that the maximum of a filter is dropped"}};
  }

  void complete(const Config& config) override {
    const data::Vocabulary vocabulary = data::Vocabulary::of(config.data.vocabulary);
    vocab_ = vocabulary.size();
    label_ids_.clear();
    for (const std::string& label : labels_) label_ids_.push_back(vocabulary.encode(label));
  }

  void check(const Config&) const override {
    const auto refuse = [](ErrorCode code, const std::string& setting, const std::string& what,
                           const std::string& fix) {
      throw UserError({.code = code, .what = what, .where = setting, .fix = fix});
    };
    const std::set<std::string> different(labels_.begin(), labels_.end());
    if (different.size() < 2 || different.size() != labels_.size() || different.contains(""))
      refuse("text-classifier.bad-labels", "labels",
             "a text classifier has two labels or more, all different, but labels has " +
                 std::to_string(labels_.size()) + " with " + std::to_string(different.size()) + " different",
             "list the targets of the data: labels = [\"no\", \"yes\"]");
    for (const auto& [name, value] : {std::pair("d_model", d_model_), {"d_ff", d_ff_}, {"width", width_}})
      if (value < 1)
        refuse("text-classifier.bad-size", name, std::string(name) + " cannot be " + std::to_string(value),
               "give at least 1");
    if (!(dropout_ >= 0 && dropout_ < 1))
      refuse("text-classifier.bad-dropout", "dropout", "dropout cannot be " + std::to_string(dropout_),
             "give a number from 0 on and below 1");
  }

  void choose_data(const Config&, data::SourceOptions& source) const override {
    std::size_t longest = 0;
    for (const auto& ids : label_ids_) longest = std::max(longest, ids.size());
    source.length = static_cast<std::int64_t>(longest) + 2;  // an end, and one more to tell a longer text from a label
    source.vocab_limit = vocab_;
    source.pack = false;
  }

  // "label" [batch]: the place of each row's target among the labels, -1 of a row of padding.
  data::Batch prepare(const Config& config, data::Batch batch) const override {
    if (!batch.contains("inputs")) return batch;
    const Array targets = batch.at("targets");
    const std::int64_t rows = targets.shape()[0].size, length = targets.shape()[1].size;
    std::vector<std::int32_t> found;
    for (std::int64_t row = 0; row < rows; ++row) {
      std::vector<std::int32_t> ids;
      for (std::int64_t i = 0; i < length; ++i) ids.push_back(static_cast<std::int32_t>(targets.at(row * length + i)));
      found.push_back(label_of(config, ids));
    }
    batch.insert_or_assign("label", Array({{"batch", rows}}, found));
    return batch;
  }

  bool has_inputs() const override { return true; }
  std::pair<std::int64_t, std::string> row_tokens(const Config& config) const override {
    return {config.batch.inputs_length, "inputs"};
  }

  TrainingGraph training_graph(const Config& config, bool) const override {
    TrainingGraph made;
    made.features = features(made.graph, config);
    const Tensor inputs = made.features.at("inputs"), label = made.features.at("label");
    if (config.batch.microbatches > 1) {
      const auto of_part = [&](const Tensors& part) {
        return mean(cross_entropy(logits(part[0], dropout_), part[1], classes()));
      };
      const Dim batch = inputs.shape()[0];
      made.loss = microbatch_loss({inputs, label}, batch, config.batch.microbatches, of_part).named("loss");
      return made;
    }
    const Tensor all = logits(inputs, dropout_);
    made.loss = mean(cross_entropy(all, label, classes())).named("loss");
    scalar_metric("accuracy", mean(cast(equal(argmax(all, classes()), label), DType::kF32)));
    return made;
  }

  EvaluationGraph evaluation_graph(const Config& config, bool) const override {
    EvaluationGraph made;
    made.features = features(made.graph, config);
    const Tensor label = made.features.at("label"), all = logits(made.features.at("inputs"), 0);
    made.results = {{"negative_log_likelihood", cross_entropy(all, label, classes())},
                    {"examples", cast(greater_equal(label, 0.0), DType::kF32)},
                    {"correct", cast(equal(argmax(all, classes()), label), DType::kF32)}};
    return made;
  }

  std::vector<std::string> dims_to_split() const override { return {"d_ff", "vocab"}; }

  std::vector<Metric> metrics(const Sums& sums) const override {
    const auto sum = [&](const char* name) { return sums.contains(name) ? sums.at(name) : 0; };
    const double examples = sum("examples"), most = std::max(1.0, examples);
    return {{.name = "examples", .value = examples, .is_count = true},
            {.name = "cross_entropy", .value = sum("negative_log_likelihood") / most, .is_logged = true},
            {.name = "accuracy", .value = sum("correct") / most, .is_logged = true}};
  }
  std::vector<double> example_figures(const Sums& sums) const override {
    return {-sums.at("negative_log_likelihood"), sums.at("correct")};
  }

 private:
  Dim classes() const { return {"label", static_cast<std::int64_t>(labels_.size())}; }

  static Features features(Graph& g, const Config& config) {
    const Dim batch{"batch", config.sequences()}, length{"inputs_length", config.batch.inputs_length};
    return {{"inputs", g.input("inputs", {batch, length}, DType::kI32)},
            {"label", g.input("label", {batch}, DType::kI32)}};
  }

  // [batch label].
  Tensor logits(const Tensor& ids, double dropped) const {
    const Dim length = ids.shape()[1], model{"d_model", d_model_}, filters{"d_ff", d_ff_}, taps{"taps", width_};
    Graph g(ids.graph());
    const Tensor x = nn::embedding(ids, {"vocab", vocab_}, model) * is_token(ids);
    const Tensor filter = g.variable("filter", {taps, model, filters}, init::fan_in({taps, model}));
    const Tensor bias = g.variable("bias", {filters}, init::zeros());
    const Tensor seen = relu(convolution(x, filter, {window(length, taps, Padding::kSame)}) + bias);
    Tensor most = reduce_max(seen * is_token(ids), {length});  // both factors are 0 or more
    if (dropped > 0) most = dropout(most, 1 - dropped);
    return nn::dense(most, {classes()}, {.reduced = {filters}, .name = "logits"});
  }

  // Of a row's target, which ends with an end or at the row's.
  std::int32_t label_of(const Config& config, std::vector<std::int32_t> ids) const {
    if (ids[0] == data::Vocabulary::kPadding) return -1;
    ids.erase(std::find_if(ids.begin(), ids.end(), [](std::int32_t id) { return id <= data::Vocabulary::kEnd; }),
              ids.end());
    const auto found = std::find(label_ids_.begin(), label_ids_.end(), ids);
    if (found != label_ids_.end()) return static_cast<std::int32_t>(found - label_ids_.begin());
    std::string all;
    for (const std::string& label : labels_) all += (all.empty() ? "" : ", ") + label;
    throw UserError({.code = "text-classifier.unknown-label",
                     .what = "a text of the data has the label '" +
                             data::Vocabulary::of(config.data.vocabulary).decode(ids) +
                             "', which is none of model.labels (" + all + ")",
                     .where = "model.labels",
                     .fix = "add the label to model.labels, or correct the data"});
  }

  std::vector<std::string> labels_;
  std::int64_t d_model_ = 64, d_ff_ = 128, width_ = 5;
  double dropout_ = 0;
  // Decided by the vocabulary.
  std::int64_t vocab_ = 0;
  std::vector<std::vector<std::int32_t>> label_ids_;
};

[[maybe_unused]] const TaskDefinition& kTextClassifier =
    define_task({.kinds = {"text_classifier"}, .make = [] { return std::make_unique<TextClassifier>(); }});

}  // namespace

}  // namespace weft::train
