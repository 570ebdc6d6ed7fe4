// The options of subcommands that take a config or what was trained from one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "options.h"
#include "weft/config.h"

namespace weft::tools {

// --set, and the settings that have an option of their own.
struct ConfigWords {
  std::vector<std::string> set;
  std::optional<std::string> mesh, layout, store, wire, out;
  std::optional<int> store_level;
  std::optional<std::int64_t> steps;
  std::vector<std::string> allow_change;  // of a run that goes on or is used

  // All of them as assignments, in the order in which they hold.
  std::vector<std::string> assignments() const;
};

void add_config_options(CLI::App& sub, ConfigWords& words);  // --set, --mesh, --layout, --store, …, --allow-change

}  // namespace weft::tools
