// weft export --config … --stablehlo FILE: one training step as StableHLO.
#pragma once

#include <string>

#include "config_options.h"

namespace weft::tools {

struct StableHloWords {
  std::vector<std::string> configs;
  std::string out;  // the module; the manifest is beside it, as FILE.json
  ConfigWords words;
};

void add_stablehlo_options(CLI::App& sub, StableHloWords& words);
void export_stablehlo(const StableHloWords& words);

}  // namespace weft::tools
