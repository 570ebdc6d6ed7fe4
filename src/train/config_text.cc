// Writing a Config: as TOML, and as the page docs/config.md.
#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>

#include "train/identity.h"
#include "train/rules.h"
#include "train/settings.h"
#include "train/stored.h"
#include "train/tasks.h"
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
std::string toml(const std::vector<std::int32_t>& ids) {
  std::string text;
  for (const std::int32_t id : ids) text += (text.empty() ? "" : ", ") + std::to_string(id);
  return "[" + text + "]";
}
std::string toml(const std::vector<optim::Rule>& rules) {
  std::vector<std::string> texts;
  for (const optim::Rule& rule : rules) texts.push_back(text_of(rule));
  return toml(texts);
}

template <class T>
std::string toml(const std::optional<T>& value) {  // "": not written
  return value ? toml(*value) : "";
}

std::string toml(const Choice& choice) { return choice.get().empty() ? "" : quoted(choice.get()); }
template <class T>
std::string toml(T* field) {
  return toml(*field);
}
std::string toml(const Setting& setting) {
  return std::visit([](const auto& field) { return toml(field); }, setting.field);
}

// The words of a choice, which stand behind the explanation in the reference.
std::string choices(const Setting& setting) {
  std::string list;
  if (const Choice* choice = std::get_if<Choice>(&setting.field))
    for (const std::string& word : choice->words) list += (list.empty() ? ": " : ", ") + word;
  return list;
}

// What a setting is if nothing sets it and its own default does not say it.
std::string meaning_of_unset(const std::string& key) {
  const optim::AdamOptions adam;
  const optim::AdafactorOptions adafactor;
  const std::map<std::string, std::string> meanings = {
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

namespace {

// A row of the reference's tables.
std::string row(const std::string& key, const std::string& value, const std::string& unset, const std::string& doc,
                bool is_identity) {
  internal_check(!unset.empty() || !value.empty(), "a setting without a default has no meaning in docs/config.md");
  return "| `" + section_and_name(key).second + "` | " + (unset.empty() ? "`" + value + "`" : unset) + " | " + doc +
         (is_identity ? "; *identity*" : "") + " |\n";
}

constexpr const char* kTable = "| setting | default | |\n|---|---|---|\n";

// Section [model]: the kinds, and the settings of each task.
std::string model_reference() {
  std::string text = std::string("\n## [model]\n") + kTable;
  for (const TaskDefinition* definition : task_definitions()) {
    ModelConfig model;
    model.set_kind(definition->kinds[0]);
    each_model_setting(model, [&](const std::string& key, const Setting& setting, const char* doc) {
      const bool is_kind = key == "model.kind";
      if (!is_kind || definition == task_definitions()[0])
        text += row(key, toml(setting), setting.unset, doc + choices(setting), setting.is_identity);
      if (!is_kind) return;
      text += "\nOf kind";
      for (const std::string& kind : definition->kinds)
        text += (&kind == &definition->kinds[0] ? " `" : ", `") + kind + "`";
      text += std::string(":\n\n") + kTable;
    });
  }
  return text;
}

}  // namespace

std::string reference() {
  std::string out =
      "# The settings of a config\n\n"
      "A config is a TOML file. More files may follow the first and hold over it (`configs/layouts` has meshes), and\n"
      "`weft train FILE --set section.name=value` holds over all; `--print-config` prints what came of it. An unknown\n"
      "setting is refused with the nearest known one. Paths are relative to the folder in which the command runs.\n"
      "This page is generated from src/train/settings.h and the tasks of src/train/tasks.\n\n"
      "Settings marked *identity* give the weights of a run their meaning. A run that is resumed, or used, under "
      "another "
      "value\n"
      "is refused, unless `--allow-change KEY` says that the change is meant; see docs/checkpoints.md.\n\n";
  std::string open;
  Config defaults;
  const std::vector<std::string> identity = identity_keys(defaults);
  each_setting(defaults, [&](const std::string& key, auto& field, const char* doc) {
    const std::string section = section_and_name(key).first;
    if (section != open && section == "model") out += model_reference();
    else if (section != open) out += "\n## [" + section + "]\n";
    if (section != "model" && (section != open || section.empty())) out += kTable;
    open = section;
    if (section == "model") return;
    const bool is_identity = std::find(identity.begin(), identity.end(), key) != identity.end();
    out += row(key, toml(field), meaning_of_unset(key), doc, is_identity);
  });
  return out;
}

std::vector<std::string> identity_keys(const Config& config) {
  std::vector<std::string> keys;
  ModelConfig model = config.model;
  each_model_setting(model, [&](const std::string& key, const Setting& setting, const char*) {
    if (setting.is_identity) keys.push_back(key);
  });
  keys.insert(keys.end(), {"data.vocabulary", "optimizer.name"});
  return keys;
}

}  // namespace weft::train
