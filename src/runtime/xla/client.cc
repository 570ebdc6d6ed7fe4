#include "runtime/xla/client.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <numeric>

#include "base/index.h"
#include "base/str.h"

namespace weft::xla {

namespace {

PJRT_Buffer_Type element_of(DType dtype) {
  switch (dtype) {
    case DType::kF32: return PJRT_Buffer_Type_F32;
    case DType::kBF16: return PJRT_Buffer_Type_BF16;
    case DType::kF16: return PJRT_Buffer_Type_F16;
    case DType::kF64: return PJRT_Buffer_Type_F64;
    case DType::kI32: return PJRT_Buffer_Type_S32;
    case DType::kI64: return PJRT_Buffer_Type_S64;
    case DType::kU32: return PJRT_Buffer_Type_U32;
    case DType::kU8: return PJRT_Buffer_Type_U8;
    case DType::kI8: return PJRT_Buffer_Type_S8;
    case DType::kBool: return PJRT_Buffer_Type_PRED;
  }
  throw InternalError("a dtype that PJRT does not know");
}

// The outcome of an event that a thread of the plugin reports. It outlives a wait that was given up.
struct Outcome {
  const Plugin& plugin;
  std::mutex mutex = {};
  std::condition_variable ended = {};
  bool is_over = false;
  std::exception_ptr failure = {};

  void finish(PJRT_Error* error, const char* what) {
    const std::lock_guard lock(mutex);
    try {
      plugin.check(error, what);
    } catch (...) {
      failure = std::current_exception();
    }
    is_over = true;
    ended.notify_all();
  }
};

struct Report {
  std::shared_ptr<Outcome> outcome;
  const char* what;
};

}  // namespace

BufferType buffer_type(DType dtype, const Shape& shape) {
  BufferType type{.element = element_of(dtype)};
  for (const Dim& dim : shape) type.sizes.push_back(dim.size);
  return type;
}

Event& Event::operator=(Event&& other) noexcept {
  Event old(std::move(*this));
  event_ = std::move(other.event_);
  return *this;
}

Event::~Event() {
  try {
    wait("PJRT_Event_Await");
  } catch (const CallError&) {
  }
}

void Event::wait(const char* what) {
  if (!event_) return;
  const Owned<PJRT_Event> event = std::move(event_);
  auto args = args_of<PJRT_Event_Await_Args>();
  args.event = event.get();
  event.plugin().check(event.plugin().api().PJRT_Event_Await(&args), what);
}

bool Event::wait(const char* what, std::chrono::nanoseconds limit) {
  if (!event_) return true;
  const Plugin& plugin = event_.plugin();
  const auto outcome = std::make_shared<Outcome>(plugin);
  auto args = args_of<PJRT_Event_OnReady_Args>();
  args.event = event_.get();
  args.user_arg = new Report{outcome, what};
  args.callback = [](PJRT_Error* error, void* given) {
    const std::unique_ptr<Report> report(static_cast<Report*>(given));
    report->outcome->finish(error, report->what);
  };
  WEFT_PJRT(plugin, PJRT_Event_OnReady, args);
  std::unique_lock lock(outcome->mutex);
  const auto is_over = [&] { return outcome->is_over; };
  if (limit == std::chrono::nanoseconds::max()) outcome->ended.wait(lock, is_over);
  else if (!outcome->ended.wait_for(lock, limit, is_over)) {
    new Owned<PJRT_Event>(std::move(event_));  // left behind: to destroy it would wait
    return false;
  }
  event_.reset();
  if (outcome->failure) std::rethrow_exception(outcome->failure);
  return true;
}

CompiledMemory memory_of(const Plugin& plugin, PJRT_Executable* executable) {
  auto args = args_of<PJRT_Executable_GetCompiledMemoryStats_Args>();
  args.executable = executable;
  WEFT_PJRT(plugin, PJRT_Executable_GetCompiledMemoryStats, args);
  return {.code = args.generated_code_size_in_bytes,
          .arguments = args.argument_size_in_bytes,
          .outputs = args.output_size_in_bytes,
          .aliased = args.alias_size_in_bytes,
          .temporaries = args.temp_size_in_bytes,
          .peak = args.peak_memory_in_bytes};
}

std::string serialized(const Plugin& plugin, PJRT_Executable* executable) {
  auto args = args_of<PJRT_Executable_Serialize_Args>();
  args.executable = executable;
  WEFT_PJRT(plugin, PJRT_Executable_Serialize, args);
  std::string bytes(args.serialized_bytes, args.serialized_bytes_size);
  args.serialized_executable_deleter(args.serialized_executable);
  return bytes;
}

LoadedProgram::LoadedProgram(const Plugin& plugin, PJRT_LoadedExecutable* executable) : loaded_(plugin, executable) {
  auto get = args_of<PJRT_LoadedExecutable_GetExecutable_Args>();
  get.loaded_executable = executable;
  WEFT_PJRT(plugin, PJRT_LoadedExecutable_GetExecutable, get);
  executable_ = Owned<PJRT_Executable>(plugin, get.executable);
  auto outputs = args_of<PJRT_Executable_NumOutputs_Args>();
  outputs.executable = executable_.get();
  WEFT_PJRT(plugin, PJRT_Executable_NumOutputs, outputs);
  results_ = outputs.num_outputs;
}

CompiledMemory LoadedProgram::memory() const { return memory_of(loaded_.plugin(), executable_.get()); }
std::string LoadedProgram::serialized() const { return xla::serialized(loaded_.plugin(), executable_.get()); }

void LoadedProgram::start(const std::vector<std::vector<PJRT_Buffer*>>& arguments,
                          std::vector<std::vector<Buffer>>& results, std::vector<Event>& done, int number) const {
  const std::size_t devices = arguments.size();
  const Plugin& plugin = loaded_.plugin();
  std::vector<std::vector<PJRT_Buffer*>> made(devices, std::vector<PJRT_Buffer*>(results_));
  std::vector<PJRT_Buffer* const*> given;
  std::vector<PJRT_Buffer**> taken;
  std::vector<PJRT_Event*> events(devices);
  for (std::size_t d = 0; d < devices; ++d) {
    given.push_back(arguments[d].data());
    taken.push_back(made[d].data());
  }
  auto options = args_of<PJRT_ExecuteOptions>();
  options.launch_id = number;
  auto args = args_of<PJRT_LoadedExecutable_Execute_Args>();
  args.executable = loaded_.get();
  args.options = &options;
  args.argument_lists = given.data();
  args.num_devices = devices;
  args.num_args = arguments[0].size();
  args.output_lists = taken.data();
  args.device_complete_events = events.data();
  WEFT_PJRT(plugin, PJRT_LoadedExecutable_Execute, args);
  results.resize(devices);
  for (std::size_t d = 0; d < devices; ++d) {
    results[d].clear();
    for (PJRT_Buffer* buffer : made[d]) results[d].emplace_back(plugin, buffer);
    done.emplace_back(plugin, events[d]);
  }
}

namespace {

PJRT_Client* create(const Plugin& plugin, std::span<const PJRT_NamedValue> options) {
  auto args = args_of<PJRT_Client_Create_Args>();
  args.create_options = options.data();
  args.num_options = options.size();
  WEFT_PJRT(plugin, PJRT_Client_Create, args);
  return args.client;
}

}  // namespace

Client::Client(const Plugin& plugin, int devices) {
  static constexpr std::string_view kCount = "cpu_device_count";
  auto count = args_of<PJRT_NamedValue>();
  count.name = kCount.data();
  count.name_size = kCount.size();
  count.type = PJRT_NamedValue_kInt64;
  count.int64_value = devices;
  count.value_size = 1;
  try {
    client_ = Owned<PJRT_Client>(plugin, create(plugin, {&count, 1}));
    makes_devices_ = true;
  } catch (const CallError& error) {  // plugins of real devices refuse the option
    if (error.pjrt_code() != PJRT_Error_Code_INVALID_ARGUMENT) throw;
    client_ = Owned<PJRT_Client>(plugin, create(plugin, {}));
  }
  auto args = args_of<PJRT_Client_AddressableDevices_Args>();
  args.client = client_.get();
  WEFT_PJRT(plugin, PJRT_Client_AddressableDevices, args);
  devices_.assign(args.addressable_devices, args.addressable_devices + args.num_addressable_devices);
}

std::string Client::platform() const {
  auto args = args_of<PJRT_Client_PlatformName_Args>();
  args.client = client_.get();
  WEFT_PJRT(plugin(), PJRT_Client_PlatformName, args);
  return {args.platform_name, args.platform_name_size};
}

std::string Client::version() const {
  auto args = args_of<PJRT_Client_PlatformVersion_Args>();
  args.client = client_.get();
  WEFT_PJRT(plugin(), PJRT_Client_PlatformVersion, args);
  return {args.platform_version, args.platform_version_size};
}

namespace {

PJRT_DeviceDescription* description_of(const Plugin& plugin, PJRT_Device* device) {
  auto args = args_of<PJRT_Device_GetDescription_Args>();
  args.device = device;
  WEFT_PJRT(plugin, PJRT_Device_GetDescription, args);
  return args.device_description;
}

}  // namespace

std::string Client::device_kind() const {
  if (devices_.empty()) return "";
  auto args = args_of<PJRT_DeviceDescription_Kind_Args>();
  args.device_description = description_of(plugin(), devices_[0]);
  WEFT_PJRT(plugin(), PJRT_DeviceDescription_Kind, args);
  return {args.device_kind, args.device_kind_size};
}

std::string Client::attribute(const std::string& name) const {
  if (devices_.empty()) return "";
  auto args = args_of<PJRT_DeviceDescription_Attributes_Args>();
  args.device_description = description_of(plugin(), devices_[0]);
  WEFT_PJRT(plugin(), PJRT_DeviceDescription_Attributes, args);
  for (std::size_t i = 0; i < args.num_attributes; ++i)
    if (std::string_view(args.attributes[i].name, args.attributes[i].name_size) == name)
      return text_of(args.attributes[i]);
  return "";
}

std::vector<int> Client::device_ids() const {
  std::vector<int> ids;
  for (PJRT_Device* device : devices_) {
    auto args = args_of<PJRT_DeviceDescription_Id_Args>();
    args.device_description = description_of(plugin(), device);
    WEFT_PJRT(plugin(), PJRT_DeviceDescription_Id, args);
    ids.push_back(args.id);
  }
  return ids;
}

Buffer Client::upload(int device, const void* from, const BufferType& type, Event& copied) const {
  auto args = args_of<PJRT_Client_BufferFromHostBuffer_Args>();
  args.client = client_.get();
  args.data = from;
  args.type = type.element;
  args.dims = type.sizes.data();
  args.num_dims = type.sizes.size();
  args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes;
  args.device = devices_[at(device)];
  WEFT_PJRT(plugin(), PJRT_Client_BufferFromHostBuffer, args);
  Buffer buffer(plugin(), args.buffer);
  copied = Event(plugin(), args.done_with_host_buffer);
  return buffer;
}

void Client::download(const Buffer& buffer, const BufferType& type, std::span<std::byte> to) const {
  std::vector<std::int64_t> minor_to_major(type.sizes.size());
  std::iota(minor_to_major.rbegin(), minor_to_major.rend(), 0);
  auto layout = args_of<PJRT_Buffer_MemoryLayout>();
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled = args_of<PJRT_Buffer_MemoryLayout_Tiled>();
  layout.tiled.minor_to_major = minor_to_major.data();
  layout.tiled.minor_to_major_size = minor_to_major.size();
  auto args = args_of<PJRT_Buffer_ToHostBuffer_Args>();
  args.src = buffer.get();
  args.host_layout = &layout;  // the device's order of dims may be another
  args.dst = to.data();
  args.dst_size = to.size();
  WEFT_PJRT(plugin(), PJRT_Buffer_ToHostBuffer, args);
  Event(plugin(), args.event).wait("PJRT_Buffer_ToHostBuffer");
}

LoadedProgram Client::compile(const std::string& module, const std::string& options) const {
  static constexpr std::string_view kFormat = "mlir";
  auto program = args_of<PJRT_Program>();
  program.code = const_cast<char*>(module.data());
  program.code_size = module.size();
  program.format = kFormat.data();
  program.format_size = kFormat.size();
  auto args = args_of<PJRT_Client_Compile_Args>();
  args.client = client_.get();
  args.program = &program;
  args.compile_options = options.data();
  args.compile_options_size = options.size();
  WEFT_PJRT(plugin(), PJRT_Client_Compile, args);
  return {plugin(), args.executable};
}

LoadedProgram Client::load(const std::string& serialized) const {
  auto args = args_of<PJRT_Executable_DeserializeAndLoad_Args>();
  args.client = client_.get();
  args.serialized_executable = serialized.data();
  args.serialized_executable_size = serialized.size();
  WEFT_PJRT(plugin(), PJRT_Executable_DeserializeAndLoad, args);
  return {plugin(), args.loaded_executable};
}

namespace {

// The wire format of protocol buffers: what a CompileOptionsProto needs of it.
class ProtoText {
 public:
  void number(int field, std::uint64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(value);
  }
  void bytes(int field, const std::string& value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(value.size());
    text += value;
  }
  void varint(std::uint64_t value) {
    for (; value > 127; value >>= 7) text += static_cast<char>(value | 128);
    text += static_cast<char>(value);
  }

  std::string text;
};

}  // namespace

std::string compile_options(const std::vector<int>& ids, const std::string& platform) {
  ProtoText numbers, devices, assignment, build, options;
  for (const int id : ids) numbers.varint(static_cast<std::uint64_t>(id));
  devices.bytes(1, numbers.text);     // replica_device_ids
  assignment.number(1, ids.size());   // replica_count
  assignment.number(2, 1);            // computation_count
  assignment.bytes(3, devices.text);  // computation_devices
  build.number(4, ids.size());        // num_replicas
  build.number(5, 1);                 // num_partitions
  build.bytes(9, assignment.text);    // device_assignment
  options.bytes(3, build.text);       // executable_build_options
  const auto turn_off = [&](const std::string& name) {
    ProtoText value, entry;
    value.number(2, 0);  // bool_field
    entry.bytes(1, name);
    entry.bytes(2, value.text);
    options.bytes(7, entry.text);  // env_option_overrides
  };
  // The default of xla-cpu-pjrt 0.0.1 loses NaN in reductions by maximum and minimum.
  if (platform == "cpu") turn_off("xla_cpu_enable_fast_min_max");
  // The default drops roundings to 16 bits, so that values between kernels take twice the memory and time.
  if (platform == "cuda") turn_off("xla_allow_excess_precision");
  return options.text;
}

}  // namespace weft::xla
