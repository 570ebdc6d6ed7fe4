// Writing a Config: as TOML, and as the page docs/config.md.
#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>

#include "train/identity.h"
#include "train/rules.h"
#include "train/settings.h"
#include "train/stored.h"
#include "weft/error.h"

namespace weft::train {

namespace {

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out << '\\' << c;
    else if (c == '\n') out << "\\n";
    else if (c == '\t') out << "\\t";
    else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr char kDigits[] = "0123456789abcdef";
      out << "\\u00" << kDigits[c >> 4] << kDigits[c & 15];
    } else out << c;
  }
  return out.str() + '"';
}

std::string toml(bool value) { return value ? "true" : "false"; }
std::string toml(std::int64_t value) { return std::to_string(value); }
std::string toml(std::uint64_t value) { return std::to_string(value); }
std::string toml(double value) {
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  const std::string text(digits, end);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}
std::string toml(const std::string& value) { return quoted(value); }
std::string toml(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ", ") + quoted(value);
  return "[" + text + "]";
}
std::string toml(const std::vector<optim::Rule>& rules) {
  std::vector<std::string> texts;
  for (const optim::Rule& rule : rules) texts.push_back(text_of(rule));
  return toml(texts);
}
template <class T>
requires std::is_enum_v<T> std::string toml(T value) {
  for (const auto& [word, meant] : words_of(T{}))
    if (meant == value) return quoted(word);
  return quoted("");
}

template <class T>
std::string toml(const std::optional<T>& value) {  // "": not written
  return value ? toml(*value) : "";
}

// What stands beside the default in the reference: the words of a choice.
template <class T>
std::string choices() {
  std::string list;
  if constexpr (std::is_enum_v<T>)
    for (const auto& [word, value] : words_of(T{})) list += (list.empty() ? ": " : ", ") + word;
  return list;
}

bool is_identity(const std::string& key) {
  return std::find(identity_keys().begin(), identity_keys().end(), key) != identity_keys().end();
}

// What a setting is if nothing sets it and its own default does not say it.
std::string meaning_of_unset(const std::string& key) {
  const optim::AdamOptions adam;
  const optim::AdafactorOptions adafactor;
  const std::map<std::string, std::string> meanings = {
      {"model.extra_logit", "no such class"},
      {"model.loss_denominator", "the number of positions"},
      {"model.slice", "as `stored`"},
      {"optimizer.rate", "`1.0`; without a schedule `0.001`"},
      {"optimizer.schedule", "`\"constant 1\"`"},
      {"optimizer.weight_decay", "`0.0`; of adamw `" + toml(optim::kAdamWDecay) + "`"},
      {"optimizer.momentum", "`" + toml(optim::MomentumOptions().momentum) + "`"},
      {"optimizer.beta1", "`" + toml(adam.beta1) + "`; of adafactor `" + toml(adafactor.beta1) + "`"},
      {"optimizer.beta2", "`" + toml(adam.beta2) + "`"},
      {"optimizer.epsilon", "`" + toml(adam.epsilon) + "`"},
      {"optimizer.bias_correction", "`" + toml(adam.bias_correction) + "`"},
      {"optimizer.factored", "`" + toml(adafactor.factored) + "`"},
      {"optimizer.multiply_by_parameter_scale", "`" + toml(adafactor.multiply_by_parameter_scale) + "`"},
      {"optimizer.min_dim_size_to_factor", "`" + toml(adafactor.min_dim_size_to_factor) + "`"},
      {"optimizer.clipping_threshold", "`" + toml(adafactor.clipping_threshold) + "`"},
      {"optimizer.decay_exponent", "`" + toml(adafactor.decay_exponent) + "`"},
      {"optimizer.decay_beta2", "as `decay_exponent` says"},
      {"optimizer.step_offset", "`" + toml(adafactor.step_offset) + "`"},
      {"optimizer.epsilon1", "`" + toml(adafactor.epsilon1) + "`"},
      {"optimizer.epsilon2", "`" + toml(adafactor.epsilon2) + "`"}};
  const auto found = meanings.find(key);
  return found == meanings.end() ? "" : found->second;
}

std::pair<std::string, std::string> section_and_name(const std::string& key) {
  const std::size_t dot = key.find('.');
  if (dot == std::string::npos) return {"", key};
  return {key.substr(0, dot), key.substr(dot + 1)};
}

}  // namespace

std::string text(const Config& config) { return text_without(config, {}); }

std::string text_without(const Config& config, const std::vector<std::string>& keys) {
  std::ostringstream out;
  std::string open;
  Config copy = config;
  each_setting(copy, [&](const std::string& key, auto& field, const char* doc) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) return;
    const auto [section, name] = section_and_name(key);
    if (section != open) out << "\n[" << section << "]\n";
    open = section;
    const std::string value = toml(field);
    out << (value.empty() ? "# " + name + " =" : name + " = " + value) << "  # " << doc << "\n";
  });
  return out.str();
}

std::map<std::string, std::string> values_of(const Config& config) {
  std::map<std::string, std::string> values;
  Config copy = config;
  each_setting(copy, [&](const std::string& key, auto& field, const char*) { values[key] = toml(field); });
  return values;
}

std::string reference() {
  std::ostringstream out;
  out << "# The settings of a config\n\n"
         "A config is a TOML file. More files may follow the first and hold over it (`configs/layouts` has meshes), "
         "and\n"
         "`weft train FILE --set section.name=value` holds over all; `--print-config` prints what came of it. An "
         "unknown\n"
         "setting is refused with the nearest known one. Paths are relative to the folder in which the command runs.\n"
         "This page is generated from src/train/settings.h.\n\n"
         "Settings marked *identity* give the weights of a run their meaning. A run that goes on, or is used, under "
         "another value\n"
         "is refused, unless `--allow-change KEY` says that the change is meant; see docs/checkpoints.md.\n\n";
  std::string open;
  Config defaults;
  defaults.model.vocab = 0;
  each_setting(defaults, [&]<class T>(const std::string& key, T& field, const char* doc) {
    const auto [section, name] = section_and_name(key);
    if (section != open) out << "\n## [" << section << "]\n";
    if (section != open || section.empty()) out << "| setting | default | |\n|---|---|---|\n";
    open = section;
    const std::string unset = meaning_of_unset(key), value = toml(field);
    internal_check(!unset.empty() || !value.empty(), "a setting without a default has no meaning in docs/config.md");
    out << "| `" << name << "` | " << (unset.empty() ? "`" + value + "`" : unset) << " | " << doc << choices<T>()
        << (is_identity(key) ? "; *identity*" : "") << " |\n";
  });
  return out.str();
}

}  // namespace weft::train
