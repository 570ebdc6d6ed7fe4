#include "export_stablehlo.h"

#include <cerrno>
#include <cstring>
#include <iostream>

#include "weft/detail/stablehlo.h"
#include "weft/detail/train_parts.h"
#include "weft/detail/written_file.h"

namespace weft::tools {

namespace {

void write_text(const std::string& path, const std::string& text) {
  errno = 0;
  detail::WrittenFile file(path);
  if (file.stream()) file.stream() << text;
  if (!file.stream() || !file.finish())
    throw RunError({.code = "export.cannot-write-module",
                    .what = "cannot write '" + path + "': " + std::strerror(errno),
                    .where = "--stablehlo " + path,
                    .fix = "see that its folder exists, that you may write there and that the disk has room"});
}

}  // namespace

void add_stablehlo_options(CLI::App& sub, StableHloWords& o) {
  sub.add_option("--config", o.configs, "With --stablehlo: a config as weft train takes it; may be repeated")
      ->allow_extra_args(false);
  sub.add_option("--stablehlo", o.out, "Write one training step of --config as StableHLO, and FILE.json beside it");
  sub.add_option("--set", o.words.set, "With --config: section.name=value; may be repeated")->allow_extra_args(false);
  sub.add_option("--mesh", o.words.mesh, "With --config: mesh.mesh, as \"data:2 model:4\"");
  sub.add_option("--layout", o.words.layout, "With --config: mesh.layout");
  sub.add_option("--store", o.words.store, "With --config: mesh.store");
  sub.add_option("--store-level", o.words.store_level, "With --config: mesh.store_level");
}

void export_stablehlo(const StableHloWords& o) {
  if (o.configs.empty())
    throw UserError({.code = "export.no-config",
                     .what = "there is no config whose step could be written as StableHLO",
                     .where = "--stablehlo " + o.out,
                     .fix = "name a config: weft export --config my.toml --stablehlo " + o.out});
  const train::Config config = read_configs(o.configs, o.words);
  const models::Model model = train::step_model(config);
  const detail::StableHlo step =
      detail::stablehlo(model.name, model.graph, model.mesh, model.layout, model.options, train::store_of(config));
  write_text(o.out, step.module);
  write_text(o.out + ".json", step.manifest);
  std::cout << o.out << ": one step of " << model.name << " on " << model.mesh.size() << " processors, " << step.inputs
            << " inputs, " << step.variables << " variables, " << step.results << " results; " << o.out
            << ".json says how they are split\n";
}

}  // namespace weft::tools
