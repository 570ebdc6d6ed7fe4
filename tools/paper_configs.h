// The configs of the Mesh-TensorFlow paper, as they lie in configs/paper: the command knows them by name.
#pragma once

#include <map>
#include <string>

namespace weft::tools {

// "paper/lm-4.9b" -> the text of configs/paper/lm-4.9b.toml. tools/CMakeLists.txt makes it of the files.
const std::map<std::string, std::string>& paper_configs();

}  // namespace weft::tools
