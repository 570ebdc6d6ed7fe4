#include "train/identity.h"

#include <algorithm>
#include <sstream>

#include "train/settings.h"
#include "train/stored.h"
#include "weft/error.h"
#include "weft/detail/words.h"

namespace weft::train {

namespace {

constexpr const char* kVocabularyEntry = "data.vocabulary";

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string listed(const std::vector<std::string>& words, const std::string& between) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : between) + word;
  return all;
}

void check_allowed(const Config& config, const std::vector<std::string>& allowed) {
  const std::vector<std::string> keys = identity_keys(config);
  for (const std::string& key : allowed) {
    if (has(keys, key)) continue;
    const std::string near = nearest_word(key, keys);
    throw UserError({.code = "config.change-not-of-identity",
                     .what = "'" + key + "' is no setting that --allow-change is for",
                     .where = "--allow-change " + key,
                     .fix = (near.empty() ? "" : "did you mean '" + near + "'? ") +
                            std::string("it is for the identity settings: ") + listed(keys, ", ")});
  }
}

// "model.layers is 2 there and 4 here; …"
std::string compared(const std::vector<std::string>& keys, const Config& stored, const Config& given) {
  const std::map<std::string, std::string> there = values_of(stored), here = values_of(given);
  const auto shown = [](const std::string& value) { return value.empty() ? "not set" : value; };
  std::vector<std::string> parts;
  for (const std::string& key : keys)
    parts.push_back(key + " is " + shown(there.at(key)) + " there and " + shown(here.at(key)) + " here");
  return listed(parts, "; ");
}

// Of the settings that both kinds of model have.
template <class Wanted>
std::vector<std::string> different(const Config& stored, const Config& given, const Wanted& wanted) {
  const std::map<std::string, std::string> there = values_of(stored);
  std::vector<std::string> keys;
  for (const auto& [key, value] : values_of(given))
    if (const auto found = there.find(key); found != there.end() && value != found->second && wanted(key))
      keys.push_back(key);
  return keys;
}

void check_settings(const Checkpoint& checkpoint, const Config& stored, const Config& config,
                    const std::vector<std::string>& allowed, Use use) {
  const std::vector<std::string> identity = identity_keys(config);
  const std::vector<std::string> keys = different(stored, config, [&](const std::string& key) {
    return key != kVocabularyEntry && has(identity, key) && !has(allowed, key) &&
           !(use == Use::kBeginWith && key.starts_with("optimizer."));
  });
  if (keys.empty()) return;
  throw UserError({.code = "config.other-than-trained",
                   .what = "the weights of '" + checkpoint.path() +
                           "' were trained under other settings: " + compared(keys, stored, config),
                   .where = checkpoint.path(),
                   .fix = "give the settings the values of the run, or, if the change is meant, add --allow-change " +
                          listed(keys, " --allow-change ")});
}

// "3 variables more (a, b, c)"
std::string counted(const std::vector<std::string>& names, const std::string& what) {
  constexpr std::size_t kMost = 3;
  if (names.empty()) return "";
  const std::vector<std::string> first(names.begin(),
                                       names.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, names.size())));
  std::ostringstream out;
  out << "; " << names.size() << (names.size() == 1 ? " variable " : " variables ") << what << " ("
      << listed(first, ", ") << (names.size() > kMost ? ", …)" : ")");
  return out.str();
}

// Whether the setting, with the value that the run has, would give the config's model other weights.
bool shapes_weights(const std::string& key, const Config& stored, const Config& config) {
  const std::string value = values_of(stored).at(key);
  if (!key.starts_with("model.") || value.empty()) return false;
  Config one = config;
  set(one, key + "=" + value);
  try {
    return weight_shapes(one) != weight_shapes(config);
  } catch (const UserError&) {  // no model by itself, but one along with others
    return true;
  }
}

void check_weights(const Checkpoint& checkpoint, const Config& stored, const Config& config, Use use) {
  std::vector<std::string> missing, unlike, unused;
  const std::map<std::string, Shape> wanted = weight_shapes(config);
  for (const auto& [name, shape] : wanted) {
    const auto found = checkpoint.variables().find(name);
    std::ostringstream text;
    if (found == checkpoint.variables().end()) {
      missing.push_back(name);
    } else if (!same_dims(found->second.shape, shape)) {
      text << name << " " << found->second.shape << " there and " << shape << " here";
      unlike.push_back(text.str());
    }
  }
  for (const auto& [name, variable] : checkpoint.variables())
    if (variable.slot_of.empty() && !wanted.contains(name)) unused.push_back(name);
  if (missing.empty() && unlike.empty() && unused.empty()) return;
  const std::vector<std::string> keys =
      different(stored, config, [&](const std::string& key) { return shapes_weights(key, stored, config); });
  const bool goes_on = use == Use::kGoOn;
  throw UserError({.code = "checkpoint.other-model",
                   .what = "the model is another than that of '" + checkpoint.path() +
                           "': " + (keys.empty() ? "its variables differ" : compared(keys, stored, config)) +
                           counted(missing, "are here alone") + counted(unused, "are there alone") +
                           counted(unlike, "have other shapes"),
                   .where = checkpoint.path(),
                   .fix = goes_on ? "go on with the settings of the run, or begin a new run with its weights: --out "
                                    "FOLDER --init-from " +
                                        checkpoint.path() + (missing.empty() ? "" : " --allow-missing") +
                                        (unused.empty() ? "" : " --allow-unused")
                                  : "leave the settings of [model] as they were in training"});
}

}  // namespace

void check_identity(const Checkpoint& checkpoint, const Config& config, const std::vector<std::string>& allowed,
                    Use use) {
  check_allowed(config, allowed);
  if (!checkpoint.state().texts.contains("config.toml")) return;
  const Config stored = stored_config(checkpoint);
  if (!has(allowed, kVocabularyEntry)) check_vocabulary(checkpoint, config);
  check_settings(checkpoint, stored, config, allowed, use);
  if (use != Use::kBeginWith) check_weights(checkpoint, stored, config, use);
}

std::map<std::string, Shape> weight_shapes(const Config& config) {
  const Graph graph = config.model->weights(config);
  std::map<std::string, Shape> shapes;
  for (const Tensor& variable : graph.variables()) shapes[variable_name(variable)] = variable.shape();
  return shapes;
}

}  // namespace weft::train
