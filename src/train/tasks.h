// The list of tasks as the config sees it.
#pragma once

#include <string>
#include <vector>

#include "weft/task.h"

namespace weft::train {

inline constexpr const char* kDefaultKind = "lm";

std::vector<const TaskDefinition*> task_definitions();  // that of the default kind first, then by name
const TaskDefinition& definition_of(const std::string& kind);

}  // namespace weft::train
