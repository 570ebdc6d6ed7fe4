// An engine of a test's own, added through the seam: it lets the reference do the work and counts what goes over the
// seam. Nothing in src/ knows of it.
#include <gtest/gtest.h>

#include <atomic>

#include "runtime/engine.h"
#include "support/expect_error.h"
#include "weft/weft.h"

namespace weft::counting_engine_test {
namespace {

struct Counts {
  std::atomic<int> devices = 0, programs = 0, steps = 0, uploads = 0, downloads = 0, fills = 0, clocks = 0;
  std::atomic<const void*> uploaded = nullptr;  // the memory of the array that was uploaded last
};

class CountingProgram : public BoundProgram {
 public:
  CountingProgram(std::unique_ptr<BoundProgram> inside, Counts& counts) : inside_(std::move(inside)), counts_(counts) {
    ++counts_.programs;
  }
  void* input(std::size_t i) const override { return inside_->input(i); }
  void* output(std::size_t i) const override { return inside_->output(i); }
  void start(const StepArgs& step) override { inside_->start(step); }
  void wait() override {
    inside_->wait();
    ++counts_.steps;
  }
  std::string doing() const override { return inside_->doing(); }
  void trace_to(TraceLog* log) override { inside_->trace_to(log); }
  std::vector<RunInstr> instructions() const override { return inside_->instructions(); }

 private:
  std::unique_ptr<BoundProgram> inside_;
  Counts& counts_;
};

class CountingDevice : public Device {
 public:
  CountingDevice(std::unique_ptr<Device> inside, Counts& counts) : inside_(std::move(inside)), counts_(counts) {
    ++counts_.devices;
  }
  comm::Memory allocate(std::size_t bytes, MemoryUse use) override { return inside_->allocate(bytes, use); }
  std::int64_t allocated(MemoryUse use) const override { return inside_->allocated(use); }
  void write(std::span<const std::byte> from, void* to) override { inside_->write(from, to); }
  void read(const void* from, std::span<std::byte> to) override { inside_->read(from, to); }
  void upload(const Array& whole, const Value& value, void* shard) override {
    ++counts_.uploads;
    counts_.uploaded = whole.bytes();
    inside_->upload(whole, value, shard);
  }
  void download(const void* shard, const Value& value, Array& whole) override {
    ++counts_.downloads;
    inside_->download(shard, value, whole);
  }
  void fill(void* shard, const Value& value, const std::string& name, const Init& init, std::uint64_t seed) override {
    ++counts_.fills;
    inside_->fill(shard, value, name, init, seed);
  }
  std::unique_ptr<BoundProgram> bind(std::shared_ptr<const Compiled> compiled, const std::vector<void*>& variables,
                                     const Checks& checks) override {
    return std::make_unique<CountingProgram>(inside_->bind(std::move(compiled), variables, checks), counts_);
  }
  int lanes() const override { return inside_->lanes(); }
  std::int64_t now() const override {
    ++counts_.clocks;
    return inside_->now();
  }

 private:
  std::unique_ptr<Device> inside_;
  Counts& counts_;
};

class CountingEngine : public Engine {
 public:
  const std::string& name() const override { return name_; }
  const Target& target() const override { return target_; }
  bool has(const Instr& instr) const override { return !instr.is<Sort>() && inside_.has(instr); }
  BindReport describe(const std::shared_ptr<const Compiled>& compiled, const DeviceOptions& options) const override {
    return inside_.describe(compiled, options);
  }
  Roofs measure(int processors, const DeviceOptions&) const override { return {6e9 / processors, 2e9}; }
  Devices open(comm::Wire& wire, const Mesh& mesh, const DeviceOptions& options) const override {
    Devices devices = inside_.open(wire, mesh, options);
    for (std::unique_ptr<Device>& device : devices)
      if (device) device = std::make_unique<CountingDevice>(std::move(device), counts);
    return devices;
  }

  mutable Counts counts;

 private:
  static Target target_of(const Engine& inside) {
    Target target = inside.target();
    target.alignment = 256;
    return target;
  }
  const Engine& inside_ = engine_named("reference", "a test");
  const Target target_ = target_of(inside_);
  const std::string name_ = "counting";
};

const CountingEngine& counting() {
  static const CountingEngine* engine = [] {
    const auto* made = new CountingEngine;
    add_engine(*made);
    return made;
  }();
  return *engine;
}

TEST(CountingEngine, RunsASessionLikeAnyOther) {
  Counts& counts = counting().counts;
  Graph g;
  const Dim batch{"batch", 4}, width{"width", 6};
  const Tensor x = g.input("x", {batch, width});
  const Tensor w = g.variable("w", {width}, init::ones());
  const Tensor y = x * w, sum = reduce_sum(y, {batch});
  const auto run = [&](const device::Choice& device) {
    Session session(Mesh::parse("data:2"), wire::threads(), device);
    Executable step =
        session.compile(g, Layout::parse("batch:data"), {.fetch = {y, sum}, .update = {assign_add(w, sum)}});
    Array values({batch, width}, DType::kF32);
    for (std::int64_t i = 0; i < values.elements(); ++i) values.set(i, static_cast<double>(i));
    step.run({{x, values}});
    const Values out = step.run({{x, values}});
    std::vector<double> all = out[y].values();
    for (const double v : out[sum].values()) all.push_back(v);
    for (const double v : session.value("w").values()) all.push_back(v);
    return all;
  };
  EXPECT_EQ(run({"counting"}), run(device::reference()));
  EXPECT_EQ(counts.devices, 2);
  EXPECT_EQ(counts.programs, 2);
  EXPECT_EQ(counts.fills, 2);
  EXPECT_EQ(counts.steps, 4);
  EXPECT_EQ(counts.uploads, 4);
  EXPECT_EQ(counts.downloads, 2 * (2 + 1) + 1);  // per run: y of both processors, the sum of one; w of one
}

TEST(CountingEngine, UploadsStraightFromWrappedMemory) {
  Counts& counts = counting().counts;
  Graph g;
  const Dim batch{"batch", 4}, width{"width", 6};
  const Tensor x = g.input("x", {batch, width});
  const Tensor y = x * 2.0;
  Session session(Mesh::parse("data:2"), wire::threads(), {"counting"});
  Executable step = session.compile(g, Layout::parse("batch:data"), {.fetch = {y}});
  std::vector<float> memory(24, 3);
  EXPECT_EQ(step.run({{x, Array::wrap({batch, width}, memory)}})[y].at(23), 6);
  EXPECT_EQ(counts.uploaded, memory.data());
  // A new step sees new contents of the memory.
  memory[23] = 4;
  const Feeds feeds = {{x, Array::wrap({batch, width}, memory)}};
  EXPECT_EQ(step.start(feeds).get()[y].at(23), 8);
  EXPECT_EQ(counts.uploaded, memory.data());
  const Array owner({batch, width}, memory);
  step.run({{x, owner.view()}});
  EXPECT_EQ(counts.uploaded, owner.bytes());
  // An array that is moved into the feeds is not copied either.
  Array moved({batch, width}, memory);
  const void* address = moved.bytes();
  Feeds own;
  own.emplace_back(x, std::move(moved));
  step.run(std::move(own));
  EXPECT_EQ(counts.uploaded, address);
  // In another dim order it is.
  EXPECT_EQ(step.run({{x, Array::wrap({width, batch}, memory)}})[y].at(23), 8);
  EXPECT_NE(counts.uploaded, memory.data());
}

TEST(CountingEngine, DecidesAboutAlignmentClocksAndRoofs) {
  Counts& counts = counting().counts;
  Graph g;
  const Tensor x = g.input("x", {{"n", 5}});
  const auto arena = [&](const device::Choice& device, const TraceOptions& trace) {
    Session session(Mesh(), wire::threads(), device);
    Executable step = session.compile(g, Layout(), {.fetch = {exp(x) + 1.0}, .trace = trace});
    step.run({{x, Array({{"n", 5}}, DType::kF32)}});
    return step.memory().arena;
  };
  EXPECT_EQ(arena({"counting"}, {}), 4 * arena(device::reference(), {}));  // pieces of 256 bytes for those of 64
  const int before = counts.clocks;
  arena({"counting"}, {.first = 0, .steps = 1});
  EXPECT_GE(counts.clocks - before, 2);  // the begin and the end of the call
  EXPECT_EQ(measure_machine({"counting"}).peak(), 6e9);
  EXPECT_EQ(measure_machine({"counting"}, 3).peak(), 2e9);
  EXPECT_EQ(measure_machine({"counting"}).bytes_per_second, 2e9);
}

TEST(CountingEngine, LacksWhatItSaysItLacks) {
  counting();
  Graph g;
  const Dim n{"n", 4};
  const Tensor sorted = sort(g.input("x", {n}), n).values;
  Session session(Mesh(), wire::threads(), {"counting"});
  EXPECT_USER_ERROR(session.compile(g, Layout(), {.fetch = {sorted}}), "the device 'counting' has no kernel for: sort",
                    "device::reference()");
}

}  // namespace
}  // namespace weft::counting_engine_test
