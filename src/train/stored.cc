#include "train/stored.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "weft/data.h"
#include "weft/error.h"

namespace weft::train {

namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "config.toml";
constexpr const char* kVocabulary = "vocabulary.model";

void make_absolute(std::vector<std::string>& paths) {
  for (std::string& path : paths) path = fs::absolute(path).lexically_normal().string();
}

// The folder in which the checkpoint lies.
std::string folder_of(const Checkpoint& checkpoint) {
  fs::path path = fs::path(checkpoint.path()).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return path.has_parent_path() ? path.parent_path().string() : ".";
}

// Of the vocabulary that the checkpoint was trained with; "" if nothing says it.
std::string fingerprint_of(const Checkpoint& checkpoint) {
  const std::string copy = vocabulary_copy(checkpoint);
  if (!copy.empty()) return data::Vocabulary::open(copy).fingerprint();
  if (stored_config(checkpoint).data.vocabulary == "bytes") return "bytes";
  const auto position = checkpoint.state().texts.find("data.json");
  if (position == checkpoint.state().texts.end()) return "";
  const nlohmann::json json = nlohmann::json::parse(position->second, nullptr, false);
  const nlohmann::json::json_pointer place("/data/vocabulary");
  return json.is_object() && json.contains(place) && json[place].is_string() ? json[place].get<std::string>() : "";
}

}  // namespace

std::map<std::string, std::string> stored_texts(const Config& config) {
  Config stored = config;
  make_absolute(stored.data.train);
  make_absolute(stored.data.dev);
  std::map<std::string, std::string> texts;
  if (config.data.vocabulary != "bytes") {
    texts[kVocabulary] = data::Vocabulary::of(config.data.vocabulary).model();
    stored.data.vocabulary = kVocabulary;
  }
  texts[kConfig] = text_without(stored, {"mesh.wire", "run.out"});
  return texts;
}

Config stored_config(const Checkpoint& checkpoint) {
  const auto found = checkpoint.state().texts.find(kConfig);
  if (found == checkpoint.state().texts.end())
    throw UserError({.code = "checkpoint.no-config",
                     .what = "the checkpoint '" + checkpoint.path() + "' has no config.toml",
                     .where = checkpoint.path(),
                     .fix = "put the config that it was trained with there"});
  Config config = parse_config(found->second, checkpoint.path() + "/" + kConfig);
  if (const std::string copy = vocabulary_copy(checkpoint); !copy.empty()) config.data.vocabulary = copy;
  config.mesh.wire = MeshConfig{}.wire;
  config.run.out = folder_of(checkpoint);
  return config;
}

std::string vocabulary_copy(const Checkpoint& checkpoint) {
  return checkpoint.state().texts.contains(kVocabulary) ? checkpoint.path() + "/" + kVocabulary : "";
}

void check_vocabulary(const Checkpoint& checkpoint, const Config& config) {
  const std::string& name = config.data.vocabulary;
  const std::string wanted = fingerprint_of(checkpoint), copy = vocabulary_copy(checkpoint);
  if (name != "bytes" && !fs::exists(name))
    throw UserError({.code = "vocabulary.file-missing",
                     .what = "the vocabulary '" + name + "' is not there, and '" + checkpoint.path() + "' needs it",
                     .where = "data.vocabulary",
                     .fix = "give its path: --set data.vocabulary=" + (copy.empty() ? "PATH" : copy)});
  const std::string given = data::Vocabulary::of(name).fingerprint();
  if (wanted.empty() || given == wanted) return;
  const std::string own = wanted == "bytes" ? wanted : copy;
  throw UserError({.code = "vocabulary.other-than-trained",
                   .what = "the vocabulary '" + name + "' (fingerprint " + given + ") is not the vocabulary that '" +
                           checkpoint.path() + "' was trained with (fingerprint " + wanted + ")",
                   .where = "data.vocabulary",
                   .fix = (own.empty() ? "give the path of the vocabulary of its training: --set data.vocabulary=PATH"
                                       : "use the vocabulary of the run: --set data.vocabulary=" + own) +
                          "; if another is meant, add --allow-change data.vocabulary"});
}

}  // namespace weft::train
