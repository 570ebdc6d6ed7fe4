#include "options.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "config_options.h"
#include "paper_configs.h"
#include "weft/detail/train_parts.h"
#include "weft/detail/words.h"

namespace weft::tools {

namespace {

// The subcommand that the words select.
const CLI::App& innermost(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen[0]);
}

std::string path_of(const CLI::App& app) {
  return app.get_parent() ? path_of(*app.get_parent()) + " " + app.get_name() : app.get_name();
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(sub->get_name());
  return names;
}

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

void check_name(const ModelWords& words) {
  const std::vector<std::string> names = models::names();
  if (std::find(names.begin(), names.end(), words.name) == names.end()) {
    const std::string near = nearest_word(words.name, names);
    throw UserError({.code = "command.unknown-model",
                     .what = "there is no built-in model '" + words.name + "'",
                     .where = "command line",
                     .fix = (near.empty() ? "" : "did you mean '" + near + "'? ") + "the models are: " + listed(names) +
                            "; a config is a .toml file, as configs/lm-demo.toml"});
  }
  if (!words.more.empty())
    throw UserError({.code = "command.word-after-model",
                     .what = "'" + words.more[0] + "' follows the built-in model '" + words.name + "'",
                     .where = "command line",
                     .fix = "leave it out; only configs, .toml files, may follow each other"});
}

UserError unknown_word(const CLI::App& app, const std::string& word) {
  const bool is_option = word.starts_with("-");
  const std::vector<std::string> known = is_option ? option_names(app) : subcommand_names(app);
  const std::string near = nearest_word(word.substr(0, word.find('=')), known);
  const std::string what = is_option ? "option" : known.empty() ? "argument" : "command";
  std::string fix = near.empty() ? "" : "did you mean '" + near + "'? ";
  fix += known.empty() ? "leave it out" : "there are: " + listed(known);
  return UserError({.code = "command.unknown-word",
                    .what = "'" + path_of(app) + "' has no " + what + " '" + word + "'",
                    .where = "command line",
                    .fix = fix + "; see " + path_of(app) + " --help"});
}

}  // namespace

UserError command_line_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& where = innermost(app);
  const std::vector<std::string> extra = app.remaining(true);
  if (!extra.empty()) return unknown_word(where, extra.front());
  const std::vector<std::string> subcommands = subcommand_names(where);
  if (!subcommands.empty())
    return UserError({.code = "command.missing-command",
                      .what = "'" + path_of(where) + "' needs a command",
                      .where = "command line",
                      .fix = "give one of: " + listed(subcommands) + "; see " + path_of(where) + " --help"});
  return UserError({.code = "command.bad-arguments",
                    .what = error.what(),
                    .where = "command line",
                    .fix = "see " + path_of(where) + " --help"});
}

void add_store_options(CLI::App& sub, StoreWords& words) {
  sub.add_option("--store", words.text,
                 "The storage layout of the variables, as in \"*:data\": '*' is the first dim of each whose shard "
                 "divides; see docs/storage.md");
  sub.add_option("--store-level", words.level, "1: optimizer state (default); 2: and gradients; 3: and parameters");
}

Store store_of(const StoreWords& words) {
  if (words.text) return Store::parse(*words.text, words.level.value_or(1));
  if (words.level)
    throw UserError({.code = "command.level-without-store",
                     .what = "--store-level " + std::to_string(*words.level) + " says nothing without --store",
                     .where = "command line",
                     .fix = "add --store \"*:AXIS\", with the axis that is to split the variables, or leave it out"});
  return {};
}

void add_model_options(CLI::App& sub, ModelWords& words) {
  sub.add_option("--mesh", words.mesh, "The processors, as in \"data:2 model:4\"; default: the model's");
  sub.add_option("--layout", words.layout,
                 "The layout: dims and the axes that split them, as in \"batch:data hidden:model\"; default: the "
                 "model's layout, none with --mesh");
  add_store_options(sub, words.store);
  sub.add_option("--memory", words.memory,
                 "The memory limit of a processor, as in 8GiB; values beyond it are recomputed instead of kept");
  sub.add_option("--set", words.set,
                 "dim=size[,dim=size…]: other sizes; of a config section.name=value; may be repeated")
      ->allow_extra_args(false);
}

std::vector<std::string> files_of(const ModelWords& words) {
  std::vector<std::string> files = {words.name};
  files.insert(files.end(), words.more.begin(), words.more.end());
  return files;
}

Store store_of(const ModelWords& words) {
  return is_config(words.name) ? train::store_of(read_configs(files_of(words), config_words(words)))
                               : store_of(words.store);
}

models::Model model_of(const ModelWords& words) {
  if (is_config(words.name)) return train::step_model(read_configs(files_of(words), config_words(words)));
  check_name(words);
  std::string sizes;
  for (const std::string& text : words.set) sizes += (sizes.empty() ? "" : ",") + text;
  models::Model model = models::build(words.name, sizes.empty() ? models::Sizes{} : models::parse_sizes(sizes));
  if (words.mesh) {
    model.mesh = Mesh::parse(*words.mesh);
    model.layout = Layout();  // the model's layout names the axes of the model's mesh
  }
  if (words.layout) model.layout = Layout::parse(*words.layout);
  if (words.memory) model.options.memory_bytes = static_cast<std::int64_t>(parse_bytes(*words.memory, "--memory")[0]);
  return model;
}

std::string model_list() {
  std::string text = "Configs: any .toml file, with --set section.name=value; and those of the paper:\n ";
  for (const auto& [name, config] : paper_configs()) text += " " + name;
  text += "\nModels, with the sizes that --set changes:\n";
  for (const std::string& name : models::names()) {
    text += "  " + name + ": " + models::description(name) + "\n   ";
    for (const auto& [dim, size] : models::default_sizes(name)) text += " " + dim + "=" + std::to_string(size);
    text += "\n";
  }
  return text;
}

void add_wire_option(CLI::App& app, std::string& wire) {
  app.add_option("--wire", wire, "threads, mpi or nccl; default: mpi under mpirun or srun, else threads");
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::vector<std::size_t> parse_bytes(const std::string& text, const std::string& option) {
  std::vector<std::size_t> all;
  for (const std::string& word : split_list(text)) {
    const std::optional<std::int64_t> bytes = bytes_of(word);
    if (!bytes)
      throw UserError({.code = "command.bad-bytes",
                       .what = "'" + word + "' is no number of bytes",
                       .where = option + " " + text,
                       .fix = "write sizes like 4096, 64KiB, 16MiB or 1GiB, with commas between"});
    all.push_back(static_cast<std::size_t>(*bytes));
  }
  return all;
}

std::vector<int> parse_counts(const std::string& text, const std::string& option) {
  std::vector<int> all;
  for (const std::string& word : split_list(text)) {
    int count = 0;
    const auto [stop, failure] = std::from_chars(word.data(), word.data() + word.size(), count);
    if (failure != std::errc() || stop != word.data() + word.size())
      throw UserError({.code = "command.bad-whole-number",
                       .what = "'" + word + "' is not a whole number",
                       .where = option + " " + text,
                       .fix = "write whole numbers with commas between, like 2,8"});
    all.push_back(count);
  }
  return all;
}

}  // namespace weft::tools
