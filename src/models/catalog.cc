#include "models/catalog.h"

#include <algorithm>
#include <charconv>

#include "weft/error.h"
#include "weft/detail/words.h"

namespace weft::models {

namespace {

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string advice(const std::string& word, const std::vector<std::string>& known, const std::string& sentence) {
  const std::string near = nearest_word(word, known);
  return near.empty() ? sentence + listed(known) : "did you mean '" + near + "'? " + sentence + listed(known);
}

const Entry& entry_of(const std::string& name) {
  for (const Entry& entry : catalog())
    if (entry.name == name) return entry;
  throw UserError({.code = "models.unknown-model",
                   .what = "there is no built-in model '" + name + "'",
                   .where = "models::build",
                   .fix = advice(name, names(), "the models are: ")});
}

// The entry's sizes with the given ones in place.
Sizes merged(const Entry& entry, const Sizes& given) {
  Sizes sizes = entry.sizes;
  std::vector<std::string> known;
  for (const auto& [dim, size] : sizes) known.push_back(dim);
  for (const auto& [dim, size] : given) {
    const auto found = sizes.find(dim);
    if (found == sizes.end())
      throw UserError({.code = "models.unknown-size",
                       .what = "model '" + entry.name + "' has no size '" + dim + "' to set",
                       .where = "size " + dim + "=" + std::to_string(size),
                       .fix = advice(dim, known, "it has: ")});
    found->second = size;
  }
  return sizes;
}

std::vector<Entry> all_entries() {
  std::vector<Entry> all = {
      {"two_layer",
       "y = relu(x w) v, and from a given dy the derivatives by w, v and x",
       {{"batch", 64}, {"io", 256}, {"hidden", 1024}},
       "rows:2 cols:2",
       "batch:rows hidden:cols",
       build_two_layer},
      {"mlp",
       "a classifier of dense layers whose dims alternate between hidden and width, with one step of SGD",
       {{"batch", 64}, {"pixel", 64}, {"hidden", 1024}, {"width", 256}, {"digit", 10}, {"layers", 3}},
       "data:2 model:2",
       "batch:data hidden:model",
       build_mlp},
      {"transformer",
       "a decoder-only language model, with one step of Adam",
       {{"batch", 8},
        {"length", 128},
        {"d_model", 256},
        {"heads", 4},
        {"d_kv", 64},
        {"d_ff", 1024},
        {"vocab", 1024},
        {"layers", 2}},
       "data:2 model:2",
       "batch:data heads,d_ff,vocab:model",
       build_transformer},
  };
  for (Entry& entry : benchmark_models()) all.push_back(std::move(entry));
  return all;
}

}  // namespace

const std::vector<Entry>& catalog() {
  static const std::vector<Entry> kEntries = all_entries();
  return kEntries;
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Entry& entry : catalog()) all.push_back(entry.name);
  return all;
}

Sizes complete_sizes(const std::string& name, const Sizes& given) { return merged(entry_of(name), given); }

std::string description(const std::string& name) { return entry_of(name).description; }
Sizes default_sizes(const std::string& name) { return entry_of(name).sizes; }

Model build(const std::string& name, const Sizes& sizes) {
  const Entry& entry = entry_of(name);
  Model model{
      .name = name, .graph = {}, .options = {}, .mesh = Mesh::parse(entry.mesh), .layout = Layout::parse(entry.layout)};
  entry.build(model, merged(entry, sizes));
  return model;
}

Sizes parse_sizes(std::string_view text) {
  Sizes sizes;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string dim(word.substr(0, equals));
    const std::string_view digits = word.substr(std::min(equals + 1, word.size()));
    std::int64_t size = 0;
    const auto [stop, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    if (dim.empty() || failure != std::errc() || stop != digits.data() + digits.size() || size < 1)
      throw UserError({.code = "models.bad-size-text",
                       .what = "'" + std::string(word) + "' does not set a size",
                       .where = "sizes \"" + std::string(text) + "\", column " + std::to_string(begin + 1),
                       .fix = "write dim=size with a whole size of at least one, as in batch=64,hidden=1024"});
    if (!sizes.emplace(dim, size).second)
      throw UserError({.code = "models.size-set-twice",
                       .what = "the size of '" + dim + "' is set twice",
                       .where = "sizes \"" + std::string(text) + "\", column " + std::to_string(begin + 1),
                       .fix = "set it once"});
    begin = end + 1;
  }
  return sizes;
}

}  // namespace weft::models
