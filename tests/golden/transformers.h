// The golden transformers: their options, and their weights under our names.
#pragma once

#include <map>

#include "golden/folder.h"
#include "weft/transformer.h"

namespace weft::test {

class GoldenTransformer {
 public:
  GoldenTransformer(const GoldenFolder& folder, const std::string& name) : folder_(folder), name_(name) {
    about_ = folder.about.at("config").at("common");
    about_.update(folder.about.at("config").at("models").at(name));
  }

  models::TransformerOptions options() const {
    models::TransformerOptions o;
    o.kind = both() ? models::Kind::kEncoderDecoder : models::Kind::kLanguageModel;
    o.vocab = size("vocab"), o.vocab_divisor = size("vocab_divisor");
    o.d_model = size("d_model"), o.heads = size("heads"), o.d_kv = size("d_kv"), o.d_ff = size("d_ff");
    o.layers = size("layers"), o.buckets = size("buckets");
    o.max_length = about_.value("max_length", std::int64_t{512});
    o.memory_heads = about_.value("num_memory_heads", std::int64_t{0});
    o.positions = positions();
    const auto& activation = about_.at("activation");
    o.activation = activation.is_array() ? activation.get<std::vector<std::string>>()
                                         : std::vector<std::string>{activation.get<std::string>()};
    o.ff_bias = about_.value("ff_bias", false);
    o.tied = about_.at("tied");
    o.shared_kv = about_.value("shared_kv", false);
    o.fold_scaling = about_.value("fold_scaling", true);
    if (about_.contains("extra_logit")) o.extra_logit = about_.at("extra_logit").get<double>();
    o.prefix = o.loss_on_targets_only = about_.value("prefix_lm", false);
    o.label_smoothing = about_.value("label_smoothing", 0.0);
    o.z_loss = about_.value("z_loss", 0.0);
    if (about_.contains("loss_denominator")) o.loss_denominator = about_.at("loss_denominator").get<double>();
    return o;
  }

  bool both() const { return about_.at("kind") == "bi"; }
  std::int64_t size(const std::string& name) const { return about_.at(name); }
  models::BatchSizes sizes() const {
    return {.batch = size("batch"),
            .length = size("length"),
            .inputs_length = both() ? size("enc_length") : 0,
            .packed = folder_.data.has(name_ + "/targets_segmentation")};
  }

  // A tensor of the model's with these dims.
  Array read(const std::string& tensor, const std::vector<std::string>& dims) const {
    return folder_.data.read(name_ + "/" + tensor, dims);
  }
  Feeds feeds(const models::SequenceGraph& made) const {
    Feeds feeds;
    for (const auto& [feature, input] : made.features) {
      std::string theirs = feature;
      if (const auto at = theirs.find("_segments"); at != std::string::npos) theirs.replace(at, 9, "_segmentation");
      if (const auto at = theirs.find("_positions"); at != std::string::npos) theirs.replace(at, 10, "_position");
      feeds.emplace_back(input, read(theirs, input.shape().names()));
    }
    return feeds;
  }

  std::vector<std::string> weights() const { return folder_.data.names(name_ + "/param/"); }
  // The numbers of a weight ("param") or its derivative ("grad"), in order.
  std::vector<double> numbers(const std::string& kind, const std::string& weight) const {
    const std::string full = str(name_, "/", kind, "/", weight);
    std::vector<std::string> dims;
    for (std::size_t i = 0; i < folder_.data.sizes(full).size(); ++i) dims.push_back(str("d", i));
    return folder_.data.read(full, dims).values();
  }

  // Where a weight of theirs is: our variable, and which of its three parts (-1: all of it).
  struct Ours {
    std::string variable;
    int part = -1;
  };
  Ours ours(const std::string& weight) const {
    const std::size_t slash = weight.find('/');
    const std::string top = weight.substr(0, slash), rest = weight.substr(slash + 1);
    const std::string scope = top == "encoder" || top == "decoder" ? top + "/" : "";
    if (rest == "embedding" || rest == "logits/kernel") return {rest};
    if (rest == "positional_embedding") return {scope + "positions"};
    if (rest == "rms_norm/scale") return {scope + "final_norm/scale"};
    // block_00B/layer_00L/…
    const int block = std::stoi(rest.substr(6, 3)), sublayer = std::stoi(rest.substr(16, 3));
    const std::string layer = str(scope, "layer_", block, "/"), what = rest.substr(20);
    const std::vector<std::string> names =
        top == "decoder" ? std::vector<std::string>{"attention", "cross_attention", "feed_forward"}
                         : std::vector<std::string>{"attention", "feed_forward"};
    const std::string inner = names.at(static_cast<std::size_t>(sublayer));
    if (what == "rms_norm/scale") return {layer + inner + "_norm/scale"};
    const std::string leaf = what.substr(what.find('/') + 1);
    if (inner == "feed_forward") {
      const std::string tail = leaf.substr(2);  // of wi…, wo…
      return {layer + "feed_forward/" + (leaf.starts_with("wi") ? "in" : "out") + tail};
    }
    if (leaf == "relative_attention_bias")
      return {(positions() == models::Positions::kRelativeShared ? scope : layer + "attention/") + "relative/table"};
    if (leaf == "relative_attention_ak/kernel") return {layer + "attention/relative/kernel"};
    const models::TransformerOptions o = options();
    const std::size_t part = std::string("qkv").find(leaf);
    if (inner == "attention" && o.memory_heads == 0 && !o.shared_kv && leaf.size() == 1 && part != std::string::npos)
      return {layer + "attention/qkv/kernel", static_cast<int>(part)};
    return {layer + inner + "/" + leaf + "/kernel"};
  }

  // Gives the session all weights that it has.
  void set_weights(Session& session) const {
    std::map<std::string, Array> values;
    for (const std::string& name : session.variables()) values.emplace(name, Array());
    for (const std::string& weight : weights()) {
      const auto [variable, part] = ours(weight);
      if (!values.contains(variable)) continue;
      Array& value = values.at(variable);
      if (value.shape().empty()) value = session.value(variable);
      const std::vector<double> numbers = this->numbers("param", weight);
      for_part(value.shape(), part, [&](std::size_t i, std::int64_t at) { value.set(at, numbers.at(i)); });
    }
    for (const auto& [name, value] : values)
      if (!value.shape().empty()) session.set_value(name, value);
  }

  // Our numbers of a weight or derivative, in their order.
  static std::vector<double> part_of(const Array& value, int part) {
    std::vector<double> numbers;
    for_part(value.shape(), part, [&](std::size_t, std::int64_t at) { numbers.push_back(value.at(at)); });
    return numbers;
  }

 private:
  models::Positions positions() const {
    const std::string relative = about_.value("relative", "");
    if (relative == "bias") return models::Positions::kRelative;
    if (relative == "bias_shared") return models::Positions::kRelativeShared;
    if (relative == "contextual") return models::Positions::kRelativeContextual;
    if (!about_.value("positional_embedding", false)) return models::Positions::kNone;
    return about_.value("sinusoid", false) ? models::Positions::kSinusoid : models::Positions::kLearned;
  }

  // Calls f with each element's number in the part and its index in the whole [d_model, qkv=3, …].
  template <class F>
  static void for_part(const Shape& shape, int part, const F& f) {
    const std::int64_t parts = part < 0 ? 1 : 3, rows = part < 0 ? 1 : shape[0].size;
    const std::int64_t width = shape.elements() / rows / parts;
    for (std::int64_t row = 0, i = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < width; ++column, ++i)
        f(static_cast<std::size_t>(i), (row * parts + std::max(part, 0)) * width + column);
  }

  const GoldenFolder& folder_;
  std::string name_;
  nlohmann::json about_;
};

// The largest difference over the largest of `want`.
inline double relative_difference(const std::vector<double>& got, const std::vector<double>& want) {
  if (got.size() != want.size()) return 1e30;
  double most = 0, largest = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    most = std::max(most, std::abs(got[i] - want[i]));
    largest = std::max(largest, std::abs(want[i]));
  }
  return most / (largest == 0 ? 1 : largest);
}

}  // namespace weft::test
