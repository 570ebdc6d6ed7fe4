#include "runtime/xla/device.h"

#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include "base/index.h"
#include "base/str.h"
#include "program/memory_plan.h"
#include "runtime/host/host_clock.h"
#include "runtime/host/initial.h"
#include "runtime/host/strided.h"
#include "runtime/shards.h"
#include "runtime/xla/program.h"

namespace weft::xla {

namespace {

// What the processors of one session share. One of their threads works for all; the others wait for it.
class SharedClient {
 public:
  SharedClient(std::shared_ptr<const Client> client, int processors)
      : client_(std::move(client)), processors_(static_cast<std::size_t>(processors)), variables(processors_) {}

  const Client& client() const { return *client_; }

  // Every processor calls it: notes what it brings; the last to come works, and all return or throw what it threw.
  template <class Note, class Job>
  void together(const Note& note, const Job& work) {
    std::unique_lock lock(mutex_);
    const std::uint64_t round = round_;
    note();
    if (++here_ < processors_) {
      all_here_.wait(lock, [&] { return round_ != round; });
    } else {
      here_ = 0;
      failure_ = nullptr;
      try {
        work();
      } catch (...) {
        failure_ = std::current_exception();
      }
      ++round_;
      all_here_.notify_all();
    }
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  const std::shared_ptr<const Client> client_;
  const std::size_t processors_;

 public:
  VariableShards variables;             // of the program that is being bound
  std::shared_ptr<XlaProgram> program;  // that was bound last
  std::optional<StepArgs> step;         // that is being started

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::size_t here_ = 0;
  std::uint64_t round_ = 0;
  std::exception_ptr failure_;
};

UserError no_trace() {
  return UserError(
      {.code = "device.xla-no-trace",
       .what = "the device 'xla' cannot trace instructions: XLA compiles the whole program into one",
       .where = "CompileOptions::trace, --trace",
       .fix = "trace with --device cpu, or leave the trace out and use the profiler of the plugin's makers"});
}

// One processor's part of a program.
class XlaBound : public BoundProgram {
 public:
  XlaBound(std::shared_ptr<SharedClient> shared, std::shared_ptr<XlaProgram> program, ProcessorId processor)
      : shared_(std::move(shared)), program_(std::move(program)), processor_(processor) {}

  void* input(std::size_t i) const override { return program_->input(processor_, i); }
  void* output(std::size_t i) const override { return program_->output(processor_, i); }
  void start(const StepArgs& step) override {
    shared_->together(
        [&] {
          if (step.host || !shared_->step) shared_->step = step;  // one processor speaks for all
        },
        [&] {
          const StepArgs args = *shared_->step;
          shared_->step.reset();
          program_->start(args);
        });
  }
  void wait() override {
    shared_->together([] {}, [&] { program_->wait(); });
  }
  std::string doing() const override {
    return program_->is_running() ? "a program that XLA compiled; it does not say where" : "";
  }
  void trace_to(TraceLog* log) override {
    if (log) throw no_trace();
  }
  std::vector<RunInstr> instructions() const override { return {}; }
  std::optional<CompilerMemory> compiler_memory() const override {
    return xla::compiler_memory(shared_->client().plugin().path(), program_->memory(), program_->compile_seconds());
  }

 private:
  const std::shared_ptr<SharedClient> shared_;
  const std::shared_ptr<XlaProgram> program_;
  const ProcessorId processor_;
};

void refuse_checks(const Checks& checks) {
  if (checks.finite)
    throw UserError({.code = "device.xla-no-finite-check",
                     .what = "the device 'xla' cannot search for NaN or infinity: XLA shows no results of instructions",
                     .where = "CompileOptions::check_finite",
                     .fix = "run these steps with --device cpu: a checkpoint of one device loads on all devices"});
  if (checks.ids)
    throw UserError({.code = "device.xla-no-id-check",
                     .what = "the device 'xla' cannot check ids: XLA shows no operands of instructions",
                     .where = "CompileOptions::check_ids, run.check_ids",
                     .fix = "leave the check out, or run with --device cpu"});
}

class XlaDevice : public Device {
 public:
  XlaDevice(std::shared_ptr<SharedClient> shared, const Mesh& mesh, ProcessorId processor)
      : shared_(std::move(shared)), mesh_(mesh), processor_(processor) {}

  comm::Memory allocate(std::size_t bytes, MemoryUse use) override {
    internal_check(use == MemoryUse::kVariables, "a device gives out memory for variables; the rest is its own");
    variable_bytes_ += static_cast<std::int64_t>(bytes);
    // The shard keeps the client: a session's variables may go after its devices.
    auto owner = std::make_shared<std::pair<std::shared_ptr<SharedClient>, Shard>>(
        shared_, Shard(shared_->client(), processor_.number()));
    Shard* shard = &owner->second;
    return {std::shared_ptr<void>(std::move(owner), shard), bytes};
  }
  std::int64_t allocated(MemoryUse use) const override { return use == MemoryUse::kVariables ? variable_bytes_ : 0; }

  void write(std::span<const std::byte> from, void* to) override {
    Shard& shard = *static_cast<Shard*>(to);
    shard.take({from.begin(), from.end()});
  }
  void read(const void* from, std::span<std::byte> to) override { static_cast<const Shard*>(from)->read(to); }

  void upload(const Array& whole, const Value& value, void* to) override {
    Shard& shard = *static_cast<Shard*>(to);
    shard.set_type(value);
    if (whole.shape() == value.shape) return shard.write({whole.bytes(), bytes(value)});
    std::vector<std::byte> own(bytes(value));
    copy_to_shard(whole, value, mesh_, processor_, own.data());
    shard.take(std::move(own));
  }
  void download(const void* from, const Value& value, Array& whole) override {
    if (whole.shape() == value.shape) return read(from, {whole.bytes(), bytes(value)});
    std::vector<std::byte> own(bytes(value));
    read(from, own);
    copy_from_shard(own.data(), value, mesh_, processor_, whole);
  }

  void fill(void* to, const Value& value, const std::string& name, const Init& init, std::uint64_t seed) override {
    std::vector<std::byte> own(bytes(value));
    TensorView view = dense_view(own.data(), value.dtype, value.shape);
    view.begin = shard_begin(value.shape, value.sharding, mesh_, processor_);
    const Shape whole = global_shape(value.shape, value.sharding, mesh_);
    for (std::size_t d = 0; d < whole.rank(); ++d) view.whole[d] = whole[d].size;
    fill_initial(view, name, init, seed, workers_);
    Shard& shard = *static_cast<Shard*>(to);
    shard.set_type(value);
    shard.take(std::move(own));
  }

  std::unique_ptr<BoundProgram> bind(std::shared_ptr<const Compiled> compiled, const std::vector<void*>& variables,
                                     const Checks& checks) override {
    refuse_checks(checks);
    shared_->together(
        [&] {
          shared_->variables[processor_].clear();
          for (void* variable : variables) shared_->variables[processor_].push_back(static_cast<Shard*>(variable));
        },
        [&] { shared_->program = std::make_shared<XlaProgram>(compiled, shared_->client(), shared_->variables); });
    return std::make_unique<XlaBound>(shared_, shared_->program, processor_);
  }

  int lanes() const override { return 1; }
  std::int64_t now() const override { return host_now(); }

 private:
  static std::size_t bytes(const Value& value) { return static_cast<std::size_t>(bytes_of(value)); }

  const std::shared_ptr<SharedClient> shared_;
  const Mesh& mesh_;
  const ProcessorId processor_;
  std::int64_t variable_bytes_ = 0;
  Workers workers_{1};
};

}  // namespace

std::shared_ptr<const Client> shared_client(const Plugin& plugin, int devices) {
  static std::mutex mutex;
  static auto& shared = *new std::map<const Plugin*, std::weak_ptr<const Client>>;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const Client> client = shared[&plugin].lock();
  if (client) return client;
  client = std::make_shared<const Client>(plugin, devices);
  if (!client->makes_devices()) shared[&plugin] = client;
  return client;
}

std::shared_ptr<const Client> client_for(const Plugin& plugin, const Mesh& mesh) {
  std::shared_ptr<const Client> client = shared_client(plugin, mesh.size());
  if (client->devices() == mesh.size()) return client;
  const auto are = [](int n, const char* one, const char* many) { return str(n, " ", n == 1 ? one : many); };
  throw UserError(
      {.code = "device.xla-device-count",
       .what = str("mesh ", mesh.axes().empty() ? "\"\"" : mesh.text(), " has ",
                   are(mesh.size(), "processor", "processors"), ", but the plugin has ",
                   are(client->devices(), "device", "devices"), " ", client->device_kind()),
       .where = str("plugin ", plugin.path()),
       .fix = str("choose a mesh of ", client->devices(), ", or make other devices visible to the plugin")});
}

Devices open_devices(const Plugin& plugin, comm::Wire& wire, const Mesh& mesh) {
  if (static_cast<int>(wire.local().size()) != wire.size())
    throw UserError({.code = "device.xla-in-other-processes",
                     .what = "the device 'xla' has no processors in other processes",
                     .where = str("session on mesh ", mesh),
                     .fix = "use wire::threads(), --wire threads: one process has all devices of the plugin"});
  const auto shared = std::make_shared<SharedClient>(client_for(plugin, mesh), wire.size());
  Devices devices(static_cast<std::size_t>(wire.size()));
  for (const ProcessorId p : wire.local()) devices[p] = std::make_unique<XlaDevice>(shared, mesh, p);
  return devices;
}

CompilerMemory compiler_memory(const std::string& plugin, const CompiledMemory& memory, double seconds) {
  return {.compiler = std::filesystem::path(plugin).filename(),
          .arguments = memory.arguments,
          .outputs = memory.outputs,
          .aliased = memory.aliased,
          .temporaries = memory.temporaries,
          .code = memory.code,
          .peak = memory.peak,
          .seconds = seconds};
}

}  // namespace weft::xla
