// weft explain: prints what a built-in model or a config costs on each processor under a mesh and a layout.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "config_options.h"
#include "weft/explain.h"
#include "weft/detail/models.h"
#include "weft/simulate.h"
#include "weft/train.h"
#include "weft/detail/words.h"

namespace weft::tools {

namespace {

struct ExplainOptions {
  ModelWords model;
  std::vector<std::string> show, dump;
  std::optional<std::string> machine, program, device, plugin, topology;
  bool nondeterministic = false;
  bool json = false;
};

// The texts of the program after the passes that --dump names, and the names of all passes.
class Dump {
 public:
  explicit Dump(std::vector<std::string> wanted) : wanted_(std::move(wanted)) {}

  void take(std::string_view pass, const std::string& text) {
    passes_.emplace_back(pass);
    for (const std::string& name : wanted_)
      if (name == "all" || name == pass) {
        texts_ += "after " + std::string(pass) + ":\n" + text + "\n";
        return;
      }
  }

  // With JSON it prints to standard error, so that programs can parse standard output.
  void print(bool json) const {
    for (const std::string& name : wanted_)
      if (name != "all" && std::find(passes_.begin(), passes_.end(), name) == passes_.end()) throw unknown(name);
    (json ? std::cerr : std::cout) << texts_;
  }

 private:
  UserError unknown(const std::string& name) const {
    const std::string near = nearest_word(name, passes_);
    std::string list = "all";
    std::vector<std::string> seen;
    for (const std::string& pass : passes_)
      if (std::find(seen.begin(), seen.end(), pass) == seen.end()) {
        seen.push_back(pass);
        list += ", " + pass;
      }
    return UserError({.code = "explain.unknown-pass",
                      .what = "the compiler has no pass '" + name + "'",
                      .where = "--dump " + name,
                      .fix = (near.empty() ? "" : "did you mean '" + near + "'? ") + "there are: " + list});
  }

  std::vector<std::string> wanted_, passes_;
  std::string texts_;
};

void write_program(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file)
    throw RunError({.code = "explain.cannot-write-program",
                    .what = "cannot write the program to '" + path + "'",
                    .where = "--program " + path,
                    .fix = "see that the folder exists and that you may write there"});
}

Explanation explained(const ExplainOptions& o, Dump& dump) {
  train::PlanOptions options;
  if (!o.dump.empty()) options.dump = [&](std::string_view pass, const std::string& text) { dump.take(pass, text); };
  options.machine = o.machine ? Machine::load(*o.machine) : measure_machine();
  if (is_config(o.model.name)) {
    train::Config config = read_configs(files_of(o.model), config_words(o.model));
    if (o.device) config.mesh.device = *o.device;
    if (o.plugin) config.mesh.plugin = *o.plugin;
    if (o.nondeterministic) config.mesh.nondeterministic = true;
    options.topology = o.topology.value_or("");
    return train::plan(config, options);
  }
  models::Model model = model_of(o.model);
  model.options.dump = options.dump;
  return explain(model.graph, model.mesh, model.layout, model.options, *options.machine, store_of(o.model),
                 {o.device.value_or(device::cpu().name), o.plugin.value_or(""), o.topology.value_or(""),
                  o.nondeterministic});
}

// The key "predicted" of the JSON object, or lines before the text.
void add_prediction(const Simulation& simulation, bool json, std::string& text) {
  if (!json) {
    text = simulation.summary() + "\n" + text;
    return;
  }
  auto all = nlohmann::ordered_json::parse(text);
  all["predicted"] = nlohmann::ordered_json::parse(simulation.json());
  text = all.dump() + "\n";
}

void run_explain(const ExplainOptions& o) {
  Dump dump(o.dump);
  const Explanation e = explained(o, dump);
  std::string text = o.json ? e.json() + "\n" : e.text(o.show);
  if (o.machine) add_prediction(simulate(e.program(), e.machine, o.device.value_or(device::cpu().name)), o.json, text);
  dump.print(o.json);
  if (o.program) write_program(*o.program, e.program());
  std::cout << text;
}

}  // namespace

void add_explain(CLI::App& app, Action& action) {
  CLI::App* sub =
      app.add_subcommand("explain", "Print what a model costs on each processor, counted on its compiled program");
  const auto o = std::make_shared<ExplainOptions>();
  sub->add_option("MODEL", o->model.name, "A built-in model, or a config as weft train takes it")->required();
  sub->add_option("MORE", o->model.more, "Configs whose settings override the configs before them");
  add_model_options(*sub, o->model);
  sub->add_flag("--json", o->json, "One JSON object, see docs/explain.md")->disable_flag_override();
  sub->add_option("--machine", o->machine,
                  "A machine by its name (h200x8), or a description: docs/machines.md; default: measured");
  sub->add_option("--show", o->show, "Draw how this tensor is split over the mesh; may be repeated")
      ->allow_extra_args(false);
  sub->add_option("--dump", o->dump, "Also print the program after this pass, or after all; may be repeated")
      ->allow_extra_args(false);
  sub->add_option("--device", o->device, "The device to compile for, see weft doctor; default: cpu, or the config's");
  sub->add_option("--plugin", o->plugin, "Of device xla: the PJRT plugin's shared library; see docs/xla.md");
  sub->add_flag("--nondeterministic", o->nondeterministic, "Of device cuda: sums in any order where that is faster")
      ->disable_flag_override();
  sub->add_option("--topology", o->topology, "Of device xla: compile ahead of time for these devices, as v4:2x2x1");
  sub->add_option("--program", o->program, "Also write the program's text to this file, for weft run");
  sub->footer(model_list);
  sub->callback([o, &action] { action = [o] { run_explain(*o); }; });
}

}  // namespace weft::tools
