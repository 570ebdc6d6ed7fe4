// weft simulate: predicts a step of a model or a config on a machine that need not be here.
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>

#include "options.h"
#include "report_file.h"
#include "weft/explain.h"
#include "weft/simulate.h"

namespace weft::tools {

namespace {

struct SimulateOptions {
  ModelWords model;
  std::string machine;
  std::string device = "cpu";
  std::optional<std::string> trace;
  std::vector<std::string> show;
  ReportPath report;
  bool json = false;
};

void write_trace(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file)
    throw RunError({.code = "simulate.cannot-write-trace",
                    .what = "cannot write the trace to '" + path + "'",
                    .where = "--trace " + path,
                    .fix = "see that the folder exists and that you may write there"});
}

void run_simulate(const SimulateOptions& o) {
  check_report(o.report);
  const Machine machine = Machine::load(o.machine);
  const models::Model model = model_of(o.model);
  const Explanation compiled =
      explain(model.graph, model.mesh, model.layout, model.options, machine, store_of(o.model), {o.device});
  const Simulation simulation = simulate(compiled.program(), machine, o.device);
  if (o.trace) write_trace(*o.trace, simulation.trace());
  if (o.report)
    StepReport{.title = model.name, .compiled = compiled, .predicted = simulation, .show = o.show}.write(*o.report);
  std::cout << (o.json ? simulation.json() + "\n" : simulation.summary());
}

}  // namespace

void add_simulate(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("simulate", "Predict a step of a model on a machine that need not be here");
  const auto o = std::make_shared<SimulateOptions>();
  sub->add_option("MODEL", o->model.name, "A built-in model, or a config as weft train takes it")->required();
  sub->add_option("MORE", o->model.more, "Configs whose settings override the configs before them");
  sub->add_option("--machine", o->machine, "A machine by its name, or a description: docs/machines.md")->required();
  add_model_options(*sub, o->model);
  sub->add_option("--device", o->device, "The device to compile for, see weft doctor")->capture_default_str();
  sub->add_option("--trace", o->trace, "Write the predicted step to this file, for Perfetto and weft trace-summary");
  add_report_option(*sub, o->report, "the predicted step");
  sub->add_option("--show", o->show, "With --report: draw how this tensor lies on the mesh; may be repeated")
      ->allow_extra_args(false);
  sub->add_flag("--json", o->json, "One JSON object, see docs/machines.md")->disable_flag_override();
  sub->footer([] {
    std::string text = "Machines:";
    for (const std::string& name : Machine::shipped()) text += " " + name;
    return text + "; weft calibrate describes this one\n" + model_list();
  });
  sub->callback([o, &action] { action = [o] { run_simulate(*o); }; });
}

}  // namespace weft::tools
