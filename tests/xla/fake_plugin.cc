// A PJRT plugin for tests. It runs no programs: a donated f32 argument comes back one larger, any other donated argument
// as it is, and all other results are zero. It counts its live objects. The environment variable WEFT_FAKE_PJRT tells it
// how to misbehave, in words divided by commas; the switches below list them.
#include <pjrt_c_api.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

std::atomic<long> live = 0, executions = 0, compilations = 0;

struct Counted {
  Counted() { ++live; }
  ~Counted() { --live; }
  Counted(const Counted&) = delete;
};

// The text after "word" or "word=" among the words of the variable; none if the word is not there.
std::optional<std::string> told(std::string_view word) {
  const char* all = std::getenv("WEFT_FAKE_PJRT");
  std::string_view rest = all ? all : "";
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    if (one == word) return "";
    if (one.starts_with(word) && one.substr(word.size()).starts_with("="))
      return std::string(one.substr(word.size() + 1));
  }
  return std::nullopt;
}

int number(std::string_view word, int otherwise) {
  const std::optional<std::string> text = told(word);
  return text ? std::atoi(text->c_str()) : otherwise;
}

std::size_t size_of(PJRT_Buffer_Type type) {
  switch (type) {
    case PJRT_Buffer_Type_F64:
    case PJRT_Buffer_Type_S64: return 8;
    case PJRT_Buffer_Type_F16:
    case PJRT_Buffer_Type_BF16: return 2;
    case PJRT_Buffer_Type_U8:
    case PJRT_Buffer_Type_S8:
    case PJRT_Buffer_Type_PRED: return 1;
    default: return 4;
  }
}

PJRT_Buffer_Type type_named(std::string_view name) {
  if (name == "f64") return PJRT_Buffer_Type_F64;
  if (name == "i64") return PJRT_Buffer_Type_S64;
  if (name == "f16") return PJRT_Buffer_Type_F16;
  if (name == "bf16") return PJRT_Buffer_Type_BF16;
  if (name == "ui8") return PJRT_Buffer_Type_U8;
  if (name == "i8") return PJRT_Buffer_Type_S8;
  if (name == "i1") return PJRT_Buffer_Type_PRED;
  if (name == "i32") return PJRT_Buffer_Type_S32;
  if (name == "ui32") return PJRT_Buffer_Type_U32;
  return PJRT_Buffer_Type_F32;
}

struct Type {
  PJRT_Buffer_Type element = PJRT_Buffer_Type_F32;
  std::size_t bytes = 0;
  int aliased = -1;  // the result that the argument is donated to
};

// "tensor<2x3xf32>" and what stands behind it, one after the other.
std::vector<Type> types_of(std::string_view text) {
  static constexpr std::string_view kTensor = "tensor<", kAlias = "tf.aliasing_output = ";
  std::vector<Type> types;
  for (std::size_t at = text.find(kTensor); at != std::string_view::npos;) {
    const std::size_t end = text.find('>', at), next = text.find(kTensor, end);
    std::string_view words = text.substr(at + kTensor.size(), end - at - kTensor.size());
    std::size_t elements = 1;
    for (std::size_t x = words.find('x'); x != std::string_view::npos; x = words.find('x')) {
      elements *= static_cast<std::size_t>(std::atoll(std::string(words.substr(0, x)).c_str()));
      words.remove_prefix(x + 1);
    }
    Type type{.element = type_named(words)};
    type.bytes = elements * size_of(type.element);
    const std::string_view attributes = text.substr(end, next == std::string_view::npos ? next : next - end);
    if (const std::size_t alias = attributes.find(kAlias); alias != std::string_view::npos)
      type.aliased = std::atoi(std::string(attributes.substr(alias + kAlias.size())).c_str());
    types.push_back(type);
    at = next;
  }
  return types;
}

}  // namespace

struct PJRT_Error : Counted {
  PJRT_Error_Code code;
  std::string message;
  PJRT_Error(PJRT_Error_Code code, std::string message) : code(code), message(std::move(message)) {}
};
struct PJRT_Event : Counted {
  bool never = false;
};
struct PJRT_DeviceDescription {
  int id = 0;
};
struct PJRT_Device {
  PJRT_DeviceDescription description;
};
struct PJRT_Client : Counted {
  std::vector<PJRT_Device> devices;
  std::vector<PJRT_Device*> pointers;
};
struct PJRT_TopologyDescription : Counted {
  std::vector<PJRT_DeviceDescription> devices;
  std::vector<PJRT_DeviceDescription*> pointers;
};
struct PJRT_Buffer : Counted {
  std::string data;
  bool deleted = false;
};
struct PJRT_Executable : Counted {
  std::string text;
  std::vector<Type> arguments, results;
  explicit PJRT_Executable(std::string module) : text(std::move(module)) {
    const std::size_t main = text.find("@main("), arrow = text.find(" -> ", main), body = text.find("\n", arrow);
    arguments = types_of(std::string_view(text).substr(main, arrow - main));
    results = types_of(std::string_view(text).substr(arrow, body - arrow));
  }
};
struct PJRT_LoadedExecutable : Counted {
  std::string text;
  std::size_t devices = 0;
};
struct PJRT_SerializedExecutable : Counted {
  std::string bytes;
};

namespace {

PJRT_Error* fail(PJRT_Error_Code code, const char* message) { return new PJRT_Error(code, message); }

constexpr std::string_view kMark = "fake executable: ";

PJRT_Error* compile(const PJRT_Program& program, std::string& text) {
  ++compilations;
  if (told("compile-abort")) {
    std::fputs("Check failed: the fake compiler aborts\n", stderr);
    std::abort();
  }
  if (told("compile-error")) return fail(PJRT_Error_Code_INVALID_ARGUMENT, "the fake compiler refuses the module");
  if (told("out-of-memory")) return fail(PJRT_Error_Code_RESOURCE_EXHAUSTED, "24.00G exceeds available HBM (15.75G)");
  text.assign(program.code, program.code_size);
  return nullptr;
}

void error_destroy(PJRT_Error_Destroy_Args* a) { delete a->error; }
void error_message(PJRT_Error_Message_Args* a) {
  a->message = a->error->message.data();
  a->message_size = a->error->message.size();
}
PJRT_Error* error_code(PJRT_Error_GetCode_Args* a) {
  a->code = a->error->code;
  return nullptr;
}

PJRT_Error* initialize(PJRT_Plugin_Initialize_Args*) { return nullptr; }
PJRT_Error* attributes(PJRT_Plugin_Attributes_Args* a) {
  static std::string version;
  version = told("stablehlo").value_or("1.13.3");
  static PJRT_NamedValue value{};
  value.name = "stablehlo_current_version";
  value.name_size = std::strlen(value.name);
  value.type = PJRT_NamedValue_kString;
  value.string_value = version.data();
  value.value_size = version.size();
  a->attributes = &value;
  a->num_attributes = 1;
  return nullptr;
}

PJRT_Error* event_destroy(PJRT_Event_Destroy_Args* a) {
  delete a->event;
  return nullptr;
}
PJRT_Error* event_await(PJRT_Event_Await_Args*) { return nullptr; }
PJRT_Error* event_on_ready(PJRT_Event_OnReady_Args* a) {
  if (!a->event->never)
    a->callback(told("step-error") ? fail(PJRT_Error_Code_INTERNAL, "a fake device failed") : nullptr, a->user_arg);
  return nullptr;
}

PJRT_Error* client_create(PJRT_Client_Create_Args* a) {
  const int fixed = number("devices", 0);
  if (fixed > 0 && a->num_options > 0) return fail(PJRT_Error_Code_INVALID_ARGUMENT, "Unexpected option name");
  const int count = fixed > 0 ? fixed : a->num_options > 0 ? static_cast<int>(a->create_options[0].int64_value) : 4;
  a->client = new PJRT_Client;
  a->client->devices.resize(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    PJRT_Device& device = a->client->devices[static_cast<std::size_t>(i)];
    device.description.id = i;
    a->client->pointers.push_back(&device);
  }
  return nullptr;
}
PJRT_Error* client_destroy(PJRT_Client_Destroy_Args* a) {
  delete a->client;
  return nullptr;
}
PJRT_Error* platform_name(PJRT_Client_PlatformName_Args* a) {
  a->platform_name = told("cuda") ? "cuda" : "fake";  // cuda=8.0: cards of this compute capability
  a->platform_name_size = 4;
  return nullptr;
}
PJRT_Error* device_attributes(PJRT_DeviceDescription_Attributes_Args* a) {
  static std::string capability;
  static PJRT_NamedValue value{};
  capability = told("cuda").value_or("");
  value.name = "compute_capability";
  value.name_size = std::strlen(value.name);
  value.type = PJRT_NamedValue_kString;
  value.string_value = capability.data();
  value.value_size = capability.size();
  a->attributes = &value;
  a->num_attributes = 1;
  return nullptr;
}
PJRT_Error* client_devices(PJRT_Client_AddressableDevices_Args* a) {
  a->addressable_devices = a->client->pointers.data();
  a->num_addressable_devices = a->client->pointers.size();
  return nullptr;
}
PJRT_Error* device_description(PJRT_Device_GetDescription_Args* a) {
  a->device_description = &a->device->description;
  return nullptr;
}
PJRT_Error* device_id(PJRT_DeviceDescription_Id_Args* a) {
  a->id = a->device_description->id;
  return nullptr;
}
PJRT_Error* device_kind(PJRT_DeviceDescription_Kind_Args* a) {
  a->device_kind = "fake";
  a->device_kind_size = 4;
  return nullptr;
}

PJRT_Error* upload(PJRT_Client_BufferFromHostBuffer_Args* a) {
  std::size_t bytes = size_of(a->type);
  for (std::size_t i = 0; i < a->num_dims; ++i) bytes *= static_cast<std::size_t>(a->dims[i]);
  a->buffer = new PJRT_Buffer;
  a->buffer->data.assign(static_cast<const char*>(a->data), bytes);
  a->done_with_host_buffer = new PJRT_Event;
  return nullptr;
}
PJRT_Error* download(PJRT_Buffer_ToHostBuffer_Args* a) {
  if (a->src->deleted) return fail(PJRT_Error_Code_INVALID_ARGUMENT, "a donated buffer is read");
  if (a->dst_size != a->src->data.size())
    return fail(PJRT_Error_Code_INVALID_ARGUMENT, "other bytes than the buffer's");
  std::memcpy(a->dst, a->src->data.data(), a->dst_size);
  a->event = new PJRT_Event;
  return nullptr;
}
PJRT_Error* buffer_destroy(PJRT_Buffer_Destroy_Args* a) {
  delete a->buffer;
  return nullptr;
}

PJRT_Error* client_compile(PJRT_Client_Compile_Args* a) {
  std::string text;
  if (PJRT_Error* error = compile(*a->program, text)) return error;
  a->executable = new PJRT_LoadedExecutable;
  a->executable->text = text;
  a->executable->devices = a->client->devices.size();
  return nullptr;
}
PJRT_Error* load(PJRT_Executable_DeserializeAndLoad_Args* a) {
  const std::string_view bytes(a->serialized_executable, a->serialized_executable_size);
  if (told("load-error") || !bytes.starts_with(kMark))
    return fail(PJRT_Error_Code_INVALID_ARGUMENT, "no executable of the fake compiler");
  a->loaded_executable = new PJRT_LoadedExecutable;
  a->loaded_executable->text = bytes.substr(kMark.size());
  a->loaded_executable->devices = a->client->devices.size();
  return nullptr;
}
PJRT_Error* loaded_destroy(PJRT_LoadedExecutable_Destroy_Args* a) {
  delete a->executable;
  return nullptr;
}
PJRT_Error* get_executable(PJRT_LoadedExecutable_GetExecutable_Args* a) {
  a->executable = new PJRT_Executable(a->loaded_executable->text);
  return nullptr;
}
PJRT_Error* executable_destroy(PJRT_Executable_Destroy_Args* a) {
  delete a->executable;
  return nullptr;
}
PJRT_Error* outputs(PJRT_Executable_NumOutputs_Args* a) {
  a->num_outputs = a->executable->results.size();
  return nullptr;
}
PJRT_Error* memory(PJRT_Executable_GetCompiledMemoryStats_Args* a) {
  for (const Type& type : a->executable->arguments) {
    a->argument_size_in_bytes += static_cast<std::int64_t>(type.bytes);
    if (type.aliased >= 0) a->alias_size_in_bytes += static_cast<std::int64_t>(type.bytes);
  }
  for (const Type& type : a->executable->results) a->output_size_in_bytes += static_cast<std::int64_t>(type.bytes);
  a->temp_size_in_bytes = 3072;
  a->generated_code_size_in_bytes = 1024;
  return nullptr;
}
PJRT_Error* serialize(PJRT_Executable_Serialize_Args* a) {
  if (told("serialize-error")) return fail(PJRT_Error_Code_UNIMPLEMENTED, "the fake plugin does not serialize");
  auto* kept = new PJRT_SerializedExecutable;
  kept->bytes = std::string(kMark) + a->executable->text;
  a->serialized_bytes = kept->bytes.data();
  a->serialized_bytes_size = kept->bytes.size();
  a->serialized_executable = kept;
  a->serialized_executable_deleter = [](PJRT_SerializedExecutable* given) { delete given; };
  return nullptr;
}

PJRT_Error* run_on(const PJRT_Executable& program, PJRT_Buffer* const* given, PJRT_Buffer** made) {
  for (std::size_t a = 0; a < program.arguments.size(); ++a)
    if (given[a]->deleted || given[a]->data.size() != program.arguments[a].bytes)
      return fail(PJRT_Error_Code_INVALID_ARGUMENT, "an argument is donated already or of another size");
  for (std::size_t r = 0; r < program.results.size(); ++r) {
    made[r] = new PJRT_Buffer;
    made[r]->data.assign(program.results[r].bytes, '\0');
  }
  for (std::size_t a = 0; a < program.arguments.size(); ++a) {
    const Type& type = program.arguments[a];
    if (type.aliased < 0) continue;
    std::string data = std::move(given[a]->data);
    for (std::size_t i = 0; type.element == PJRT_Buffer_Type_F32 && i < data.size(); i += sizeof(float)) {
      float x = 0;
      std::memcpy(&x, data.data() + i, sizeof x);
      x += 1;
      std::memcpy(data.data() + i, &x, sizeof x);
    }
    made[type.aliased]->data = std::move(data);
    given[a]->deleted = true;
  }
  return nullptr;
}

PJRT_Error* execute(PJRT_LoadedExecutable_Execute_Args* a) {
  ++executions;
  if (told("execute-error")) return fail(PJRT_Error_Code_RESOURCE_EXHAUSTED, "the fake device has no memory left");
  const PJRT_Executable program(a->executable->text);
  if (a->num_args != program.arguments.size()) return fail(PJRT_Error_Code_INVALID_ARGUMENT, "other arguments");
  for (std::size_t d = 0; d < a->num_devices; ++d) {
    if (PJRT_Error* error = run_on(program, a->argument_lists[d], a->output_lists[d])) return error;
    a->device_complete_events[d] = new PJRT_Event;
    a->device_complete_events[d]->never = told("hang").has_value();
  }
  return nullptr;
}

PJRT_Error* topology_create(PJRT_TopologyDescription_Create_Args* a) {
  const std::string_view name(a->topology_name, a->topology_name_size);
  if (!name.starts_with("fake:")) return fail(PJRT_Error_Code_INVALID_ARGUMENT, "Invalid external name");
  a->topology = new PJRT_TopologyDescription;
  a->topology->devices.resize(static_cast<std::size_t>(std::atoi(std::string(name.substr(5)).c_str())));
  for (std::size_t i = 0; i < a->topology->devices.size(); ++i) {
    a->topology->devices[i].id = static_cast<int>(i);
    a->topology->pointers.push_back(&a->topology->devices[i]);
  }
  return nullptr;
}
PJRT_Error* topology_destroy(PJRT_TopologyDescription_Destroy_Args* a) {
  delete a->topology;
  return nullptr;
}
PJRT_Error* topology_devices(PJRT_TopologyDescription_GetDeviceDescriptions_Args* a) {
  a->descriptions = a->topology->pointers.data();
  a->num_descriptions = a->topology->pointers.size();
  return nullptr;
}
PJRT_Error* compile_ahead(PJRT_Compile_Args* a) {
  std::string text;
  if (PJRT_Error* error = compile(*a->program, text)) return error;
  a->executable = new PJRT_Executable(text);
  return nullptr;
}

PJRT_Api make_api() {
  PJRT_Api api{};
  api.struct_size = sizeof api;
  api.pjrt_api_version.major_version = number("major", PJRT_API_MAJOR);
  api.pjrt_api_version.minor_version = number("minor", PJRT_API_MINOR);
  api.PJRT_Error_Destroy = error_destroy;
  api.PJRT_Error_Message = error_message;
  api.PJRT_Error_GetCode = error_code;
  api.PJRT_Plugin_Initialize = initialize;
  api.PJRT_Plugin_Attributes = attributes;
  api.PJRT_Event_Destroy = event_destroy;
  api.PJRT_Event_Await = event_await;
  api.PJRT_Event_OnReady = event_on_ready;
  api.PJRT_Client_Create = client_create;
  api.PJRT_Client_Destroy = client_destroy;
  api.PJRT_Client_PlatformName = platform_name;
  api.PJRT_Client_AddressableDevices = client_devices;
  api.PJRT_Device_GetDescription = device_description;
  api.PJRT_DeviceDescription_Id = device_id;
  api.PJRT_DeviceDescription_Kind = device_kind;
  api.PJRT_DeviceDescription_Attributes = device_attributes;
  api.PJRT_Client_BufferFromHostBuffer = upload;
  api.PJRT_Buffer_ToHostBuffer = download;
  api.PJRT_Buffer_Destroy = buffer_destroy;
  api.PJRT_Client_Compile = client_compile;
  api.PJRT_Executable_DeserializeAndLoad = load;
  api.PJRT_LoadedExecutable_Destroy = loaded_destroy;
  api.PJRT_LoadedExecutable_GetExecutable = get_executable;
  api.PJRT_LoadedExecutable_Execute = execute;
  api.PJRT_Executable_Destroy = executable_destroy;
  api.PJRT_Executable_NumOutputs = outputs;
  api.PJRT_Executable_GetCompiledMemoryStats = memory;
  api.PJRT_Executable_Serialize = serialize;
  api.PJRT_TopologyDescription_Create = topology_create;
  api.PJRT_TopologyDescription_Destroy = topology_destroy;
  api.PJRT_TopologyDescription_GetDeviceDescriptions = topology_devices;
  api.PJRT_Compile = compile_ahead;
  return api;
}

}  // namespace

extern "C" {

const PJRT_Api* GetPjrtApi() {
  static const PJRT_Api kApi = make_api();
  return &kApi;
}

// For tests.
long fake_pjrt_live() { return live; }
long fake_pjrt_executions() { return executions; }
long fake_pjrt_compilations() { return compilations; }

}  // extern "C"
