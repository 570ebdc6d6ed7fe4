// A step allocates nothing: operator new is counted on all threads, workers among them, while programs run. What oneDNN
// allocates in its own calls is counted apart.
#include <dlfcn.h>
#include <dnnl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cerrno>
#include <cstdlib>
#include <new>

#include "support/compile.h"
#include "base/str.h"
#include "comm/wire.h"
#include "partition/partition.h"
#include "program/pipeline.h"
#include "runtime/runner.h"
#include "support/sampling.h"
#include "weft/detail/models.h"
#include "weft/ops.h"
#include "weft/optim.h"

namespace {

std::atomic<bool> counts{false};  // on all threads
std::atomic<std::int64_t> allocations{0};

thread_local bool is_in_onednn = false;
std::atomic<std::int64_t> onednn_allocations{0};  // of the library's own objects, a few per call
std::atomic<std::size_t> most_of_onednn{0};       // bytes of its largest buffer

void* counted(std::size_t bytes, std::size_t alignment) {
  if (counts) (is_in_onednn ? onednn_allocations : allocations).fetch_add(1);
  void* data = std::aligned_alloc(alignment, (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment);
  if (!data) throw std::bad_alloc();
  return data;
}

// Out of line: the compiler must not see a free() behind somebody's new.
[[gnu::noinline]] void give_back(void* data) { std::free(data); }

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new[](std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t at) { return counted(bytes, static_cast<std::size_t>(at)); }
void* operator new[](std::size_t bytes, std::align_val_t at) { return counted(bytes, static_cast<std::size_t>(at)); }
void operator delete(void* data) noexcept { give_back(data); }
void operator delete[](void* data) noexcept { give_back(data); }
void operator delete(void* data, std::size_t) noexcept { give_back(data); }
void operator delete[](void* data, std::size_t) noexcept { give_back(data); }
void operator delete(void* data, std::align_val_t) noexcept { give_back(data); }
void operator delete[](void* data, std::align_val_t) noexcept { give_back(data); }
void operator delete(void* data, std::size_t, std::align_val_t) noexcept { give_back(data); }
void operator delete[](void* data, std::size_t, std::align_val_t) noexcept { give_back(data); }

// oneDNN's buffers come from here.
extern "C" int posix_memalign(void** data, std::size_t alignment, std::size_t bytes) noexcept {
  if (counts && is_in_onednn)
    for (std::size_t most = most_of_onednn; most < bytes && !most_of_onednn.compare_exchange_weak(most, bytes);) {
    }
  *data = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  return *data ? 0 : ENOMEM;
}

// Stands before the library's own, which it calls.
extern "C" dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int count,
                                                const dnnl_exec_arg_t* args) {
  static const auto real = reinterpret_cast<decltype(&dnnl_primitive_execute)>(dlsym(RTLD_NEXT, __func__));
  is_in_onednn = true;
  const dnnl_status_t status = real(primitive, stream, count, args);
  is_in_onednn = false;
  return status;
}

namespace weft::step_test {
namespace {

// What all threads together allocate in the second of two steps, apart from handing out the step itself.
std::int64_t allocations_of(const Compiled& compiled, const Engine& engine) {
  const auto processors = std::make_shared<Processors>(
      compiled.program.mesh, comm::make_threads_wire(compiled.program.mesh.size()), engine, ProcessorOptions{60, 2});
  std::vector<VariableMemory> variables;
  std::vector<const VariableMemory*> places;
  for (const ProgramVariable& variable : compiled.program.variables)
    variables.push_back(processors->allocate(compiled.program.values[variable.value]));
  for (const VariableMemory& variable : variables) places.push_back(&variable);
  const Runner runner(processors, std::make_shared<const Compiled>(compiled), places);
  const StepArgs first{.deadline = std::chrono::seconds(60)}, second{.step = 1, .deadline = first.deadline};
  processors->on_each([&](ProcessorId p) { runner.bound(p).start(first); });
  processors->on_each([&](ProcessorId p) { runner.bound(p).wait(); });
  allocations = 0;
  most_of_onednn = 0;
  std::barrier all_are_ready(compiled.program.mesh.size()), all_are_done(compiled.program.mesh.size());
  processors->on_each([&](ProcessorId p) {
    all_are_ready.arrive_and_wait();
    counts = true;
    runner.bound(p).start(second);
    all_are_done.arrive_and_wait();
    counts = false;
  });
  return allocations;
}

TEST(StepAllocations, AreCounted) {
  counts = true;
  allocations = 0;
  const auto x = std::make_unique<int>(3);
  const std::vector<int> y(static_cast<std::size_t>(*x));
  counts = false;
  EXPECT_EQ(allocations, 2);
}

// Buffers in which oneDNN packs operands are memory outside the plan.
std::size_t most_onednn_allocates(const Dim& k, const Dim& m, const Dim& n) {
  Graph graph;
  const Tensor x = graph.input("x", {k, m}), y = graph.input("y", {k, n});
  const CompileOptions options{.fetch = {einsum({x, y}, {m, n})}};
  EXPECT_EQ(allocations_of(compile_program(graph, Mesh(), Layout(), options, {}, cpu_engine()), cpu_engine()), 0);
  return most_of_onednn;
}

TEST(StepAllocations, BuffersOfOnednnDoNotGrowWithTheProduct) {
  for (const std::int64_t columns : {4096, 8192, 32768}) {
    const std::size_t packed = most_onednn_allocates({"k", 512}, {"m", 512}, {"n", columns}),
                      in_parts = most_onednn_allocates({"k", 512}, {"m", 128}, {"n", columns});
    EXPECT_GT(packed, 0u) << "is not counted";
    EXPECT_LE(packed, std::size_t{1} << 20) << columns << " columns";
    EXPECT_LE(in_parts, std::size_t{3} << 20) << columns << " columns";
  }
}

class OpAllocations : public ::testing::TestWithParam<const OpDef*> {
 protected:
  // Every sample under every legal layout.
  static void check(const Mesh& mesh, const Engine& engine) {
    for (const Sample& sample : GetParam()->samples) {
      const test::BuiltSample built = test::build_sample(*GetParam(), sample);
      for (const std::string& layout : test::every_layout(test::dims_of(*built.graph.data()), mesh)) {
        if (!test::is_legal(*built.graph.data(), mesh, layout)) continue;
        const CompileOptions options{.fetch = test::fetched(built)};
        const Compiled compiled = compile_program(built.graph, mesh, Layout::parse(layout), options, {}, engine);
        EXPECT_EQ(allocations_of(compiled, engine), 0) << "layout \"" << layout << "\"";
      }
    }
  }
};

TEST_P(OpAllocations, NoneOnOneProcessor) { check(Mesh(), reference_engine()); }
TEST_P(OpAllocations, NoneOnTwoByTwo) { check(Mesh::parse("p:2 q:2"), reference_engine()); }
TEST_P(OpAllocations, NoneOnOneProcessorOfTheCpu) { check(Mesh(), cpu_engine()); }
TEST_P(OpAllocations, NoneOnTwoProcessorsOfTheCpu) { check(Mesh::parse("p:2"), cpu_engine()); }

INSTANTIATE_TEST_SUITE_P(Ops, OpAllocations, ::testing::ValuesIn(op_catalog()),
                         [](const auto& info) { return info.param->name; });

const models::Sizes kTransformer = {{"batch", 4}, {"length", 8}, {"d_model", 32}, {"heads", 4},
                                    {"d_kv", 8},  {"d_ff", 64},  {"vocab", 48},   {"layers", 2}};
const models::Sizes kMlp = {{"batch", 8}, {"pixel", 24}, {"digit", 12}, {"hidden", 32}, {"width", 16}, {"layers", 3}};

void check_model(const std::string& name, const models::Sizes& sizes, const std::string& layout, bool factored) {
  models::Model model = models::build(name, sizes);
  const Tensor loss = model.options.fetch[0];
  Tensors weights = model.graph.variables();
  // The transformer comes with Adam, whose slots have the names of Adafactor's where nothing is factored.
  if (factored && name == "transformer") std::erase_if(weights, [](const Tensor& w) { return w.shape().rank() < 2; });
  if (factored) model.options.update = optim::Adafactor(loss, weights, {.min_dim_size_to_factor = 8}).updates();
  else if (name == "mlp") model.options.update = optim::Adam(loss, weights).updates();
  const Mesh mesh = Mesh::parse("data:2 model:2");
  for (const Engine* engine : engines()) {
    const Compiled compiled = compile_program(model.graph, mesh, Layout::parse(layout), model.options, {}, *engine);
    EXPECT_EQ(allocations_of(compiled, *engine), 0) << engine->name();
  }
}

constexpr const char* kTransformerLayout = "batch:data heads,d_ff,vocab:model";
constexpr const char* kMlpLayout = "batch:data hidden:model";

TEST(ModelAllocations, TransformerWithAdam) { check_model("transformer", kTransformer, kTransformerLayout, false); }
TEST(ModelAllocations, TransformerWithAdafactor) { check_model("transformer", kTransformer, kTransformerLayout, true); }
TEST(ModelAllocations, MlpWithAdam) { check_model("mlp", kMlp, kMlpLayout, false); }
TEST(ModelAllocations, MlpWithAdafactor) { check_model("mlp", kMlp, kMlpLayout, true); }

// Of the whole compiler but for the verifier.
std::int64_t allocations_of_compiling(int layers) {
  models::Sizes sizes = kTransformer;
  sizes["layers"] = layers;
  const models::Model model = models::build("transformer", sizes);
  std::vector<TensorId> fetch, update;
  for (const Tensor& x : model.options.fetch) fetch.push_back(x.id());
  for (const Tensor& x : model.options.update) update.push_back(x.id());
  const PartitionRequest request{.graph = model.graph.data().get(),
                                 .fetch = fetch,
                                 .update = update,
                                 .mesh = Mesh::parse("data:2 model:2"),
                                 .layout = Layout::parse(kTransformerLayout),
                                 .compute_as = {}};
  allocations = 0;
  counts = true;
  const Compiled compiled =
      with_plan(run_passes(partition(request), {.target = cpu_engine().target()}), cpu_engine().target(), {});
  counts = false;
  return allocations;
}

// The time of the compiler goes to small lists and texts; how many a layer needs can be counted without a clock.
TEST(CompileAllocations, PerLayerAreFew) {
  constexpr std::int64_t kMost = 20'000;
  EXPECT_LT((allocations_of_compiling(6) - allocations_of_compiling(2)) / 4, kMost);
}

}  // namespace
}  // namespace weft::step_test
