// The XLA engine as the rest of Weft sees it: programs compiled whole by an XLA compiler, through a PJRT plugin that is
// opened when a program first asks for it. Without the header pjrt_c_api.h the build has absent.cc in place of the rest.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace weft {

class Engine;

// The engine on this plugin, the path of a shared library; "": the plugin that the environment variable WEFT_PLUGIN
// names. UserError if there is none or if it cannot be used. The same engine for the same path. From any thread.
const Engine& xla_engine(const std::string& plugin, const std::string& where);

// Lines of `weft doctor`: a topic and what was found, or why the engine cannot be used. `plugin`: as above, besides the
// plugins that Python packages of this machine hold.
std::vector<std::pair<std::string, std::string>> describe_xla(const std::string& plugin);

}  // namespace weft
