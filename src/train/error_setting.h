// Places of settings: errors about a config name its file, line and setting instead of a line of Weft's own code.
#pragma once

#include <string>
#include <vector>

#include "weft/config.h"
#include "weft/error.h"

namespace weft::train {

// "lm.toml:12 (model.heads)", "--set model.heads=3", or the key alone if no file or option sets it.
std::string place_of(const Config& config, const std::string& key);

// Which setting an error is about. The first of these that applies:
// - the key of the first rule whose code is the error's; a rule "area." stands for all codes of the area;
// - the setting that the error's `where` names: "model.heads", or in `section` "heads" and "heads at file:line";
// - the setting of `section` that the code names: "adam.bad-beta1" is about beta1;
// - `otherwise`.
struct SettingOfError {
  struct CodeRule {
    std::string code, key;
  };
  std::vector<CodeRule> codes = {};
  std::string section = {};
  std::string otherwise;
};

// The error with the setting's place in front of its own; lines of Weft's code are left out.
UserError at_setting(const Config& config, const SettingOfError& blame, const UserError& error);

// Returns what make() returns. A UserError that it throws becomes at_setting().
template <class Make>
auto placed(const Config& config, const SettingOfError& blame, const Make& make) {
  try {
    return make();
  } catch (const UserError& error) {
    throw at_setting(config, blame, error);
  }
}

}  // namespace weft::train
