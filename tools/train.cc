// weft train: trains or resumes a config; with --dry-run prints its cost.
#include <algorithm>
#include <future>
#include <iostream>
#include <memory>

#include "config_options.h"
#include "report_file.h"
#include "weft/detail/progress.h"
#include "weft/detail/train_parts.h"
#include "weft/detail/words.h"
#include "weft/plan.h"

namespace weft::tools {

namespace {

constexpr double kPlanSeconds = 30;  // for the search of --layout auto

struct TrainWords {
  std::vector<std::string> configs;
  ConfigWords words;
  train::TrainOptions options;
  std::vector<std::string> rename;
  std::string fail_at, topology;
  std::optional<int> processors;
  std::string machine;
  ReportPath report;
  bool quiet = false, print_config = false, dry_run = false, json = false;
};

std::pair<std::string, std::string> parse_rename(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw UserError({.code = "train.bad-rename",
                     .what = "'" + text + "' renames nothing",
                     .where = "--rename " + text,
                     .fix = "write OLD=NEW, whole names of variables or beginnings that end in \"/\", as "
                            "layer_0/=layer_1/"});
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// After all numbers are printed: exit code 2 says that the compiler refuses the program.
void check_fits(const Explanation& e) {
  if (!e.compiler || e.compiler->refusal.empty()) return;
  throw UserError(
      {.code = "memory.topology-too-small",
       .what = "the step does not fit into the memory of topology " + e.compiler->topology + ": " + e.compiler->refusal,
       .where = "mesh " + e.mesh.text() + ", layout \"" + e.layout + "\"",
       .fix = "use a smaller batch, microbatches, a storage layout, or a topology with more devices"});
}

void dry_run(const TrainWords& o, const train::Config& config) {
  std::future<Machine> machine = std::async(std::launch::async, [] { return measure_machine(); });
  // Never destroyed: the command ends here, and to free the graph and the program of a large model takes long.
  static const models::Model& model = *new models::Model(train::step_model(config));
  static const Explanation& e =
      *new Explanation(train::plan(config, model, {.machine = machine.get(), .topology = o.topology, .dump = {}}));
  if (o.json) {
    std::cout << e.json() << "\n";
    return check_fits(e);
  }
  const int processors = e.mesh.size();
  std::cout << config.name << ": " << count_text(static_cast<double>(e.parameters)) << " parameters (" << e.parameters
            << "), " << processors << (processors == 1 ? " processor\n" : " processors\n") << e.summary() << std::flush;
  check_fits(e);
}

Machine machine_of(const TrainWords& o, const train::Config& config, int processors) {
  return o.machine.empty() ? host_machine({config.mesh.device, config.mesh.plugin}, processors)
                           : Machine::load(o.machine);
}

// Replaces mesh.layout "auto": searches all layouts on the config's mesh, or on all meshes of --processors.
Plan choose_layout(const TrainWords& o, train::Config& config) {
  PlanOptions options;
  if (!o.processors) options.mesh = Mesh::parse(config.mesh.mesh);
  const int processors = o.processors ? *o.processors : options.mesh->size();
  if (!config.mesh.memory.empty()) options.memory_bytes = bytes_of(config.mesh.memory).value_or(0);
  options.device = config.mesh.device;
  options.plugin = config.mesh.plugin;
  options.nondeterministic = config.mesh.nondeterministic;
  options.seconds = kPlanSeconds;
  config.mesh.layout.clear();
  const bool is_described = !o.machine.empty();
  const Machine machine = machine_of(o, config, processors);
  const Plan made = plan(train::step_family(config), machine, processors, options);
  use_plan(made, config);
  if (!o.quiet && wire::process() == 0)
    std::cout << "layout auto: " << made.text() << "\n  predicted " << seconds_text(made.predicted.seconds)
              << " a step on " << machine.name
              << (is_described ? "" : ", by its measured peaks alone: weft calibrate describes it better") << "\n";
  return made;
}

// The step of the run, compiled again, with the traced steps.
void write_report(const TrainWords& o, const train::Config& config, const std::optional<Plan>& plan,
                  const train::Trained& done) {
  StepReport report = report_of(config, machine_of(o, config, Mesh::parse(config.mesh.mesh).size()));
  report.plan = plan;
  if (!done.trace.empty()) report.measured = {.device = config.mesh.device, .trace = done.trace};
  report.write(*o.report);
}

void run_train(const TrainWords& o) {
  train::Config config = read_configs(o.configs, o.words);
  check_report(o.report);
  std::optional<Plan> plan;
  if (config.mesh.layout == "auto") plan = choose_layout(o, config);
  else if (o.processors || (!o.machine.empty() && !o.report))
    throw UserError({.code = "command.processors-without-auto",
                     .what = "--processors and --machine are for a layout that is searched",
                     .where = "command line",
                     .fix = "add --layout auto, or leave them out"});
  if (o.print_config) {
    std::cout << train::text(config);
    return;
  }
  if (o.dry_run) return dry_run(o, config);
  if (!o.topology.empty())
    throw UserError({.code = "command.topology-without-dry-run",
                     .what = "--topology " + o.topology + " names devices that are not here to train on",
                     .where = "command line",
                     .fix = "add --dry-run, which compiles for them and runs nothing, or leave --topology out"});
  train::TrainOptions options = o.options;
  options.progress = !o.quiet;
  options.keep_trace = o.report.has_value();
  options.allow_change = o.words.allow_change;
  for (const std::string& text : o.rename) options.init.rename.push_back(parse_rename(text));
  const train::Trained done = train::train_until(o.fail_at, config, options);
  if (wire::process() != 0) return;
  if (o.report) write_report(o, config, plan, done);
  if (!o.quiet)
    std::cout << (done.stopped ? "stopped" : "done") << " at step " << done.step << "; checkpoints and metrics are in "
              << config.out() << "\n";
}

void add_init_options(CLI::App& sub, TrainWords& o) {
  CLI::Option* from = sub.add_option("--init-from", o.options.init.from,
                                     "Start a new run with the weights of this run or checkpoint, at step 0 and "
                                     "without its optimizer state; not used once the new run has a checkpoint");
  sub.add_option("--rename", o.rename,
                 "With --init-from: OLD=NEW, the name of a variable there and here, or prefixes of names that end in "
                 "\"/\"; may be "
                 "repeated")
      ->allow_extra_args(false)
      ->needs(from);
  sub.add_flag("--allow-missing", o.options.init.allow_missing,
               "With --init-from: variables that it lacks start with random values")
      ->needs(from);
  sub.add_flag("--allow-unused", o.options.init.allow_unused,
               "With --init-from: ignore weights that the new model lacks")
      ->needs(from);
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  CLI::App* sub =
      app.add_subcommand("train", "Train a config; a run that was stopped or killed resumes from its last checkpoint");
  const auto o = std::make_shared<TrainWords>();
  sub->add_option("CONFIG", o->configs,
                  "A .toml file (configs/, docs/config.md), or the folder of a run, which resumes with its config; and "
                  "more .toml files, whose settings override the files before them")
      ->required();
  add_config_options(*sub, o->words);
  sub->add_option("--processors", o->processors,
                  "With --layout auto: plan for this many processors, on any mesh; default: the mesh of the config");
  sub->add_option("--machine", o->machine,
                  "With --layout auto or --report: the description of this machine; see weft calibrate");
  sub->add_option("--steps", o->words.steps, "run.steps: the total number of steps");
  sub->add_option("--out", o->words.out, "run.out: the folder of checkpoints and metrics");
  add_init_options(*sub, *o);
  sub->add_flag("--print-config", o->print_config,
                "Print the complete config with the settings of this command line, and stop");
  sub->add_flag("--dry-run", o->dry_run, "Print memory, flops and collectives of each processor, and stop");
  sub->add_option("--topology", o->topology,
                  "With --dry-run and --device xla: compile ahead of time for devices that need not be here, as "
                  "v4:8x8x4 or h200:1x1x8; see docs/xla.md");
  sub->add_flag("--json", o->json, "With --dry-run: one JSON object, see docs/explain.md");
  sub->add_flag("--quiet", o->quiet, "Print nothing");
  sub->add_option("--trace", o->options.trace, "Write a trace of the last steps to this file; see docs/bench.md");
  add_report_option(*sub, o->report, "the step, predicted and measured,");
  sub->add_option("--fail-at", o->fail_at,
                  "For tests: kill this process at PHASE:N; phases: step, save-begun, mid-shard, before-rename, "
                  "before-latest");
  sub->callback([o, &action] { action = [o] { run_train(*o); }; });
}

}  // namespace weft::tools
