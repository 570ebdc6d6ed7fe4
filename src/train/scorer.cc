#include "train/scorer.h"

#include "train/error_setting.h"

namespace weft::train {

Scorer::Scorer(Session& session, const Config& config, const std::vector<std::string>& files)
    : session_(session),
      options_(source(config, files, false)),
      batches_(options_),
      begin_(batches_.position()),
      graph_(placed(config, {.otherwise = "batch.length"},
                    [&] { return models::scoring_graph(config.model, batch_sizes(config, batches_.packed())); })),
      executable_(compile(session, config, graph_.graph, [&] {
        CompileOptions options = compile_options(config);
        options.fetch = {graph_.negative_log_likelihood, graph_.tokens, graph_.correct};
        if (graph_.outcomes) options.fetch.push_back(graph_.outcomes);
        return options;
      }())) {
  read_own_rows(batches_, executable_, graph_);
}

evaluate::Scores Scorer::scores(std::int64_t most) {
  evaluate::Scores sum;
  batches_.seek(begin_);
  for (std::int64_t i = 0; most == 0 || i < most; ++i) {
    const std::optional<data::Batch> batch = next_batch(session_, batches_);
    if (!batch) break;
    const Values values = executable_.run(feeds_of(graph_, *batch));
    const Array &nll = values[graph_.negative_log_likelihood], &tokens = values[graph_.tokens],
                &correct = values[graph_.correct];
    if (graph_.outcomes) sum.add_packed(nll, tokens, correct, values[graph_.outcomes]);
    else sum.add(nll, tokens, correct, options_.batch);
  }
  return sum;
}

std::vector<evaluate::Scores> Scorer::each() {
  std::vector<evaluate::Scores> all;
  batches_.seek(begin_);
  while (const std::optional<data::Batch> batch = next_batch(session_, batches_)) {
    const Values values = executable_.run(feeds_of(graph_, *batch));
    for (std::int64_t row = 0; row < options_.batch; ++row) {
      if (static_cast<std::int64_t>(all.size()) == batches_.examples()) return all;
      const auto one = [&](const Tensor& x) { return Array({{"batch", 1}}, {values[x].at(row)}, DType::kF32); };
      all.emplace_back().add(one(graph_.negative_log_likelihood), one(graph_.tokens), one(graph_.correct), 1);
    }
  }
  return all;
}

}  // namespace weft::train
