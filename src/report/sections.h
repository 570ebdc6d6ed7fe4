// The sections of a report, each as the markup below its heading.
#pragma once

#include <string>

#include "weft/report.h"

namespace weft::report {

std::string summary_body(const StepReport& report);
std::string mesh_body(const StepReport& report);
std::string memory_body(const StepReport& report);
std::string timeline_body(const StepReport& report);
std::string collectives_body(const StepReport& report);
std::string frontier_body(const StepReport& report);
std::string candidates_body(const StepReport& report);
std::string rules_body(const StepReport& report);

}  // namespace weft::report
