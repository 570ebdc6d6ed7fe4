#include "train/error_setting.h"

#include <cctype>

#include "train/settings.h"

namespace weft::train {

namespace {

bool has_word(const std::string& text, const std::string& word) {
  const auto is_letter = [&](std::size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_');
  };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    if ((at == 0 || !is_letter(at - 1)) && !is_letter(at + word.size())) return true;
  return false;
}

std::string key_in(const Config& config, const SettingOfError& blame, const ErrorText& error) {
  for (const SettingOfError::PhraseRule& clue : blame.clues)
    if (error.what.find(clue.phrase) != std::string::npos || error.where.text.find(clue.phrase) != std::string::npos)
      return clue.key;
  std::string exact, named;
  Config all = config;
  each_setting(all, [&](const std::string& key, auto&, const char*) {
    if (error.where.text == key) exact = key;
    if (blame.section.empty() || !key.starts_with(blame.section + ".")) return;
    const std::string name = key.substr(blame.section.size() + 1);
    if (error.where.text == name) exact = key;
    if (named.empty() && has_word(error.what, name)) named = key;
  });
  return !exact.empty() ? exact : !named.empty() ? named : blame.otherwise;
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
