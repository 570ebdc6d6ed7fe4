#include "train/scorer.h"

#include "train/error_setting.h"
#include "weft/error.h"

namespace weft::train {

double Evaluation::metric(const std::string& name) const {
  std::string all;
  for (const Metric& metric : metrics) {
    if (metric.name == name) return metric.value;
    all += (all.empty() ? "" : ", ") + metric.name;
  }
  throw UserError({.code = "eval.unknown-metric",
                   .what = "the evaluation has no metric '" + name + "'",
                   .where = "metric",
                   .fix = "it has: " + all});
}

Scorer::Scorer(Session& session, const Config& config, const std::vector<std::string>& files)
    : session_(session),
      config_(config),
      batches_(source(config, files, false)),
      begin_(batches_.position()),
      graph_(placed(config, {.otherwise = "batch.length"},
                    [&] { return config.model->evaluation_graph(config, batches_.packed()); })),
      executable_(compile(session, config, graph_.graph,
                          [&] {
                            CompileOptions options = compile_options(config);
                            for (const auto& [name, result] : graph_.results) options.fetch.push_back(result);
                            return options;
                          }())),
      copies_(session, {{graph_.graph, graph_.copies}}, layout_of(config)) {
  read_own_rows(batches_, executable_, graph_.features);
}

Evaluation Scorer::evaluation(std::int64_t most) {
  Evaluation made;
  copies_.refresh(Site::current());
  batches_.seek(begin_);
  for (std::int64_t i = 0; most == 0 || i < most; ++i) {
    const std::optional<data::Batch> batch = next_batch(session_, config_, batches_);
    if (!batch) break;
    const Values values = executable_.run(feeds_of(graph_.features, *batch));
    config_.model->add_rows(graph_, values, 0, config_.sequences(), made.sums);
  }
  made.metrics = config_.model->metrics(made.sums);
  return made;
}

std::vector<Sums> Scorer::each() {
  std::vector<Sums> all;
  copies_.refresh(Site::current());
  batches_.seek(begin_);
  while (const std::optional<data::Batch> batch = next_batch(session_, config_, batches_)) {
    const Values values = executable_.run(feeds_of(graph_.features, *batch));
    for (std::int64_t row = 0; row < config_.sequences(); ++row) {
      if (static_cast<std::int64_t>(all.size()) == batches_.examples()) return all;
      config_.model->add_rows(graph_, values, row, row + 1, all.emplace_back());
    }
  }
  return all;
}

}  // namespace weft::train
