// Serves requests to the compiler, in this process.
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>

#include "base/clock.h"
#include "base/str.h"
#include "runtime/xla/compiler.h"

namespace weft::xla {

namespace {

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * t.tv_usec; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class Stopwatch {
 public:
  explicit Stopwatch(CompileResult& result) : result_(result) {}
  ~Stopwatch() {
    result_.seconds = seconds_now() - wall_;
    result_.cpu_seconds = cpu_seconds() - cpu_;
  }

 private:
  CompileResult& result_;
  const double wall_ = seconds_now(), cpu_ = cpu_seconds();
};

// A GpuTargetConfigProto in text form: what XLA must know of a card that is not here.
const std::map<std::string, std::string>& known_cards() {
  static const std::map<std::string, std::string> kCards = {{"h200", R"(
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152 shared_memory_per_core: 233472
  threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128 block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535 block_dim_limit_z: 65535 memory_bandwidth: 4800000000000 l2_cache_size: 52428800
  clock_rate_ghz: 1.98 device_memory_size: 151397597184 shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 } registers_per_core_limit: 65536 registers_per_block_limit: 65536
  thread_dim_limit_x: 1024 thread_dim_limit_y: 1024 thread_dim_limit_z: 64 device_address_bits: 64
  name: "NVIDIA H200" driver_version: "13.0.0" runtime_version: "13.0.0" compile_time_toolkit_version: "13.0.0"
  dnn_version: "9.10.0" }
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 patch: 0 }
device_description_str: "NVIDIA H200"
)"}};
  return kCards;
}

// The text of a card: a known one, or a file.
std::optional<std::string> card_text(const std::string& name) {
  if (known_cards().contains(name)) return known_cards().at(name);
  if (!std::filesystem::is_regular_file(name)) return std::nullopt;
  std::ifstream file(name, std::ios::binary);
  return std::string{std::istreambuf_iterator<char>(file.rdbuf()), {}};
}

PJRT_NamedValue option(std::string_view name, const std::string& value) {
  auto option = args_of<PJRT_NamedValue>();
  option.name = name.data();
  option.name_size = name.size();
  option.type = PJRT_NamedValue_kString;
  option.string_value = value.data();
  option.value_size = value.size();
  return option;
}

// "v4:2x2x1" by its name; "h200:1x1x8", or a file in place of h200, by the target and slices x hosts x cards.
Owned<PJRT_TopologyDescription> topology_of(const Plugin& plugin, const std::string& name) {
  const std::size_t colon = name.rfind(':');
  const std::optional<std::string> card = card_text(name.substr(0, colon));
  const std::string shape = colon == std::string::npos ? "" : name.substr(colon + 1);
  std::vector<PJRT_NamedValue> options;
  if (card) options = {option("target_config", *card), option("topology", shape)};
  auto args = args_of<PJRT_TopologyDescription_Create_Args>();
  args.topology_name = card ? "" : name.data();
  args.topology_name_size = card ? 0 : name.size();
  args.create_options = options.data();
  args.num_options = options.size();
  WEFT_PJRT(plugin, PJRT_TopologyDescription_Create, args);
  return {plugin, args.topology};
}

std::vector<int> ids_of(const Plugin& plugin, const Owned<PJRT_TopologyDescription>& topology) {
  auto args = args_of<PJRT_TopologyDescription_GetDeviceDescriptions_Args>();
  args.topology = topology.get();
  WEFT_PJRT(plugin, PJRT_TopologyDescription_GetDeviceDescriptions, args);
  std::vector<int> ids;
  for (std::size_t i = 0; i < args.num_descriptions; ++i) {
    auto id = args_of<PJRT_DeviceDescription_Id_Args>();
    id.device_description = args.descriptions[i];
    WEFT_PJRT(plugin, PJRT_DeviceDescription_Id, id);
    ids.push_back(id.id);
  }
  return ids;
}

void compile_for_topology(const Plugin& plugin, const CompileRequest& request, CompileResult& result) {
  const Owned<PJRT_TopologyDescription> topology = topology_of(plugin, request.topology);
  const std::vector<int> ids = ids_of(plugin, topology);
  result.devices = static_cast<int>(ids.size());
  if (result.devices != request.devices || request.module.empty()) return;
  static constexpr std::string_view kFormat = "mlir";
  auto program = args_of<PJRT_Program>();
  program.code = const_cast<char*>(request.module.data());
  program.code_size = request.module.size();
  program.format = kFormat.data();
  program.format_size = kFormat.size();
  const bool is_cuda = platform_of_topology(request.topology) == stablehlo::Platform::kCuda;
  const std::string options = compile_options(ids, is_cuda ? "cuda" : "");
  auto args = args_of<PJRT_Compile_Args>();
  args.topology = topology.get();
  args.program = &program;
  args.compile_options = options.data();
  args.compile_options_size = options.size();
  {
    const Stopwatch stopwatch(result);
    WEFT_PJRT(plugin, PJRT_Compile, args);
  }
  const Owned<PJRT_Executable> executable(plugin, args.executable);
  result.memory = memory_of(plugin, executable.get());
  result.executable = serialized(plugin, executable.get());
}

void compile_for_client(const Plugin& plugin, const CompileRequest& request, CompileResult& result) {
  const Client client(plugin, request.devices);
  result.devices = client.devices();
  if (request.module.empty()) {
    result.message = str(client.devices(), client.devices() == 1 ? " device " : " devices ", client.device_kind(),
                         ", platform ", client.platform());
    return;
  }
  if (result.devices != request.devices) return;
  LoadedProgram program;
  {
    const Stopwatch stopwatch(result);
    program = client.compile(request.module, compile_options(client.device_ids(), client.platform()));
  }
  result.memory = program.memory();
  result.executable = program.serialized();
}

// cuDNN's fused attention needs compute capability 8.0. Plugins that say nothing of it are new.
stablehlo::Platform platform_of_card(const std::string& capability) {
  int major = 0;
  std::from_chars(capability.data(), capability.data() + capability.size(), major);
  return capability.empty() || major >= 8 ? stablehlo::Platform::kCuda : stablehlo::Platform::kAny;
}

}  // namespace

stablehlo::Platform platform_of(const Client& client) {
  return client.platform() == "cuda" ? platform_of_card(client.attribute("compute_capability"))
                                     : stablehlo::Platform::kAny;
}

stablehlo::Platform platform_of_topology(const std::string& topology) {
  const std::optional<std::string> card = card_text(topology.substr(0, topology.rfind(':')));
  if (!card || card->find("platform_name: \"CUDA\"") == std::string::npos) return stablehlo::Platform::kAny;
  static constexpr std::string_view kMajor = "major: ";
  const std::size_t at = card->find(kMajor, card->find("cuda_compute_capability"));
  return platform_of_card(at == std::string::npos ? "" : card->substr(at + kMajor.size()));
}

CompileResult serve(const CompileRequest& request) {
  CompileResult result;
  try {
    const Plugin& plugin = Plugin::open(request.plugin, request.plugin);
    result.versions = str("PJRT ", plugin.api_version(), ", StableHLO ", plugin.stablehlo_version());
    if (request.topology.empty()) compile_for_client(plugin, request, result);
    else compile_for_topology(plugin, request, result);
  } catch (const CallError& error) {
    result.code = error.pjrt_code();
    result.message = error.message();
    result.call = error.call();
  } catch (const UserError& error) {
    result.error_code = error.text().code.text;
    result.message = error.text().what;
    result.fix = error.text().fix;
  }
  return result;
}

}  // namespace weft::xla
