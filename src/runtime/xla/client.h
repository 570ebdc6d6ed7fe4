// Client: the devices of a plugin in this process, their buffers, and the programs that they run.
//
// Threads: any; one buffer, event or executable is used by one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/xla/plugin.h"
#include "weft/dim.h"
#include "weft/dtype.h"

namespace weft::xla {

// What a buffer holds: dense and row-major to the host, in an order of the device's choice on the device.
struct BufferType {
  PJRT_Buffer_Type element = PJRT_Buffer_Type_INVALID;
  std::vector<std::int64_t> sizes = {};
};
BufferType buffer_type(DType dtype, const Shape& shape);

// Something that the plugin is doing. The destructor waits for it.
class Event {
 public:
  Event() = default;
  Event(const Plugin& plugin, PJRT_Event* event) : event_(plugin, event) {}
  Event(Event&&) = default;
  Event& operator=(Event&& other) noexcept;
  ~Event();

  // Waits for the end and throws CallError if it failed. The event is empty then.
  void wait(const char* what);
  // The same, but for `limit` at most: false if that has passed; then the event is left behind.
  bool wait(const char* what, std::chrono::nanoseconds limit);

 private:
  Owned<PJRT_Event> event_;
};

using Buffer = Owned<PJRT_Buffer>;

// The compiler's account of the memory of one device.
struct CompiledMemory {
  std::int64_t code = 0, arguments = 0, outputs = 0, aliased = 0, temporaries = 0, peak = 0;
};

// A program on all devices of a client.
class LoadedProgram {
 public:
  LoadedProgram() = default;
  LoadedProgram(const Plugin& plugin, PJRT_LoadedExecutable* executable);

  std::size_t results() const { return results_; }
  CompiledMemory memory() const;
  std::string serialized() const;  // CallError if the plugin cannot

  // Starts a run on all devices: arguments and results by device. Donated arguments are unusable then; their handles
  // are still the caller's. Fills `done`, one event for each device.
  void start(const std::vector<std::vector<PJRT_Buffer*>>& arguments, std::vector<std::vector<Buffer>>& results,
             std::vector<Event>& done, int number) const;

 private:
  Owned<PJRT_LoadedExecutable> loaded_;
  Owned<PJRT_Executable> executable_;
  std::size_t results_ = 0;
};

class Client {
 public:
  // With so many devices, where the plugin can make them up: the CPU's. Otherwise with all devices that there are.
  Client(const Plugin& plugin, int devices);

  const Plugin& plugin() const { return client_.plugin(); }
  int devices() const { return static_cast<int>(devices_.size()); }
  bool makes_devices() const { return makes_devices_; }
  std::string platform() const;                          // "cpu"
  std::string version() const;                           // of the platform, in the plugin's words
  std::string device_kind() const;                       // of the first device
  std::string attribute(const std::string& name) const;  // of the first device; "" if it has none
  std::vector<int> device_ids() const;

  // Copies host memory to a device. `from` stays as it is until the event has ended.
  Buffer upload(int device, const void* from, const BufferType& type, Event& copied) const;
  void download(const Buffer& buffer, const BufferType& type, std::span<std::byte> to) const;

  LoadedProgram compile(const std::string& module, const std::string& options) const;
  LoadedProgram load(const std::string& serialized) const;

 private:
  Owned<PJRT_Client> client_;
  bool makes_devices_ = false;
  std::vector<PJRT_Device*> devices_;
};

// The bytes of a CompileOptionsProto: a replica of the program for each id, replica r on the device of number ids[r].
// The platform is that of the client; ahead of time "cuda" or "".
std::string compile_options(const std::vector<int>& ids, const std::string& platform = "");

CompiledMemory memory_of(const Plugin& plugin, PJRT_Executable* executable);
std::string serialized(const Plugin& plugin, PJRT_Executable* executable);

}  // namespace weft::xla
