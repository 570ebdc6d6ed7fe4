// The steps that a planner chooses among, from a config.
#include <algorithm>

#include "train/parts.h"

namespace weft::train {

namespace {

// The setting of [model] with this name, if it is a number.
std::int64_t* number_setting(Config& config, const std::string& name) {
  for (const Setting& setting : config.model.task().settings())
    if (setting.name == name)
      if (const auto* field = std::get_if<std::int64_t*>(&setting.field)) return *field;
  return nullptr;
}

bool* flag_setting(Config& config, const std::string& name) {
  for (const Setting& setting : config.model.task().settings())
    if (setting.name == name)
      if (const auto* field = std::get_if<bool*>(&setting.field)) return *field;
  return nullptr;
}

// The settings that count layers, each with its number in the config. An encoder-decoder has layers of two kinds.
std::vector<std::pair<std::string, std::int64_t>> layer_settings(Config config) {
  std::vector<std::pair<std::string, std::int64_t>> found;
  const std::int64_t* layers = number_setting(config, "layers");
  if (!layers) return found;
  found.emplace_back("layers", *layers);
  const std::int64_t* decoder = number_setting(config, "decoder_layers");
  if (decoder && config.model->has_inputs()) found.emplace_back("decoder_layers", *decoder ? *decoder : *layers);
  return found;
}

}  // namespace

StepFamily step_family(const Config& config) {
  const Config whole = completed(config);
  const auto kinds = layer_settings(whole);
  Config probe = whole;
  StepFamily family;
  for (const auto& [name, number] : kinds) family.layers.push_back(number);
  for (std::int64_t m = 2; m <= whole.sequences() && whole.sequences() % m == 0; m *= 2)
    family.microbatches.push_back(m);
  family.can_recompute = flag_setting(probe, "recompute") != nullptr;
  family.build = [whole, kinds](const std::vector<std::int64_t>& layers, std::int64_t microbatches, bool recompute) {
    Config one = whole;
    for (std::size_t i = 0; i < kinds.size(); ++i) *number_setting(one, kinds[i].first) = layers[i];
    one.batch.microbatches = microbatches;
    if (bool* flag = flag_setting(one, "recompute")) *flag = recompute;
    const TrainingStep step(one, packs(one));
    const CompileOptions options = step.compiled(one);
    return StepGraph{step.graph.graph, options.fetch, options.update, options.metrics, options.compute_as};
  };
  return family;
}

}  // namespace weft::train
