// Reading a Config. The file is flattened to "section.name" keys with their lines; the settings take theirs, and what is
// left is an error.
#include "weft/config.h"

#include <toml++/toml.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "train/identity.h"
#include "train/rules.h"
#include "train/settings.h"
#include "train/tasks.h"
#include "weft/error.h"
#include "weft/detail/words.h"

namespace weft::train {

namespace {

struct Given {
  const toml::node* node = nullptr;
  std::string where;  // "lm.toml:12"
};
using Flat = std::map<std::string, Given>;

void flatten(const toml::table& table, const std::string& prefix, const std::string& name, Flat& flat) {
  for (const auto& [key, node] : table) {
    const std::string full = prefix.empty() ? std::string(key.str()) : prefix + "." + std::string(key.str());
    if (const toml::table* inner = node.as_table()) flatten(*inner, full, name, flat);
    else flat[full] = {&node, name + ":" + std::to_string(node.source().begin.line)};
  }
}

std::string shown(const toml::node& node) {
  std::ostringstream out;
  node.visit([&](const auto& n) { out << n; });
  return out.str();
}

[[noreturn]] void wrong_kind(const std::string& key, const Given& given, const std::string& wanted) {
  throw UserError({.code = "config.wrong-type",
                   .what = "setting '" + key + "' is " + wanted + ", but it was given " + shown(*given.node),
                   .where = given.where,
                   .fix = "see docs/config.md, or weft train --print-config for a complete one"});
}

void take(const std::string& key, const Given& given, bool& field) {
  const auto value = given.node->value_exact<bool>();
  if (!value) wrong_kind(key, given, "true or false");
  field = *value;
}
void take(const std::string& key, const Given& given, std::int64_t& field) {
  const auto value = given.node->value_exact<std::int64_t>();
  if (!value || *value < 0) wrong_kind(key, given, "a whole number from 0 on");
  field = *value;
}
void take(const std::string& key, const Given& given, std::uint64_t& field) {
  std::int64_t number = 0;
  take(key, given, number);
  field = static_cast<std::uint64_t>(number);
}
void take(const std::string& key, const Given& given, double& field) {
  const auto value = given.node->value<double>();
  if (!given.node->is_number() || !value) wrong_kind(key, given, "a number");
  field = *value;
}
void take(const std::string& key, const Given& given, std::string& field) {
  const auto value = given.node->value_exact<std::string>();
  if (!value) wrong_kind(key, given, "a text in quotes");
  field = *value;
}
void take(const std::string& key, const Given& given, std::vector<std::string>& field) {
  field.clear();
  if (const auto one = given.node->value_exact<std::string>()) {
    field = {*one};
    return;
  }
  if (!given.node->is_array()) wrong_kind(key, given, "a list of texts");
  for (const toml::node& item : *given.node->as_array()) {
    const auto value = item.value_exact<std::string>();
    if (!value) wrong_kind(key, given, "a list of texts");
    field.push_back(*value);
  }
}
void take(const std::string& key, const Given& given, std::vector<std::int32_t>& field) {
  field.clear();
  if (!given.node->is_array()) wrong_kind(key, given, "a list of ids");
  for (const toml::node& item : *given.node->as_array()) {
    const auto value = item.value_exact<std::int64_t>();
    if (!value || *value < 0 || *value > INT32_MAX) wrong_kind(key, given, "a list of ids");
    field.push_back(static_cast<std::int32_t>(*value));
  }
}
void take(const std::string& key, const Given& given, std::vector<optim::Rule>& field) {
  std::vector<std::string> texts;
  take(key, given, texts);
  field.clear();
  for (const std::string& text : texts) field.push_back(parse_rule(text, given.where));
}

std::string listed(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
  return list;
}

void take(const std::string& key, const Given& given, const Choice& choice) {
  std::string text;
  take(key, given, text);
  if (std::find(choice.words.begin(), choice.words.end(), text) != choice.words.end()) return choice.set(text);
  const std::string near = nearest_word(text, choice.words);
  throw UserError(
      {.code = "config.unknown-choice",
       .what = "setting '" + key + "' cannot be '" + text + "'",
       .where = given.where,
       .fix = (near.empty() ? "" : "did you mean '" + near + "'? ") + "it is one of: " + listed(choice.words)});
}

template <class T>
void take(const std::string& key, const Given& given, std::optional<T>& field) {
  T value{};
  take(key, given, value);
  field = value;
}

template <class T>
void take(const std::string& key, const Given& given, T* field) {
  take(key, given, *field);
}
void take(const std::string& key, const Given& given, Setting& setting) {
  std::visit([&](auto& field) { take(key, given, field); }, setting.field);
}

// The settings of [model] that `config` was given for other kinds than the one to which `flat` changes it: the new task
// gets them too.
toml::table given_for_other_kind(const Config& config, const Flat& flat) {
  const auto found = flat.find("model.kind");
  const auto kind = found == flat.end() ? std::nullopt : found->second.node->value_exact<std::string>();
  const std::vector<std::string> all = task_kinds();
  const bool is_known = kind && std::find(all.begin(), all.end(), *kind) != all.end();
  if (!is_known || &definition_of(*kind) == &definition_of(config.model->kind())) return {};
  const std::map<std::string, std::string> values = values_of(config);
  std::string text;
  for (const auto& [key, place] : config.places)
    if (key.starts_with("model.") && key != "model.kind" && !values.at(key).empty())
      text += key + " = " + values.at(key) + "\n";
  return toml::parse(text);
}

// The kinds that have a setting, such as "model.heads"; "" if none has.
std::string kinds_with(const std::string& key) {
  std::vector<std::string> kinds;
  for (const TaskDefinition* definition : task_definitions()) {
    const std::unique_ptr<Task> task = definition->make();
    for (const Setting& setting : task->settings())
      if ("model." + setting.name == key) kinds.insert(kinds.end(), definition->kinds.begin(), definition->kinds.end());
  }
  return listed(kinds);
}

[[noreturn]] void refuse_unknown(const Config& config, const std::string& key, const Given& given,
                                 const std::vector<std::string>& known) {
  if (const std::string kinds = kinds_with(key); !kinds.empty())
    throw UserError({.code = "config.setting-of-other-kind",
                     .what = "a model of kind '" + config.model->kind() + "' has no setting '" + key + "'",
                     .where = given.where,
                     .fix = "leave it out: it is for the kinds " + kinds});
  std::string near = nearest_word(key, known);
  for (const std::string& full : known)
    if (near.empty() && full.ends_with("." + key)) near = full;  // only the section is missing
  throw UserError({.code = "config.unknown-setting",
                   .what = "there is no setting '" + key + "'",
                   .where = given.where,
                   .fix = near.empty() ? "see docs/config.md for the settings" : "did you mean '" + near + "'?"});
}

void apply(Config& config, Flat flat) {
  const toml::table kept = given_for_other_kind(config, flat);
  Flat before;
  flatten(kept, "", "", before);
  for (const auto& [key, given] : before) flat.emplace(key, Given{given.node, config.places.at(key)});
  std::vector<std::string> known;
  each_setting(config, [&](const std::string& key, auto& field, const char*) {
    known.push_back(key);
    const auto found = flat.find(key);
    if (found == flat.end()) return;
    take(key, found->second, field);
    config.places[key] = found->second.where;
    flat.erase(found);
  });
  if (!flat.empty()) refuse_unknown(config, flat.begin()->first, flat.begin()->second, known);
}

toml::table parsed(std::string_view text, const std::string& name) {
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    throw UserError({.code = "config.not-toml",
                     .what = "the config is no TOML: " + std::string(error.description()),
                     .where = name + ":" + std::to_string(error.source().begin.line),
                     .fix = "write settings as `key = value`, texts in quotes; see docs/config.md"});
  }
}

// Where "a.b=1,c.d=2" divides: at commas behind which another key and '=' follow.
std::vector<std::string> divided(std::string_view text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != ',') continue;
    std::size_t end = at + 1;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_' || text[end] == '.'))
      ++end;
    if (end == at + 1 || end >= text.size() || text[end] != '=') continue;
    parts.emplace_back(text.substr(begin, at - begin));
    begin = at + 1;
  }
  parts.emplace_back(text.substr(begin));
  return parts;
}

// The value as TOML; what is none is a text: `--set mesh.layout=batch:data` needs no quotes.
toml::table assignment(const std::string& key, const std::string& value) {
  try {
    return toml::parse(key + " = " + value);
  } catch (const toml::parse_error&) {
    std::string quoted;
    for (const char c : value) quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    return parsed(key + " = \"" + quoted + "\"", "--set " + key + "=" + value);
  }
}

}  // namespace

namespace {

// Former names of settings: checkpoints of earlier versions have them in their configs.
const std::map<std::string, std::string> kFormerNames = {{"mesh.runtime", "mesh.device"}};

void rename_former(Flat& flat) {
  for (const auto& [former, name] : kFormerNames)
    if (const auto found = flat.find(former); found != flat.end() && flat.emplace(name, found->second).second)
      flat.erase(found);
}

}  // namespace

Config parse_config(std::string_view text, const std::string& name) {
  const toml::table table = parsed(text, name);
  Flat flat;
  flatten(table, "", name, flat);
  rename_former(flat);
  Config config;
  apply(config, std::move(flat));
  return config;
}

namespace {

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  const bool is_empty = file && file.peek() == std::ifstream::traits_type::eof() && !file.bad();
  if (is_empty) return "";
  if (!file || !(text << file.rdbuf()))
    throw UserError({.code = "config.unreadable-file",
                     .what = "cannot read the config '" + path + "'",
                     .where = path,
                     .fix = "give the path of a .toml file, such as configs/lm-demo.toml"});
  return text.str();
}

}  // namespace

Config read_config(const std::string& path) { return parse_config(file_text(path), path); }

void read_more(Config& config, const std::string& path) {
  const toml::table table = parsed(file_text(path), path);
  Flat flat;
  flatten(table, "", path, flat);
  apply(config, std::move(flat));
}

void set(Config& config, std::string_view assignments) {
  for (const std::string& part : divided(assignments)) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UserError({.code = "config.sets-nothing",
                       .what = "'" + part + "' sets nothing",
                       .where = "--set " + part,
                       .fix = "write key=value, as in --set run.steps=100"});
    const std::string key = part.substr(0, equals), value = part.substr(equals + 1);
    const toml::table table = assignment(key, value);
    Flat flat;
    flatten(table, "", "--set", flat);
    for (auto& [name, given] : flat) given.where = "--set " + part;
    apply(config, std::move(flat));
  }
}

std::int64_t Config::sequences() const {
  if (batch.sequences > 0) return batch.sequences;
  return batch.tokens > 0 ? batch.tokens / batch.length : 8;
}

}  // namespace weft::train
