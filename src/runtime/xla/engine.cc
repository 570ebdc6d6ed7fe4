// The XLA engine: it hands the whole program to the compiler of a PJRT plugin.
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/clock.h"
#include "base/str.h"
#include "program/fusible.h"
#include "runtime/xla/compiler.h"
#include "runtime/xla/device.h"
#include "runtime/xla/open.h"
#include "runtime/xla/roofs.h"
#include "stablehlo/emit.h"

namespace weft::xla {

namespace {

class XlaEngine : public Engine {
 public:
  XlaEngine(std::string plugin, std::string where) : path_(std::move(plugin)), where_(std::move(where)) {}

  const std::string& name() const override { return name_; }
  const Target& target() const override { return target_; }
  bool has(const Instr&) const override { return true; }  // the emitter lists what it cannot write

  Devices open(comm::Wire& wire, const Mesh& mesh, const DeviceOptions&) const override {
    return open_devices(plugin(), wire, mesh);
  }

  BindReport describe(const std::shared_ptr<const Compiled>& compiled, const DeviceOptions& options) const override {
    BindReport report;
    list(compiled->program, report.instructions);
    report.compiler =
        options.topology.empty() ? here(compiled->program) : ahead_of_time(compiled->program, options.topology);
    return report;
  }

  Roofs measure(int processors, const DeviceOptions&) const override {
    const Roofs one = measure_device(plugin());
    return {one.flops_per_second / processors, one.bytes_per_second / processors};
  }

 private:
  const Plugin& plugin() const { return Plugin::open(path_, where_); }

  CompilerMemory here(const Program& program) const {
    const std::shared_ptr<const Client> client = client_for(plugin(), program.mesh);
    const BuiltProgram built = build(*client, stablehlo::emit(program, {.platform = platform_of(*client)}).text);
    return compiler_memory(path_, built.memory, built.seconds);
  }

  CompilerMemory ahead_of_time(const Program& program, const std::string& topology) const {
    const Mesh& mesh = program.mesh;
    const std::string module = stablehlo::emit(program, {.platform = platform_of_topology(topology)}).text;
    const CompileResult result = build_for_topology(path_, topology, mesh.size(), module);
    if (result.devices != mesh.size())
      throw UserError({.code = "device.topology-size",
                       .what = str("mesh ", mesh.axes().empty() ? "\"\"" : mesh.text(), " has ", mesh.size(),
                                   " processors, but topology ", topology, " has ", result.devices, " devices"),
                       .where = str("plugin ", path_),
                       .fix =
                           "choose a mesh with as many processors as the topology has devices (a chip of TPU v2, v3, "
                           "v4 and TPU7x has two)"});
    CompilerMemory memory = compiler_memory(path_, result.memory, result.seconds);
    memory.cpu_seconds = result.cpu_seconds;
    memory.topology = topology;
    memory.executable = cache_file({.plugin = path_, .devices = mesh.size(), .topology = topology, .module = module});
    if (!result.succeeded()) memory.refusal = result.message;
    return memory;
  }

  void list(const Program& program, std::vector<RunInstr>& all) const {
    for (const Instr& instr : program.body) {
      if (const auto* loop = instr.as<Loop>()) list(*loop->body, all);
      if (!is_view(instr) && !instr.is<Done>()) all.push_back({&program, &instr, false, name_});
    }
  }

  const std::string path_, where_;
  const std::string name_ = "xla";
  const Target target_ = {};  // XLA fuses, aligns and plans by itself
};

constexpr std::chrono::seconds kPatience{20};  // with a plugin that looks for its devices

// Where Python packages keep plugins.
std::vector<std::string> installed_plugins() {
  std::vector<std::string> roots = {"/usr/local", "/usr"};
  if (const char* environment = std::getenv("VIRTUAL_ENV")) roots.insert(roots.begin(), environment);
  if (const char* home = std::getenv("HOME")) roots.push_back(str(home, "/.local"));
  std::vector<std::string> found;
  std::error_code ignored;
  const auto entries = [&](const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) all.push_back(entry.path());
    return all;
  };
  for (const std::string& root : roots)
    for (const std::filesystem::path& python : entries(root + "/lib"))
      for (const char* packages : {"site-packages", "dist-packages"}) {
        if (std::filesystem::exists(python / packages / "libtpu/libtpu.so", ignored))
          found.push_back(python / packages / "libtpu/libtpu.so");
        for (const char* plugins : {"xla_plugins", "jax_plugins"})
          for (const std::filesystem::path& package : entries(python / packages / plugins))
            for (const std::filesystem::path& file : entries(package))
              if (file.extension() == ".so") found.push_back(file);
      }
  return found;
}

// A plugin that searches for its devices in vain, as libtpu without a TPU, still compiles ahead of time: a topology that
// does not exist gives its versions.
std::string versions_without_devices(const std::string& path) try {
  const std::optional<CompileResult> result = serve_in_child({.plugin = path, .topology = "none"}, kPatience);
  return result && !result->versions.empty() ? result->versions + "; " : "";
} catch (const Error&) {
  return "";
}

std::string describe_plugin(const std::string& path) {
  try {
    std::optional<CompileResult> result = serve_in_child({.plugin = path, .devices = 1}, kPatience);
    if (!result) result = serve({.plugin = path, .devices = 1});
    const std::string versions = result->versions.empty() ? "" : result->versions + "; ";
    return str(path, ": ", versions, result->succeeded() ? "" : "not used: ", result->message);
  } catch (const Error& error) {
    return str(path, ": ", versions_without_devices(path), "not used: ", error.text().what);
  }
}

}  // namespace

}  // namespace weft::xla

namespace weft {

namespace {

// The path that was given, or that of the environment.
std::string plugin_or_default(const std::string& plugin) {
  if (!plugin.empty()) return plugin;
  const char* given = std::getenv("WEFT_PLUGIN");
  return given ? given : "";
}

}  // namespace

const Engine& xla_engine(const std::string& plugin, const std::string& where) {
  const std::string path = plugin_or_default(plugin);
  if (path.empty())
    throw UserError({.code = "device.xla-needs-plugin",
                     .what = "the device 'xla' needs a PJRT plugin, and none is given",
                     .where = where,
                     .fix = "add --plugin FILE.so, or set mesh.plugin or the environment variable WEFT_PLUGIN; weft "
                            "doctor lists the plugins that it finds"});
  static std::mutex mutex;
  static auto& engines = *new std::map<std::string, std::unique_ptr<const xla::XlaEngine>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<const xla::XlaEngine>& engine = engines[path];
  if (!engine) engine = std::make_unique<const xla::XlaEngine>(path, where);
  return *engine;
}

std::vector<std::pair<std::string, std::string>> describe_xla(const std::string& plugin) {
  std::vector<std::string> paths = xla::installed_plugins();
  const std::string given = plugin_or_default(plugin);
  if (!given.empty() && std::find(paths.begin(), paths.end(), given) == paths.end()) paths.insert(paths.begin(), given);
  if (paths.empty())
    return {{"device xla", "no plugin found; --plugin FILE.so or WEFT_PLUGIN names one (docs/xla.md)"}};
  std::vector<std::pair<std::string, std::string>> lines;
  for (const std::string& path : paths) lines.emplace_back("device xla", xla::describe_plugin(path));
  return lines;
}

}  // namespace weft
