// What kernels need besides operands and results is a part of the plan: a run holds what was planned, and no more.
#include <gtest/gtest.h>

#include "support/compile.h"
#include "api/state.h"
#include "program/memory_plan.h"
#include "support/expect_error.h"
#include "weft/weft.h"

namespace weft::workspace_test {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

struct Chain {
  Graph g;
  Tensor x, y;
  Dim a{"a", 512}, b{"b", 1024};
  Chain() { x = g.input("x", {a, b}); }

  // The dims change their names, and the one that is split changes with them.
  Tensor turned(const Tensor& h) const {
    const Tensor once = rename(h, h.shape().dim("a"), "other");
    return rename(rename(once, once.shape().dim("b"), "a"), once.shape().dim("other"), "b");
  }
  Array values() const {
    Array array({a, b}, DType::kF32);
    for (std::int64_t i = 0; i < array.elements(); ++i) array.set(i, static_cast<double>(i * 37 % 1009) / 1009);
    return array;
  }

  // Runs it on two processors within `limit`, holds what is planned, and gives what one processor gives.
  void check(std::int64_t limit) const {
    const CompileOptions options{.fetch = {y}, .memory_bytes = limit};
    const Layout layout = Layout::parse("a:p");
    for (const Engine* engine : engines()) {
      const Mesh mesh = Mesh::parse("p:2");
      const auto processors =
          std::make_shared<Processors>(mesh, comm::make_threads_wire(2), *engine, ProcessorOptions{.workers = 2});
      Session session = SessionState::open(processors, {.workers = 2});
      Executable step = session.compile(g, layout, options);
      const std::int64_t held = processors->device(ProcessorId(0)).allocated(MemoryUse::kArena);
      EXPECT_EQ(held, compile_program(g, mesh, layout, options, {}, *engine).arena_bytes()) << engine->name();
      EXPECT_LE(held, limit) << engine->name();
      const Array got = step.run({{x, values()}})[y];
      Session alone = SessionState::open(Mesh(), comm::make_threads_wire(1), *engine, {});
      const Array want = alone.compile(g, Layout(), {.fetch = {y}}).run({{x, values()}})[y];
      EXPECT_EQ(got.values(), want.values()) << engine->name();
      EXPECT_EQ(step.run({{x, values()}})[y].values(), want.values()) << engine->name();
    }
  }
};

TEST(Workspace, IsSharedByReshardings) {
  Chain chain;
  Tensor h = chain.x;
  for (int i = 0; i < 32; ++i) h = sin(chain.turned(h));
  chain.y = h;
  chain.check(16 * kMiB);  // the whole of x is 2 MiB
}

TEST(Workspace, IsSharedBySortsAlongASplitDim) {
  Chain chain;
  Tensor h = chain.x;
  for (int i = 0; i < 8; ++i) h = chain.turned(sin(sort(h, h.shape().dim("a")).values));
  chain.y = h;
  chain.check(12 * kMiB);
}

TEST(Workspace, CountsAgainstTheLimit) {
  Chain chain;
  chain.y = chain.turned(sin(chain.turned(chain.x)));
  const Mesh mesh = Mesh::parse("p:2");
  const Layout layout = Layout::parse("a:p");
  const auto compiled = [&](std::int64_t limit) {
    return compile_program(chain.g, mesh, layout, {.fetch = {chain.y}, .memory_bytes = limit}, {}, cpu_engine());
  };
  const Program program = compiled(0).program;
  const std::int64_t values = plan_memory(program).arena_bytes;
  const std::int64_t all = plan_memory(program, cpu_engine().target()).arena_bytes;
  EXPECT_GT(all, values);
  EXPECT_NO_THROW(compiled(all));
  EXPECT_USER_ERROR(compiled(values), "the step needs ", " bytes besides its variables");
}

// A product that has no matrix form is packed, in workspace, and so are wide sums.
TEST(Workspace, IsPlannedForWhatIsPacked) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kI32}) {
    Graph g;
    const Dim a{"a", 6}, b{"b", 10}, c{"c", 4}, d{"d", 3};
    const Tensor x = g.input("x", {c, a, b}, dtype), y = g.input("y", {b, d, c}, dtype);
    const Tensor z = einsum({x, y}, {d, a, c});
    const Tensor rows = g.input("rows", {a}, DType::kI32);
    const Tensor sums = scatter_add(z, rows, {"row", 5}, {d, c});
    Array p({c, a, b}, dtype), q({b, d, c}, dtype), r({a}, DType::kI32);
    for (Array* array : {&p, &q, &r})
      for (std::int64_t i = 0; i < array->elements(); ++i) array->set(i, static_cast<double>(i * 7 % 5));
    const auto run = [&](const device::Choice& choice) {
      Session session(Mesh(), wire::threads(), choice, {.workers = 2});
      const Values out = session.compile(g, Layout(), {.fetch = {z, sums}}).run({{x, p}, {y, q}, {rows, r}});
      return std::pair(out[z].values(), out[sums].values());
    };
    EXPECT_EQ(run(device::cpu()), run(device::reference())) << dtype;
  }
}

}  // namespace
}  // namespace weft::workspace_test
