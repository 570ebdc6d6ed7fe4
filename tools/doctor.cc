// weft doctor: lists what Weft can use on this machine.
#include "weft/detail/doctor.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "options.h"

namespace weft::tools {

namespace {

void run_doctor(bool json) {
  std::vector<std::pair<std::string, std::string>> found = doctor();
  found.insert(found.begin(), {"weft", WEFT_VERSION});
  if (json) {
    nlohmann::ordered_json all;
    for (const auto& [what, text] : found) all[what] = text;
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
  sub->callback([json, &action] { action = [json] { run_doctor(*json); }; });
}

}  // namespace weft::tools
