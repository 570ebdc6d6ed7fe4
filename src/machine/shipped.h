// The descriptions of machines/*.toml: every program that links Weft knows them by name.
#pragma once

#include <map>
#include <string>

namespace weft {

// "h200x8" -> the text of machines/h200x8.toml. CMakeLists.txt generates it from the files.
const std::map<std::string, std::string>& shipped_machines();

}  // namespace weft
