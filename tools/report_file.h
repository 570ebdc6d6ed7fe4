// --report of the commands: the page of a step, and the plan that the step follows.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "weft/config.h"
#include "weft/report.h"

namespace weft::tools {

using ReportPath = std::optional<std::string>;

void add_report_option(CLI::App& sub, ReportPath& path, const std::string& what);
// Before the work: RunError if the page cannot be written there.
void check_report(const ReportPath& path);

// Sets mesh, layout, storage layout, microbatches and recomputation to those of the plan.
void use_plan(const Plan& plan, train::Config& config);
// The step of a config that the plan has been put into, compiled and predicted.
StepReport report_of(const train::Config& config, const Machine& machine);

// This machine without a description: its measured peaks, and collectives at the speed of its memory.
Machine host_machine(const device::Choice& device, int processors);

}  // namespace weft::tools
