#include "report_file.h"

#include <algorithm>

#include "weft/detail/train_parts.h"

namespace weft::tools {

void add_report_option(CLI::App& sub, ReportPath& path, const std::string& what) {
  sub.add_option("--report", path, "Write " + what + " to this file as a page of HTML; see docs/report.md");
}

void check_report(const ReportPath& path) {
  if (path && wire::process() == 0) check_report_path(*path);
}

void use_plan(const Plan& plan, train::Config& config) {
  config.mesh.mesh = plan.mesh.text();
  config.mesh.layout = plan.layout.text();
  config.mesh.store = plan.store.text();
  if (plan.store.level() > 0) config.mesh.store_level = plan.store.level();
  config.batch.microbatches = plan.microbatches;
  if (plan.recompute == Recompute::kLayers) train::set(config, "model.recompute=true");
  if (plan.recompute == Recompute::kCompiler) config.mesh.memory = std::to_string(plan.memory_limit);
}

StepReport report_of(const train::Config& config, const Machine& machine) {
  StepReport report{.title = config.name, .compiled = train::plan(config, {.machine = machine}), .predicted = {}};
  report.predicted = simulate(report.compiled.program(), machine, config.mesh.device);
  return report;
}

Machine host_machine(const device::Choice& device, int processors) {
  Machine machine = measure_machine(device, processors);
  machine.name = "this machine";
  machine.processors = std::max(processors, machine.processors);
  machine.links = {{.name = "memory",
                    .topology = Topology::kSharedMemory,
                    .sides = {processors},
                    .latency = 1e-6,
                    .bandwidth = machine.bytes_per_second}};
  return machine;
}

}  // namespace weft::tools
