#include "config_options.h"

#include <filesystem>

#include "paper_configs.h"
#include "weft/detail/train_parts.h"

namespace weft::tools {

namespace {

std::string quoted(const std::string& text) {
  std::string all = "\"";
  for (const char c : text) all += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return all + "\"";
}

}  // namespace

std::vector<std::string> ConfigWords::assignments() const {
  std::vector<std::string> all = set;
  if (mesh) all.push_back("mesh.mesh=" + quoted(*mesh));
  if (layout) all.push_back("mesh.layout=" + quoted(*layout));
  if (store) all.push_back("mesh.store=" + quoted(*store));
  if (store_level) all.push_back("mesh.store_level=" + std::to_string(*store_level));
  if (wire) all.push_back("mesh.wire=" + quoted(*wire));
  if (device) all.push_back("mesh.device=" + quoted(*device));
  if (plugin) all.push_back("mesh.plugin=" + quoted(*plugin));
  if (nondeterministic) all.push_back("mesh.nondeterministic=true");
  if (out) all.push_back("run.out=" + quoted(*out));
  if (steps) all.push_back("run.steps=" + std::to_string(*steps));
  return all;
}

bool is_config(const std::string& name) { return name.ends_with(".toml") || paper_configs().contains(name); }

train::Config read_configs(const std::vector<std::string>& names, const ConfigWords& words,
                           const std::optional<std::string>& first) {
  const auto paper = paper_configs().find(names[0]);
  const bool is_run = !first && std::filesystem::is_directory(names[0]);
  train::Config config = first                            ? train::parse_config(*first, names[0])
                         : is_run                         ? train::stored_config(Checkpoint::open(names[0]))
                         : paper == paper_configs().end() ? train::read_config(names[0])
                                                          : train::parse_config(paper->second, names[0]);
  for (std::size_t i = 1; i < names.size(); ++i) train::read_more(config, names[i]);
  for (const std::string& assignment : words.assignments()) train::set(config, assignment);
  return config;
}

ConfigWords config_words(const ModelWords& words) {
  ConfigWords config;
  config.set = words.set;
  config.mesh = words.mesh;
  config.layout = words.layout;
  config.store = words.store.text;
  config.store_level = words.store.level;
  if (words.memory) config.set.push_back("mesh.memory=" + quoted(*words.memory));
  return config;
}

void add_config_options(CLI::App& sub, ConfigWords& words) {
  sub.add_option("--set", words.set, "section.name=value of the config; may be repeated; see docs/config.md")
      ->allow_extra_args(false);
  sub.add_option("--mesh", words.mesh, "mesh.mesh of the config: axes and sizes, as \"data:2 model:2\"");
  sub.add_option("--layout", words.layout,
                 "mesh.layout: dims and the axes that split them; of weft train also auto: docs/planner.md");
  sub.add_option("--store", words.store, "mesh.store: the storage layout of the variables");
  sub.add_option("--store-level", words.store_level, "mesh.store_level: 1, 2 or 3");
  sub.add_option("--wire", words.wire,
                 "mesh.wire: threads, mpi or nccl; default: mpi under mpirun or srun, else threads");
  sub.add_option("--device", words.device, "mesh.device: what computes; weft doctor lists the devices");
  sub.add_option("--plugin", words.plugin, "mesh.plugin: of device xla, the PJRT plugin's shared library; docs/xla.md");
  sub.add_flag("--nondeterministic", words.nondeterministic,
               "mesh.nondeterministic: of device cuda, faster sums, whose roundings differ from run to run")
      ->disable_flag_override();
  sub.add_option("--allow-change", words.allow_change,
                 "A setting, marked identity in docs/config.md, that may differ from the run's; may be repeated")
      ->allow_extra_args(false);
}

}  // namespace weft::tools
