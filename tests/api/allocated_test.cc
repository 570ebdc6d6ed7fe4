// What is planned is what is allocated, to the byte: variables, arena and scratch of every processor, on every engine,
// for models under layouts; and the programs of a session share one arena.
#include <gtest/gtest.h>

#include "api/state.h"
#include "support/compile.h"
#include "weft/detail/models.h"
#include "weft/optim.h"
#include "weft/weft.h"

namespace weft::allocated_test {
namespace {

struct Case {
  const char *model, *mesh, *layout, *store;
};

const models::Sizes kTransformer = {{"batch", 4}, {"length", 8}, {"d_model", 32}, {"heads", 4},
                                    {"d_kv", 8},  {"d_ff", 64},  {"vocab", 48},   {"layers", 2}};
const models::Sizes kMlp = {{"batch", 8}, {"pixel", 24}, {"digit", 12}, {"hidden", 32}, {"width", 16}, {"layers", 3}};
const models::Sizes kTwoLayer = {};

models::Model model_of(const std::string& name) {
  return models::build(name, name == "transformer" ? kTransformer : name == "mlp" ? kMlp : kTwoLayer);
}

class Allocated : public ::testing::TestWithParam<Case> {};

TEST_P(Allocated, IsWhatWasPlanned) {
  const Case& c = GetParam();
  const models::Model model = model_of(c.model);
  const Mesh mesh = Mesh::parse(c.mesh);
  const Layout layout = Layout::parse(c.layout);
  const Store store = *c.store == '\0' ? Store{} : Store::parse(c.store, 1);
  for (const Engine* engine : engines()) {
    SCOPED_TRACE(engine->name());
    const auto processors = std::make_shared<Processors>(mesh, comm::make_threads_wire(mesh.size()), *engine,
                                                         ProcessorOptions{.workers = 2});
    Session session = SessionState::open(processors, {.workers = 2, .store = store});
    session.compile(model.graph, layout, model.options);
    const auto compiled =
        std::make_shared<const Compiled>(compile_program(model.graph, mesh, layout, model.options, store, *engine));
    for (const ProcessorId p : mesh.processors()) {
      const Device& device = processors->device(p);
      EXPECT_EQ(device.allocated(MemoryUse::kVariables), compiled->variable_bytes()) << p;
      EXPECT_EQ(device.allocated(MemoryUse::kArena), compiled->arena_bytes()) << p;
      EXPECT_EQ(device.allocated(MemoryUse::kScratch), engine->describe(compiled, {.workers = 2}).scratch_bytes) << p;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, Allocated,
    ::testing::Values(Case{"two_layer", "", "", ""}, Case{"two_layer", "r:2 c:2", "batch:r hidden:c", ""},
                      Case{"mlp", "", "", ""}, Case{"mlp", "data:2", "batch:data", ""},
                      Case{"mlp", "data:2 model:2", "batch:data hidden:model", ""},
                      Case{"mlp", "data:4", "batch:data", "*:data"}, Case{"transformer", "", "", ""},
                      Case{"transformer", "data:4", "batch:data", ""},
                      Case{"transformer", "model:4", "heads,d_ff,vocab:model", ""},
                      Case{"transformer", "data:2 model:2", "batch:data heads,d_ff,vocab:model", ""},
                      Case{"transformer", "data:2 model:2", "batch:data heads,d_ff,vocab:model", "*:data"},
                      Case{"transformer", "data:2 model:2", "length:data d_model:model", ""}));

// A small program after a large one needs no more memory; a larger one makes the arena grow where it lies.
TEST(Allocated, ProgramsOfASessionShareOneArena) {
  Graph g;
  const Dim n{"n", 1 << 18}, m{"m", 1 << 20};
  const Tensor x = g.input("x", {n}), y = g.input("y", {m});
  const Tensor small = exp(sin(x)), large = exp(sin(y));
  Array a({n}, DType::kF32), b({m}, DType::kF32);
  for (std::int64_t i = 0; i < b.elements(); ++i) b.set(i, static_cast<double>(i % 97) / 97);
  for (std::int64_t i = 0; i < a.elements(); ++i) a.set(i, static_cast<double>(i % 89) / 89);
  for (const Engine* engine : engines()) {
    const auto processors = std::make_shared<Processors>(Mesh(), comm::make_threads_wire(1), *engine);
    Session session = SessionState::open(processors, {});
    const auto arena = [&] { return processors->device(ProcessorId(0)).allocated(MemoryUse::kArena); };
    Executable first = session.compile(g, Layout(), {.fetch = {small}});
    const std::int64_t before = arena();
    const Array want = first.run({{x, a}})[small];
    Executable second = session.compile(g, Layout(), {.fetch = {large}});
    EXPECT_EQ(arena(), compile_program(g, Mesh(), Layout(), {.fetch = {large}}, {}, *engine).arena_bytes());
    EXPECT_GT(arena(), before);
    const Array other = second.run({{y, b}})[large];
    EXPECT_EQ(first.run({{x, a}})[small].values(), want.values()) << engine->name();
    EXPECT_EQ(second.run({{y, b}})[large].values(), other.values()) << engine->name();
    const std::int64_t all = arena();
    Executable third = session.compile(g, Layout(), {.fetch = {small, x}});
    EXPECT_EQ(arena(), all) << engine->name();
    // A step that was started is fetched before another program overwrites its outputs.
    PendingRun pending = first.start({{x, a}});
    PendingRun next = second.start({{y, b}});
    EXPECT_EQ(pending.get()[small].values(), want.values()) << engine->name();
    EXPECT_EQ(next.get()[large].values(), other.values()) << engine->name();
  }
}

}  // namespace
}  // namespace weft::allocated_test
