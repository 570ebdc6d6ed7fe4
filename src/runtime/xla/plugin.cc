#include "runtime/xla/plugin.h"

#include <dlfcn.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <mutex>

#include "base/str.h"

namespace weft::xla {

namespace {

// The oldest version whose functions the engine was tried with, and the version of the texts that it writes.
constexpr int kOldestMinor = 81;
constexpr int kStablehloMajor = 1, kStablehloMinor = 13;

std::string advice(PJRT_Error_Code code) {
  switch (code) {
    case PJRT_Error_Code_RESOURCE_EXHAUSTED:
      return "use a smaller model or batch, microbatches, a storage layout, or more devices";
    case PJRT_Error_Code_UNIMPLEMENTED: return "use another plugin or --device cpu, which has all instructions";
    case PJRT_Error_Code_NOT_FOUND:
    case PJRT_Error_Code_FAILED_PRECONDITION:
    case PJRT_Error_Code_UNAVAILABLE:
    case PJRT_Error_Code_ABORTED:
      return "see that the devices of the plugin are in this machine and that no other process uses them";
    default: return "see `weft doctor --plugin PLUGIN` and docs/xla.md";
  }
}

// "1.13.3" -> {1, 13}; zeros for what is no number.
std::array<int, 2> version_of(const std::string& text) {
  std::array<int, 2> version{};
  const std::vector<std::string> words = split_words(text, ".");
  for (std::size_t i = 0; i < std::min(words.size(), version.size()); ++i)
    std::from_chars(words[i].data(), words[i].data() + words[i].size(), version[i]);
  return version;
}

UserError no_plugin(const std::string& path, const std::string& why, const std::string& where) {
  return UserError({.code = "device.xla-no-plugin",
                    .what = str("'", path, "' is no PJRT plugin: ", why),
                    .where = where,
                    .fix = "give the path of a plugin's shared library: --plugin …/xla_cpu_pjrt.so; docs/xla.md says "
                           "where to get one"});
}

}  // namespace

std::string text_of(const PJRT_NamedValue& value) {
  switch (value.type) {
    case PJRT_NamedValue_kString: return {value.string_value, value.value_size};
    case PJRT_NamedValue_kInt64: return str(value.int64_value);
    case PJRT_NamedValue_kFloat: return str(value.float_value);
    case PJRT_NamedValue_kBool: return value.bool_value ? "true" : "false";
    case PJRT_NamedValue_kInt64List: break;
  }
  std::string text;
  for (std::size_t i = 0; i < value.value_size; ++i) text += str(i == 0 ? "" : ".", value.int64_array_value[i]);
  return text;
}

std::string name_of(PJRT_Error_Code code) {
  static constexpr std::array kNames = {
      "OK",        "CANCELLED",      "UNKNOWN",       "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "EXISTS",         "NOT_PERMITTED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED", "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  const auto number = static_cast<std::size_t>(code);
  return number < kNames.size() ? kNames[number] : str("code ", number);
}

CallError::CallError(const std::string& call, PJRT_Error_Code pjrt_code, const std::string& message,
                     const std::string& plugin)
    : RunError({.code = "device.xla-call-failed",
                .what = str(call, " failed with ", name_of(pjrt_code), ": ", message),
                .where = str("plugin ", plugin),
                .fix = advice(pjrt_code)}),
      pjrt_code_(pjrt_code),
      call_(call),
      message_(message) {}

Plugin::Plugin(const std::string& path, const std::string& where) : path_(path) {
  setenv("TF_CPP_MIN_LOG_LEVEL", "1", 0);  // XLA tells of all that goes well, unless the user wants that
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw no_plugin(path, dlerror(), where);
  const auto get = reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"));
  if (!get) throw no_plugin(path, "it has no function GetPjrtApi", where);
  api_ = get();
  if (!api_) throw no_plugin(path, "GetPjrtApi returns nothing", where);
  check_versions(where);
  auto args = args_of<PJRT_Plugin_Initialize_Args>();
  WEFT_PJRT(*this, PJRT_Plugin_Initialize, args);
  read_attributes();
  const std::array<int, 2> has = version_of(stablehlo_version());
  if (has < std::array{kStablehloMajor, kStablehloMinor} && !stablehlo_version().empty())
    throw UserError({.code = "device.xla-stablehlo-too-old",
                     .what = str("the plugin '", path, "' reads StableHLO ", stablehlo_version(), "; Weft writes ",
                                 kStablehloMajor, ".", kStablehloMinor),
                     .where = where,
                     .fix = "install a newer release of the plugin"});
}

void Plugin::check_versions(const std::string& where) const {
  const PJRT_Api_Version& has = api_->pjrt_api_version;
  if (has.major_version == PJRT_API_MAJOR && has.minor_version >= kOldestMinor) return;
  const bool newer = has.major_version > PJRT_API_MAJOR;
  throw UserError(
      {.code = "device.xla-plugin-version",
       .what = str("the plugin '", path_, "' has version ", api_version(), " of the PJRT interface; Weft needs ",
                   PJRT_API_MAJOR, ".", kOldestMinor, " or a later ", PJRT_API_MAJOR, ".x"),
       .where = where,
       .fix = newer ? "use an older release of the plugin, or a newer release of Weft"
                    : "install a newer release of the plugin: docs/xla.md lists releases that were tried"});
}

void Plugin::read_attributes() {
  auto args = args_of<PJRT_Plugin_Attributes_Args>();
  WEFT_PJRT(*this, PJRT_Plugin_Attributes, args);
  for (std::size_t i = 0; i < args.num_attributes; ++i) {
    const PJRT_NamedValue& value = args.attributes[i];
    attributes_[std::string(value.name, value.name_size)] = text_of(value);
  }
}

const Plugin& Plugin::open(const std::string& path, const std::string& where) {
  static std::mutex mutex;
  static auto& all = *new std::map<std::string, std::unique_ptr<const Plugin>>;  // plugins outlive static objects
  const std::lock_guard lock(mutex);
  std::unique_ptr<const Plugin>& plugin = all[path];
  if (!plugin) plugin = std::make_unique<const Plugin>(path, where);
  return *plugin;
}

std::string Plugin::attribute(const std::string& name) const {
  const auto found = attributes_.find(name);
  return found == attributes_.end() ? "" : found->second;
}

std::string Plugin::api_version() const {
  return str(api_->pjrt_api_version.major_version, ".", api_->pjrt_api_version.minor_version);
}

void Plugin::check(PJRT_Error* error, const char* call) const {
  if (!error) return;
  auto message = args_of<PJRT_Error_Message_Args>();
  message.error = error;
  api_->PJRT_Error_Message(&message);
  auto code = args_of<PJRT_Error_GetCode_Args>();
  code.error = error;
  if (PJRT_Error* second = api_->PJRT_Error_GetCode(&code)) {
    code.code = PJRT_Error_Code_UNKNOWN;
    auto destroy = args_of<PJRT_Error_Destroy_Args>();
    destroy.error = second;
    api_->PJRT_Error_Destroy(&destroy);
  }
  const std::string text(message.message, message.message_size);
  auto destroy = args_of<PJRT_Error_Destroy_Args>();
  destroy.error = error;
  api_->PJRT_Error_Destroy(&destroy);
  throw CallError(call, code.code, text, path_);
}

namespace {

// A destructor cannot report that it failed, so errors of these calls are dropped.
template <class Args, class Function>
void call_quietly(const Plugin& plugin, Function* function, Args& args) {
  try {
    if constexpr (std::is_void_v<decltype(function(&args))>) function(&args);
    else plugin.check(function(&args), "");
  } catch (const CallError&) {
  }
}

}  // namespace

void destroy(const Plugin& plugin, PJRT_Event* event) {
  auto args = args_of<PJRT_Event_Destroy_Args>();
  args.event = event;
  call_quietly(plugin, plugin.api().PJRT_Event_Destroy, args);
}

void destroy(const Plugin& plugin, PJRT_Buffer* buffer) {
  auto args = args_of<PJRT_Buffer_Destroy_Args>();
  args.buffer = buffer;
  call_quietly(plugin, plugin.api().PJRT_Buffer_Destroy, args);
}

void destroy(const Plugin& plugin, PJRT_Client* client) {
  auto args = args_of<PJRT_Client_Destroy_Args>();
  args.client = client;
  call_quietly(plugin, plugin.api().PJRT_Client_Destroy, args);
}

void destroy(const Plugin& plugin, PJRT_Executable* executable) {
  auto args = args_of<PJRT_Executable_Destroy_Args>();
  args.executable = executable;
  call_quietly(plugin, plugin.api().PJRT_Executable_Destroy, args);
}

void destroy(const Plugin& plugin, PJRT_LoadedExecutable* executable) {
  auto args = args_of<PJRT_LoadedExecutable_Destroy_Args>();
  args.executable = executable;
  call_quietly(plugin, plugin.api().PJRT_LoadedExecutable_Destroy, args);
}

void destroy(const Plugin& plugin, PJRT_TopologyDescription* topology) {
  auto args = args_of<PJRT_TopologyDescription_Destroy_Args>();
  args.topology = topology;
  call_quietly(plugin, plugin.api().PJRT_TopologyDescription_Destroy, args);
}

}  // namespace weft::xla
