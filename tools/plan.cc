// weft plan: the best mesh, layout, storage layout, microbatches and recomputation for a config on a machine.
#include <atomic>
#include <csignal>
#include <iostream>
#include <memory>

#include "config_options.h"
#include "report_file.h"
#include "weft/detail/train_parts.h"
#include "weft/detail/words.h"
#include "weft/plan.h"

namespace weft::tools {

namespace {

struct PlanWords {
  std::vector<std::string> configs;
  std::vector<std::string> set;
  std::string machine, fix, allow, forbid, objective = "time";
  std::optional<std::string> memory, mesh;
  ReportPath report;
  std::optional<int> processors;
  double seconds = 0;
  bool json = false;
};

std::atomic<bool> interrupted = false;

std::int64_t memory_of(const std::string& text) {
  const std::optional<std::int64_t> bytes = bytes_of(text);
  if (bytes && *bytes > 0) return *bytes;
  throw UserError({.code = "plan.bad-memory",
                   .what = "'" + text + "' is not a number of bytes",
                   .where = "--memory " + text,
                   .fix = "write the memory of a processor as in 16GiB"});
}

PlanOptions options_of(const PlanWords& o, const train::Config& config) {
  PlanOptions options;
  if (o.objective == "memory") options.objective = Objective::kMemory;
  if (o.memory) options.memory_bytes = memory_of(*o.memory);
  else options.memory_bytes = bytes_of(config.mesh.memory).value_or(0);
  if (o.mesh) options.mesh = Mesh::parse(*o.mesh);
  options.fix = o.fix;
  if (!o.allow.empty()) options.allow = split_list(o.allow);
  if (!o.forbid.empty()) options.forbid = split_list(o.forbid);
  options.seconds = o.seconds;
  options.stop = [] { return interrupted.load(); };
  options.device = config.mesh.device;
  options.plugin = config.mesh.plugin;
  options.nondeterministic = config.mesh.nondeterministic;
  return options;
}

void write_report(const std::string& path, train::Config config, const Machine& machine, const Plan& made) {
  use_plan(made, config);
  StepReport report = report_of(config, machine);
  report.plan = made;
  report.write(path);
}

void run_plan(const PlanWords& o) {
  ConfigWords words;
  words.set = o.set;
  const train::Config config = read_configs(o.configs, words);
  check_report(o.report);
  const Machine machine = Machine::load(o.machine);
  const PlanOptions options = options_of(o, config);
  const int processors = o.processors ? *o.processors : options.mesh ? options.mesh->size() : machine.processors;
  std::signal(SIGINT, [](int) { interrupted = true; });
  const Plan made = plan(train::step_family(config), machine, processors, options);
  std::signal(SIGINT, SIG_DFL);
  if (o.report) write_report(*o.report, config, machine, made);
  if (o.json) std::cout << made.json() << "\n";
  else std::cout << config.name << " on " << processors << " processors of " << machine.name << "\n" << made.summary();
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  CLI::App* sub =
      app.add_subcommand("plan", "Find the fastest mesh, layout, storage layout, microbatches and recomputation");
  const auto o = std::make_shared<PlanWords>();
  sub->add_option("CONFIG", o->configs,
                  "A .toml file, or a name such as paper/lm-4.9b; and more .toml files, whose settings "
                  "override the files before them. Its mesh, layout, storage layout, microbatches and recomputation "
                  "are not used")
      ->required();
  sub->add_option("--machine", o->machine, "A shipped machine, such as h200x8, or a file; see docs/machines.md")
      ->required();
  sub->add_option("--processors", o->processors, "How many of its processors; default: all, or those of --mesh");
  sub->add_option("--mesh", o->mesh, "The only mesh, as \"data:2 model:4\"; default: all meshes of up to three axes");
  sub->add_option(
      "--memory", o->memory,
      "The memory limit of a processor, as in 8GiB; default: mesh.memory of the config, else the machine's");
  sub->add_option("--fix", o->fix, "Rules of the layout that must hold, as \"batch:data heads:-\"");
  sub->add_option("--allow", o->allow, "The only dims that may be split: batch,heads");
  sub->add_option("--forbid", o->forbid, "Dims that must not be split");
  sub->add_option("--objective", o->objective, "time or memory")->check(CLI::IsMember({"time", "memory"}));
  sub->add_option("--seconds", o->seconds,
                  "Stop after this time with the best so far and its gap; default: until proved")
      ->check(CLI::PositiveNumber);
  sub->add_option("--set", o->set, "section.name=value of the config; may be repeated; see docs/config.md")
      ->allow_extra_args(false);
  add_report_option(*sub, o->report, "the plan and its step");
  sub->add_flag("--json", o->json, "One JSON object, see docs/planner.md");
  sub->callback([o, &action] { action = [o] { run_plan(*o); }; });
}

}  // namespace weft::tools
