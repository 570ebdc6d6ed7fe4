// The options of subcommands that take a config or a run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "options.h"
#include "weft/config.h"

namespace weft::tools {

// --set, and the settings that have a separate option.
struct ConfigWords {
  std::vector<std::string> set;
  std::optional<std::string> mesh, layout, store, wire, device, plugin, out;
  bool nondeterministic = false;
  std::optional<int> store_level;
  std::optional<std::int64_t> steps;
  std::vector<std::string> allow_change;  // for a run that is resumed or used

  // All options as assignments, in increasing priority.
  std::vector<std::string> assignments() const;
};

// Whether the name of a model names a config: a .toml file, or a config of the paper, such as "paper/lm-4.9b".
bool is_config(const std::string& name);
// The first config, or the config of the run in a folder; the settings of the other configs and of the words override
// it. `first`: the text of the first config, if it is no file.
train::Config read_configs(const std::vector<std::string>& names, const ConfigWords& words,
                           const std::optional<std::string>& first = {});
// The words of a built-in model as words of a config.
ConfigWords config_words(const ModelWords& words);

void add_config_options(CLI::App& sub, ConfigWords& words);  // --set, --mesh, --layout, --store, …, --allow-change

}  // namespace weft::tools
