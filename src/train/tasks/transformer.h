// The tasks of kinds lm, encoder_decoder and encoder: a Transformer and its options.
#pragma once

#include "weft/task.h"
#include "weft/transformer.h"

namespace weft::train {

class TransformerTask : public Task {
 public:
  TransformerTask() { options.vocab = 0; }  // as many as the vocabulary has

  std::unique_ptr<Task> clone() const override { return std::make_unique<TransformerTask>(*this); }
  void set_kind(const std::string& kind) override;

  std::vector<Setting> settings() override;
  void complete(const Config& config) override;
  void check(const Config& config) const override;

  void choose_data(const Config& config, data::SourceOptions& source) const override;
  bool has_inputs() const override { return options.kind == models::Kind::kEncoderDecoder; }

  TrainingGraph training_graph(const Config& config, bool packed) const override;
  EvaluationGraph evaluation_graph(const Config& config, bool packed) const override;
  Graph weights(const Config& config) const override;
  std::vector<std::string> dims_to_split() const override { return {"heads", "d_ff", "vocab"}; }

  void add_rows(const EvaluationGraph& graph, const Values& values, std::int64_t begin, std::int64_t end,
                Sums& sums) const override;
  std::vector<Metric> metrics(const Sums& sums) const override;
  std::vector<double> example_figures(const Sums& sums) const override;
  std::vector<std::string> summary(const Sums& sums) const override;

  Decoding decoding() const override;
  decode::DecoderMemory decoder_memory(const Config& config, std::int64_t batch, std::int64_t shortest,
                                       std::int64_t longest) const override;
  std::unique_ptr<TextDecoder> decoder(Session& session, const Config& config, std::int64_t batch,
                                       std::int64_t shortest, std::int64_t longest) const override;

  models::TransformerOptions options;
};

}  // namespace weft::train
