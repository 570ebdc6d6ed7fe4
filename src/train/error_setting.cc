#include "train/error_setting.h"

#include <algorithm>

#include "train/settings.h"

namespace weft::train {

namespace {

std::string key_in(const Config& config, const SettingOfError& blame, const ErrorText& error) {
  const std::string &code = error.code.text, &where = error.where.text;
  for (const SettingOfError::CodeRule& rule : blame.codes)
    if (rule.code.ends_with('.') ? code.starts_with(rule.code) : code == rule.code) return rule.key;
  std::string by_place, by_code;
  Config all = config;
  each_setting(all, [&](const std::string& key, auto&, const char*) {
    if (where == key) by_place = key;
    if (blame.section.empty() || !key.starts_with(blame.section + ".")) return;
    std::string name = key.substr(blame.section.size() + 1);
    if (where == name || where.starts_with(name + " at ")) by_place = key;
    std::replace(name.begin(), name.end(), '_', '-');
    if (code.ends_with(".bad-" + name)) by_code = key;
  });
  return !by_place.empty() ? by_place : !by_code.empty() ? by_code : blame.otherwise;
}

// "input at src/train/parts.cc:93, layout \"batch:data\"" -> "layout \"batch:data\"".
std::string without_own_lines(const std::string& where) {
  std::string kept;
  for (std::size_t begin = 0; begin <= where.size();) {
    const std::size_t end = std::min(where.find(", ", begin), where.size());
    const std::string part = where.substr(begin, end - begin);
    const bool own = part.find("src/") != std::string::npos && part.find(".cc:") != std::string::npos;
    if (!own) kept += (kept.empty() ? "" : ", ") + part;
    begin = end + 2;
  }
  return kept;
}

}  // namespace

std::string place_of(const Config& config, const std::string& key) {
  const auto found = config.places.find(key);
  if (found == config.places.end()) return key;
  return found->second.starts_with("--set ") ? found->second : found->second + " (" + key + ")";
}

UserError at_setting(const Config& config, const SettingOfError& blame, const UserError& error) {
  ErrorText text = error.text();
  const std::string key = key_in(config, blame, text), rest = without_own_lines(text.where.text);
  const bool names_it = rest.empty() || rest == key || key.ends_with("." + rest);
  text.where = place_of(config, key) + (names_it ? "" : ", " + rest);
  return UserError(text);
}

}  // namespace weft::train
