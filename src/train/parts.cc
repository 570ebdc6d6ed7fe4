#include "train/parts.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "train/error_setting.h"
#include "weft/detail/session_access.h"
#include "weft/detail/words.h"
#include "weft/error.h"

namespace weft::train {

namespace {

// Of compiling a graph under the config's mesh, layout, storage layout and memory limit.
const SettingOfError kCompiling{.codes = {{"store.", "mesh.store"},
                                          {"memory.variables-over-limit", "mesh.memory"},
                                          {"memory.step-over-limit", "mesh.memory"}},
                                .otherwise = "mesh.layout"};
const SettingOfError kOptimizer{.codes = {{"optimizer.bad-rule-rate", "optimizer.rules"},
                                          {"optimizer.bad-rule-decay", "optimizer.rules"},
                                          {"optimizer.bad-pattern", "optimizer.rules"},
                                          {"optimizer.pattern-finds-nothing", "optimizer.rules"}},
                                .section = "optimizer",
                                .otherwise = "optimizer.name"};

}  // namespace

data::SourceOptions source(const Config& config, const std::vector<std::string>& files, bool endless) {
  data::SourceOptions options;
  options.files = files;
  options.format = config.data.format;
  options.vocabulary = config.data.vocabulary;
  options.batch = config.sequences();
  options.length = config.batch.length;
  options.inputs_length = config.batch.inputs_length;
  options.pack = config.data.pack;
  options.join = !config.model->has_inputs();
  options.shuffle = endless && config.data.shuffle;
  options.repeat = endless;
  options.seed = static_cast<std::uint64_t>(config.run.seed);
  if (config.data.format == "pairs" && files.size() == 2) {
    options.targets_file = files[1];
    options.files = {files[0]};
  }
  const bool is_one_process = wire::named(config.mesh.wire).name == wire::threads().name;
  if (!is_one_process) options.cache = config.out() + "/tokens";
  config.model->choose_data(config, options);
  return options;
}

Mesh mesh_of(const Config& config) {
  return placed(config, {.otherwise = "mesh.mesh"}, [&] { return Mesh::parse(config.mesh.mesh); });
}

Layout layout_of(const Config& config) {
  return placed(config, {.otherwise = "mesh.layout"}, [&] { return Layout::parse(config.mesh.layout); });
}

Store store_of(const Config& config) {
  if (config.mesh.store.empty()) return {};
  return placed(config, {.codes = {{"store.unknown-level", "mesh.store_level"}}, .otherwise = "mesh.store"},
                [&] { return Store::parse(config.mesh.store, static_cast<int>(config.mesh.store_level)); });
}

optim::Schedule schedule_of(const Config& config) {
  std::string text = config.schedule.empty() && !config.rate ? "constant 0.001" : config.schedule;
  if (config.rate) {
    std::ostringstream rate;
    rate << std::setprecision(17) << "constant " << *config.rate;
    text = rate.str() + (text.empty() ? "" : " * " + text);
  }
  return placed(config, {.otherwise = config.schedule.empty() ? "optimizer.rate" : "optimizer.schedule"},
                [&] { return optim::Schedule::parse(text, std::max<std::int64_t>(1, config.run.steps)); });
}

device::Choice device_of(const Config& config) {
  return {config.mesh.device,
          config.mesh.plugin,
          {},
          config.mesh.nondeterministic,
          wire::named(config.mesh.wire).name == wire::nccl().name};
}

Session open_session(const Config& config) {
  check_choices(config);
  const Mesh mesh = mesh_of(config);
  const wire::Choice wire = wire::named(config.mesh.wire);
  const SessionOptions options{.seed = static_cast<std::uint64_t>(config.run.seed),
                               .deadline_seconds = config.run.deadline,
                               .workers = static_cast<int>(config.mesh.workers),
                               .store = store_of(config)};
  try {
    return Session(mesh, wire, config.run.f64 ? device::reference() : device_of(config), options);
  } catch (const UserError& error) {
    if (!error.text().code.text.starts_with("device.")) throw;
    throw at_setting(config, {.otherwise = "mesh.device"}, error);
  }
}

std::string number_text(double number) {
  std::ostringstream out;
  out << number;
  return out.str();
}

CompileOptions compile_options(const Config& config) {
  CompileOptions options;
  if (config.run.f64) options.compute_as = DType::kF64;
  options.check_ids = config.run.check_ids;
  if (!config.mesh.memory.empty()) options.memory_bytes = bytes_of(config.mesh.memory).value_or(0);
  return options;
}

Executable compile(Session& session, const Config& config, const Graph& graph, const CompileOptions& options) {
  const Layout layout = layout_of(config);
  return placed(config, kCompiling, [&] { return session.compile(graph, layout, options); });
}

Feeds feeds_of(const Features& features, const data::Batch& batch) {
  Feeds feeds;
  for (const auto& [name, tensor] : features) {
    const auto found = batch.find(name);
    if (found == batch.end()) {
      std::string all;
      for (const auto& [other, array] : batch) all += (all.empty() ? "" : ", ") + other;
      throw UserError(
          {.code = "data.missing-feature",
           .what = "the data has no feature '" + name + "', which the model needs (the data has: " + all + ")",
           .where = "data.format",
           .fix = "give pairs, which have inputs and targets: set data.format to tsv or pairs"});
    }
    feeds.emplace_back(tensor, found->second);
  }
  return feeds;
}

void read_own_rows(data::Batches& batches, const Executable& executable, const Features& features) {
  std::optional<std::pair<std::int64_t, std::int64_t>> rows;  // that some feature needs
  for (const auto& [name, tensor] : features) {
    const auto [begin, end] = executable.local_range(tensor, "batch");
    rows = {rows ? std::min(rows->first, begin) : begin, rows ? std::max(rows->second, end) : end};
  }
  if (rows) batches.only_rows(rows->first, rows->second);
}

std::optional<data::Batch> next_batch(const Session& session, const Config& config, data::Batches& batches) {
  std::optional<data::Batch> batch;
  std::exception_ptr error;
  try {
    batch = batches.next();
    if (batch)
      batch = placed(config, {.otherwise = "data.format"},
                     [&] { return config.model->prepare(config, std::move(*batch)); });
  } catch (...) {
    error = std::current_exception();
  }
  detail::agree(session, error, "of the next batch");
  return batch;
}

TrainingStep::TrainingStep(const Config& config, bool packed)
    : graph(
          placed(config, {.otherwise = "batch.length"}, [&] { return config.model->training_graph(config, packed); })),
      optimizer(placed(config, kOptimizer,
                       [&] { return optim::make_optimizer(config.optimizer, graph.loss, graph.graph.variables()); })),
      schedule(schedule_of(config)) {}

Feeds TrainingStep::feeds(std::int64_t step, const data::Batch& batch) const {
  Feeds feeds = optimizer->feeds(step, schedule.at(step));
  for (auto& feed : feeds_of(graph.features, batch)) feeds.push_back(std::move(feed));
  return feeds;
}

CompileOptions TrainingStep::compiled(const Config& config) const {
  CompileOptions options = compile_options(config);
  options.fetch = {graph.loss};
  options.metrics = true;
  if (config.optimizer.clip_norm > 0) options.fetch.push_back(optimizer->gradient_norm());
  options.update = optimizer->updates();
  return options;
}

models::Model step_model(const Config& config) {
  const Config whole = completed(config);
  const TrainingStep step(whole, packs(whole));
  return {.name = whole.name,
          .graph = step.graph.graph,
          .options = step.compiled(whole),
          .mesh = mesh_of(whole),
          .layout = layout_of(whole)};
}

Explanation plan(const Config& config, const models::Model& model, const PlanOptions& options) {
  CompileOptions compile = model.options;
  compile.dump = options.dump;
  const Machine machine = options.machine ? *options.machine : measure_machine();
  const Store store = store_of(config);
  return placed(config, kCompiling, [&] {
    return explain(model.graph, model.mesh, model.layout, compile, machine, store,
                   {config.mesh.device, config.mesh.plugin, options.topology, config.mesh.nondeterministic,
                    wire::named(config.mesh.wire).name == wire::nccl().name});
  });
}

Explanation plan(const Config& config, const PlanOptions& options) { return plan(config, step_model(config), options); }

}  // namespace weft::train
