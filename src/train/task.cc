// The list of tasks, and what a task does unless it says otherwise.
#include "weft/task.h"

#include <algorithm>
#include <sstream>

#include "train/tasks.h"
#include "weft/config.h"
#include "weft/error.h"

namespace weft::train {

namespace {

std::vector<std::unique_ptr<TaskDefinition>>& definitions() {
  static std::vector<std::unique_ptr<TaskDefinition>> all;
  return all;
}

bool has(const TaskDefinition& definition, const std::string& kind) {
  return std::find(definition.kinds.begin(), definition.kinds.end(), kind) != definition.kinds.end();
}

}  // namespace

const TaskDefinition& define_task(TaskDefinition definition) {
  internal_check(!definition.kinds.empty() && definition.make, "a task is defined without a kind or a way to make it");
  for (const std::string& kind : definition.kinds)
    for (const auto& other : definitions())
      if (has(*other, kind)) throw InternalError("two tasks have the kind '" + kind + "'");
  return *definitions().emplace_back(std::make_unique<TaskDefinition>(std::move(definition)));
}

// Files define tasks in no known order.
std::vector<const TaskDefinition*> task_definitions() {
  std::vector<const TaskDefinition*> all;
  for (const auto& definition : definitions()) all.push_back(definition.get());
  std::sort(all.begin(), all.end(), [](const TaskDefinition* a, const TaskDefinition* b) {
    return std::pair(!has(*a, kDefaultKind), a->kinds[0]) < std::pair(!has(*b, kDefaultKind), b->kinds[0]);
  });
  return all;
}

const TaskDefinition& definition_of(const std::string& kind) {
  for (const auto& definition : definitions())
    if (has(*definition, kind)) return *definition;
  throw InternalError("there is no task of kind '" + kind + "'");
}

std::vector<std::string> task_kinds() {
  std::vector<std::string> all;
  for (const TaskDefinition* definition : task_definitions())
    all.insert(all.end(), definition->kinds.begin(), definition->kinds.end());
  return all;
}

std::unique_ptr<Task> make_task(const std::string& kind) {
  std::unique_ptr<Task> task = definition_of(kind).make();
  task->set_kind(kind);
  return task;
}

void Task::complete(const Config&) {}
void Task::check(const Config&) const {}
void Task::choose_data(const Config&, data::SourceOptions&) const {}
data::Batch Task::prepare(const Config&, data::Batch batch) const { return batch; }

std::pair<std::int64_t, std::string> Task::row_tokens(const Config& config) const {
  return {config.batch.length, "targets"};
}

Graph Task::weights(const Config& config) const {
  Config small = config;
  small.batch = {.sequences = 1, .tokens = 0, .length = 1, .inputs_length = 1, .microbatches = 1};
  return training_graph(small, false).graph;
}

void Task::add_rows(const EvaluationGraph& graph, const Values& values, std::int64_t begin, std::int64_t end,
                    Sums& sums) const {
  for (const auto& [name, tensor] : graph.results)
    for (std::int64_t row = begin; row < end; ++row) sums[name] += values[tensor].at(row);
}

std::vector<double> Task::example_figures(const Sums& sums) const {
  std::vector<double> figures;
  for (const auto& [name, sum] : sums) figures.push_back(sum);
  return figures;
}

std::vector<std::string> Task::summary(const Sums& sums) const {
  std::vector<std::string> parts;
  for (const Metric& metric : metrics(sums)) {
    if (!metric.is_logged) continue;
    std::ostringstream text;
    text.precision(4);
    text << metric.name << " " << metric.value;
    parts.push_back(text.str());
  }
  return parts;
}

std::vector<std::vector<decode::Hypothesis>> TextDecoder::run(const std::vector<std::vector<std::int32_t>>& rows) {
  std::vector<std::vector<decode::Hypothesis>> results(rows.size());
  start(rows);
  while (std::optional<decode::Finished> row = next()) results[row->row] = std::move(row->hypotheses);
  return results;
}

std::unique_ptr<TextDecoder> Task::decoder(Session&, const Config&, std::int64_t, std::int64_t, std::int64_t) const {
  throw InternalError("the task of kind '" + kind_ + "' decodes, but makes no decoder");
}

decode::DecoderMemory Task::decoder_memory(const Config&, std::int64_t, std::int64_t, std::int64_t) const {
  throw InternalError("the task of kind '" + kind_ + "' decodes, but does not plan its decoder's memory");
}

ModelConfig::ModelConfig() : task_(make_task(kDefaultKind)) {}
ModelConfig::ModelConfig(const ModelConfig& other) : task_(other.task_->clone()) {}
ModelConfig& ModelConfig::operator=(const ModelConfig& other) {
  if (this != &other) task_ = other.task_->clone();
  return *this;
}
ModelConfig::~ModelConfig() = default;

void ModelConfig::set_kind(const std::string& kind) {
  if (has(definition_of(task_->kind()), kind)) task_->set_kind(kind);
  else task_ = make_task(kind);
}

}  // namespace weft::train
