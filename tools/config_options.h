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

// Whether the name of a model is that of a config: a .toml file, or one of the paper's, as "paper/lm-4.9b".
bool is_config(const std::string& name);
// The first config, or that of the run in a folder, with the settings of the others and of the words over it.
train::Config read_configs(const std::vector<std::string>& names, const ConfigWords& words);
// The words of a built-in model as those of a config.
ConfigWords config_words(const ModelWords& words);

void add_config_options(CLI::App& sub, ConfigWords& words);  // --set, --mesh, --layout, --store, …, --allow-change

}  // namespace weft::tools
