// The configs of the Mesh-TensorFlow paper in configs/paper: the command knows them by name.
#pragma once

#include <map>
#include <string>

namespace weft::tools {

// "paper/lm-4.9b" -> the text of configs/paper/lm-4.9b.toml. tools/CMakeLists.txt generates it from the files.
const std::map<std::string, std::string>& paper_configs();

}  // namespace weft::tools
