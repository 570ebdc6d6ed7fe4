#include "runtime/cuda/device.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "base/index.h"
#include "base/str.h"
#include "runtime/cuda/peers.h"
#include "runtime/cuda/program.h"
#include "runtime/host/host_clock.h"
#include "runtime/host/initial.h"
#include "runtime/host/strided.h"
#include "runtime/shards.h"
#include "weft/error.h"

namespace weft::cuda {

namespace {

// What the processors of one session share on a card. One of their threads works for all; the others wait for it.
class SharedCard {
 public:
  // `peers`: null if all processors of the mesh are on this card.
  SharedCard(const comm::Wire& wire, std::unique_ptr<Peers> peers, bool deterministic)
      : processors_(wire.local().size()),
        peers_(std::move(peers)),
        card_(peers_ ? peers_->device() : 0, deterministic) {
    places.local = wire.local();
    places.arenas.resize(at(wire.size()));
    places.variables.resize(at(wire.size()));
  }

  Card& card() { return card_; }
  Peers* peers() const { return peers_.get(); }
  bool is_first(ProcessorId processor) const { return processor == places.local[0]; }

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
        card_.use();
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
  const std::size_t processors_;
  const std::unique_ptr<Peers> peers_;
  Card card_;

 public:
  Places places;                         // of the program that is being bound
  std::shared_ptr<CudaProgram> program;  // that was bound last; it uses the card
  std::optional<StepArgs> step;          // that is being started

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  std::size_t here_ = 0;
  std::uint64_t round_ = 0;
  std::exception_ptr failure_;
};

// One processor's part of a program.
class CudaBound : public BoundProgram {
 public:
  CudaBound(std::shared_ptr<SharedCard> shared, std::shared_ptr<CudaProgram> program, ProcessorId processor)
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
  bool queues() const override { return program_->queues(); }
  void wait() override {
    shared_->together([] {}, [&] { program_->wait(); });
  }
  std::string doing() const override { return program_->doing(); }
  void trace_to(TraceLog* log) override {
    if (shared_->is_first(processor_)) program_->trace_to(log);
  }
  std::vector<RunInstr> instructions() const override { return program_->instructions(); }

 private:
  const std::shared_ptr<SharedCard> shared_;
  const std::shared_ptr<CudaProgram> program_;
  const ProcessorId processor_;
};

class CudaDevice : public Device {
 public:
  CudaDevice(std::shared_ptr<SharedCard> shared, const Mesh& mesh, ProcessorId processor)
      : shared_(std::move(shared)), mesh_(mesh), processor_(processor), arena_(shared_->card()) {}

  comm::Memory allocate(std::size_t bytes, MemoryUse use) override {
    internal_check(use == MemoryUse::kVariables, "a device gives out memory for variables; the rest is its own");
    shared_->card().use();
    void* data = nullptr;
    check(cudaMalloc(&data, std::max<std::size_t>(bytes, 1)), "cudaMalloc");
    std::shared_ptr<void> owner(data, [](void* memory) { cudaFree(memory); });
    check(cudaMemset(data, 0, bytes), "cudaMemset");
    variable_bytes_ += static_cast<std::int64_t>(bytes);
    return {std::move(owner), bytes};
  }

  std::int64_t allocated(MemoryUse use) const override {
    if (use == MemoryUse::kVariables) return variable_bytes_;
    if (use == MemoryUse::kArena) return static_cast<std::int64_t>(arena_.bytes());
    return shared_->is_first(processor_) ? kCardScratch : 0;
  }

  void write(std::span<const std::byte> from, void* to) override {
    shared_->card().use();
    check(cudaMemcpy(to, from.data(), from.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
    check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");  // small copies are on their way when it returns
  }
  void read(const void* from, std::span<std::byte> to) override {
    shared_->card().use();
    check(cudaMemcpy(to.data(), from, to.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
  }

  void upload(const Array& whole, const Value& value, void* shard) override {
    if (whole.shape() == value.shape) return write({whole.bytes(), bytes(value)}, shard);
    staging_.resize(bytes(value));
    copy_to_shard(whole, value, mesh_, processor_, staging_.data());
    write(staging_, shard);
  }
  void download(const void* shard, const Value& value, Array& whole) override {
    if (whole.shape() == value.shape) return read(shard, {whole.bytes(), bytes(value)});
    staging_.resize(bytes(value));
    read(shard, staging_);
    copy_from_shard(staging_.data(), value, mesh_, processor_, whole);
  }

  void fill(void* shard, const Value& value, const std::string& name, const Init& init, std::uint64_t seed) override {
    staging_.assign(bytes(value), std::byte{});
    TensorView view = dense_view(staging_.data(), value.dtype, value.shape);
    view.begin = shard_begin(value.shape, value.sharding, mesh_, processor_);
    const Shape whole = global_shape(value.shape, value.sharding, mesh_);
    for (std::size_t d = 0; d < whole.rank(); ++d) view.whole[d] = whole[d].size;
    fill_initial(view, name, init, seed, workers_);
    write(staging_, shard);
  }

  std::unique_ptr<BoundProgram> bind(std::shared_ptr<const Compiled> compiled, const std::vector<void*>& variables,
                                     const Checks& checks) override {
    shared_->card().use();
    arena_.grow(static_cast<std::size_t>(compiled->arena_bytes()));
    shared_->together(
        [&] {
          shared_->places.arenas[processor_] = arena_.data();
          shared_->places.variables[processor_] = variables;
        },
        [&] {
          shared_->program =
              std::make_shared<CudaProgram>(compiled, shared_->card(), shared_->places, checks, shared_->peers());
        });
    return std::make_unique<CudaBound>(shared_, shared_->program, processor_);
  }

  int lanes() const override { return 1; }
  std::int64_t now() const override { return host_now(); }

 private:
  static std::size_t bytes(const Value& value) { return static_cast<std::size_t>(bytes_of(value)); }

  const std::shared_ptr<SharedCard> shared_;
  const Mesh& mesh_;
  const ProcessorId processor_;
  GrowingArena arena_;
  std::int64_t variable_bytes_ = 0;
  std::vector<std::byte> staging_;
  Workers workers_{static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 8U)),
                   false};  // of initial values
};

}  // namespace

Devices open_devices(comm::Wire& wire, const Mesh& mesh, bool deterministic) {
  std::unique_ptr<Peers> peers = peers_on(wire);
  if (!peers && static_cast<int>(wire.local().size()) != wire.size())
    throw UserError({.code = "device.cuda-in-other-processes",
                     .what = "the device 'cuda' reaches processors in other processes by the wire nccl only",
                     .where = str("session on mesh ", mesh),
                     .fix =
                         "use wire::nccl(), --wire nccl: one process per card; or wire::threads(): all processors of "
                         "the mesh on one card"});
  const auto shared = std::make_shared<SharedCard>(wire, std::move(peers), deterministic);
  Devices devices(static_cast<std::size_t>(wire.size()));
  for (const ProcessorId p : wire.local()) devices[p] = std::make_unique<CudaDevice>(shared, mesh, p);
  return devices;
}

}  // namespace weft::cuda
