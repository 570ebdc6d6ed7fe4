// Plugin: a PJRT plugin, a shared library with a C interface to one XLA compiler and its devices.
//
// A plugin is opened once and stays open until the process ends. Threads: any.
#pragma once

#include <pjrt_c_api.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "weft/error.h"

namespace weft::xla {

// A call of the plugin failed.
class CallError : public RunError {
 public:
  CallError(const std::string& call, PJRT_Error_Code pjrt_code, const std::string& message, const std::string& plugin);
  PJRT_Error_Code pjrt_code() const { return pjrt_code_; }
  const std::string& call() const { return call_; }
  const std::string& message() const { return message_; }  // the plugin's

 private:
  PJRT_Error_Code pjrt_code_;
  std::string call_, message_;
};

// "RESOURCE_EXHAUSTED"
std::string name_of(PJRT_Error_Code code);
// A number or text of the plugin; lists with dots.
std::string text_of(const PJRT_NamedValue& value);

class Plugin {
 public:
  // UserError if the file is no plugin, or if it is too old.
  Plugin(const std::string& path, const std::string& where);
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  // The plugin of this path, which stays for the life of the process.
  static const Plugin& open(const std::string& path, const std::string& where);

  const PJRT_Api& api() const { return *api_; }
  const std::string& path() const { return path_; }
  const std::map<std::string, std::string>& attributes() const { return attributes_; }
  std::string attribute(const std::string& name) const;  // "" if it has none
  std::string api_version() const;                       // "0.81"
  std::string stablehlo_version() const { return attribute("stablehlo_current_version"); }

  // Throws CallError if there is an error, which is destroyed.
  void check(PJRT_Error* error, const char* call) const;

 private:
  void check_versions(const std::string& where) const;
  void read_attributes();

  std::string path_;
  const PJRT_Api* api_ = nullptr;
  std::map<std::string, std::string> attributes_;
};

// The arguments of a call, all zero.
template <class Args>
Args args_of() {
  Args args{};
  args.struct_size = sizeof(Args);
  return args;
}

// Calls a function of the plugin's table. Throws CallError.
#define WEFT_PJRT(plugin, function, args) (plugin).check((plugin).api().function(&(args)), #function)

void destroy(const Plugin& plugin, PJRT_Event* event);
void destroy(const Plugin& plugin, PJRT_Buffer* buffer);
void destroy(const Plugin& plugin, PJRT_Client* client);
void destroy(const Plugin& plugin, PJRT_Executable* executable);
void destroy(const Plugin& plugin, PJRT_LoadedExecutable* executable);
void destroy(const Plugin& plugin, PJRT_TopologyDescription* topology);

// An object of the plugin that this program owns.
template <class Object>
class Owned {
 public:
  Owned() = default;
  Owned(const Plugin& plugin, Object* object) : plugin_(&plugin), object_(object) {}
  Owned(Owned&& other) noexcept { swap(other); }
  Owned& operator=(Owned&& other) noexcept {
    Owned taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~Owned() {
    if (object_) destroy(*plugin_, object_);
  }

  Object* get() const { return object_; }
  const Plugin& plugin() const { return *plugin_; }
  explicit operator bool() const { return object_ != nullptr; }
  void reset() { *this = Owned(); }

 private:
  void swap(Owned& other) noexcept {
    std::swap(plugin_, other.plugin_);
    std::swap(object_, other.object_);
  }
  const Plugin* plugin_ = nullptr;
  Object* object_ = nullptr;
};

}  // namespace weft::xla
