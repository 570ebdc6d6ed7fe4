// weft doctor: lists what Weft can use on this machine.
#include "weft/detail/doctor.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "options.h"

namespace weft::tools {

namespace {

void run_doctor(bool json, const std::string& plugin) {
  std::vector<std::pair<std::string, std::string>> found = doctor(plugin);
  found.insert(found.begin(), {"weft", WEFT_VERSION});
  if (json) {
    nlohmann::ordered_json all;
    for (const auto& [what, text] : found) {
      if (what == "device xla") all[what].push_back(text);  // one for each plugin
      else all[what] = text;
    }
    std::cout << all.dump(2) << "\n";
    return;
  }
  std::size_t width = 0;
  for (const auto& [what, text] : found) width = std::max(width, what.size());
  for (const auto& [what, text] : found) std::cout << what << std::string(width + 2 - what.size(), ' ') << text << "\n";
}

}  // namespace

std::string version_text() { return std::string("weft ") + WEFT_VERSION; }

void add_doctor(CLI::App& app, Action& action) {
  CLI::App* sub =
      app.add_subcommand("doctor", "List what Weft can use on this machine: devices, wires, cores, masks, versions");
  const auto json = std::make_shared<bool>(false);
  sub->add_flag("--json", *json, "One JSON object")->disable_flag_override();
  const auto plugin = std::make_shared<std::string>();
  sub->add_option("--plugin", *plugin, "Of device xla: also look at this plugin; default: the variable WEFT_PLUGIN");
  sub->callback([json, plugin, &action] { action = [json, plugin] { run_doctor(*json, *plugin); }; });
}

}  // namespace weft::tools
