// Executables on disk, and how a program is built: from the cache, by a child process, or here.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "base/cache_folder.h"
#include "base/clock.h"
#include "base/str.h"
#include "runtime/xla/compiler.h"

namespace weft::xla {

namespace {

// The instructions of this processor: what the CPU's compiler makes may not run on another.
const std::string& processor_flags() {
  static const std::string kFlags = [] {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("flags") || line.starts_with("Features")) return line;
    return std::string();
  }();
  return kFlags;
}

}  // namespace

void warn(const std::string& text) { std::cerr << str("warning: ", text, "\n"); }

std::string cache_file(const CompileRequest& request) {
  const std::string place = cache_folder("WEFT_XLA_CACHE", "xla");
  if (place == "off") return "";
  std::error_code ignored;
  const auto time = std::filesystem::last_write_time(request.plugin, ignored).time_since_epoch().count();
  const std::string about =
      str(compile_options({}, "cuda"), std::filesystem::file_size(request.plugin, ignored), " ", time, "\n",
          request.devices, "\n", request.topology,
          "\n", processor_flags(), "\n", compile_options({}, "cpu"), "\n");
  return str(place, "/", hash_text(about + request.module, 1), hash_text(request.module + about, 2), ".pjrt");
}

std::optional<CompileResult> read_cache(const std::string& file) {
  if (file.empty() || !std::filesystem::exists(file)) return std::nullopt;
  std::optional<CompileResult> result;
  if (std::filesystem::is_regular_file(file)) {
    std::ifstream in(file, std::ios::binary);
    result = result_from({std::istreambuf_iterator<char>(in.rdbuf()), {}});
  }
  if (!result) warn(str("the cached executable ", file, " is damaged; it is compiled again"));
  return result;
}

void write_cache(const std::string& file, const CompileResult& result) {
  if (file.empty() || result.executable.empty()) return;
  static std::atomic<bool> has_warned = false;
  if (!write_whole(file, to_bytes(result)) && !has_warned.exchange(true))
    warn(str("executables cannot be kept in ", std::filesystem::path(file).parent_path().string(),
             "; set WEFT_XLA_CACHE to another folder, or to off"));
}

namespace {

BuiltProgram compile_here(const Client& client, const std::string& module, const std::string& file) {
  const double begin = seconds_now();
  BuiltProgram built{.program = client.compile(module, compile_options(client.device_ids(), client.platform())),
                     .memory = {}};
  built.seconds = seconds_now() - begin;
  built.memory = built.program.memory();
  CompileResult kept{.memory = built.memory, .seconds = built.seconds, .devices = client.devices()};
  try {
    if (!file.empty()) kept.executable = built.program.serialized();
    write_cache(file, kept);
  } catch (const CallError&) {  // a plugin that cannot serialize has no cache
  }
  return built;
}

}  // namespace

void check(const CompileResult& result, const std::string& plugin) {
  if (!result.error_code.empty())
    throw UserError({.code = ErrorCode(result.error_code),
                     .what = result.message,
                     .where = str("plugin ", plugin),
                     .fix = result.fix});
  if (!result.succeeded()) throw CallError(result.call, result.code, result.message, plugin);
}

BuiltProgram build(const Client& client, const std::string& module) {
  const CompileRequest request{.plugin = client.plugin().path(), .devices = client.devices(), .module = module};
  const std::string file = cache_file(request);
  const auto loaded = [&](const CompileResult& result) -> std::optional<BuiltProgram> {
    try {
      return BuiltProgram{client.load(result.executable), result.memory, result.seconds};
    } catch (const CallError& error) {
      warn(str("the plugin cannot load an executable that it has compiled; it is compiled again: ", error.message()));
      return std::nullopt;
    }
  };
  if (const std::optional<CompileResult> cached = read_cache(file))
    if (std::optional<BuiltProgram> built = loaded(*cached)) return std::move(*built);
  // A second client would take the memory of real devices, or find them taken: then this process compiles.
  if (!client.makes_devices()) return compile_here(client, module, file);
  const std::optional<CompileResult> result = serve_in_child(request);
  if (result && result->call != "PJRT_Executable_Serialize") check(*result, request.plugin);
  if (result && !result->executable.empty())
    if (std::optional<BuiltProgram> built = loaded(*result)) {
      write_cache(file, *result);
      return std::move(*built);
    }
  return compile_here(client, module, file);
}

CompileResult build_for_topology(const std::string& plugin, const std::string& topology, int devices,
                                 const std::string& module) {
  const CompileRequest request{.plugin = plugin, .devices = devices, .topology = topology, .module = module};
  const std::string file = cache_file(request);
  if (std::optional<CompileResult> cached = read_cache(file)) return *cached;
  std::optional<CompileResult> result = serve_in_child(request);
  if (!result) result = serve(request);
  if (result->call == "PJRT_TopologyDescription_Create")
    throw UserError({.code = "device.xla-topology",
                     .what = str("the plugin cannot compile for topology '", topology, "': ", result->message),
                     .where = str("plugin ", plugin),
                     .fix = "write a topology of the plugin: v4:2x2x1 for libtpu, h200:1x1x8 for NVIDIA's plugin; "
                            "docs/xla.md lists more. XLA's CPU plugin has none: leave --topology out"});
  if (result->succeeded()) write_cache(file, *result);
  else if (result->code != PJRT_Error_Code_RESOURCE_EXHAUSTED) check(*result, request.plugin);
  return *result;
}

}  // namespace weft::xla
