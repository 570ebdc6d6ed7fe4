// A memory limit: work is done again instead of kept; results stay, memory falls, what cannot be is refused.
#include <gtest/gtest.h>

#include "support/compile.h"
#include "program/cost.h"
#include "program/memory_plan.h"
#include "support/expect_error.h"
#include "weft/detail/models.h"
#include "weft/weft.h"

namespace weft::memory_limit_test {
namespace {

// Layers of cheap functions, each of which keeps values for the backward pass.
struct Deep {
  Graph g;
  Tensor x, loss;
  Tensors grads;
  Deep() {
    const Dim batch{"batch", 64}, width{"width", 16}, out{"out", 16};
    x = g.input("x", {batch, width});
    const Tensor w = g.variable("w", {width, out}, init::normal(0.3));
    Tensor h = x;
    for (int i = 0; i < 6; ++i) h = h + sin(exp(tanh(rename(einsum({h, w}), out, "width"))));
    loss = mean(square(h));
    grads = gradients({loss}, {w});
  }
  CompileOptions options(std::int64_t memory) const {
    return {.fetch = {loss, grads[0]}, .compute_as = DType::kF64, .memory_bytes = memory};
  }
  std::int64_t variable_bytes() const { return 8 * 16 * 16; }
};

// Variables and arena.
std::int64_t bytes_of(const Program& p) {
  std::int64_t sum = plan_memory(p, reference_engine().target()).arena_bytes;
  for (const ProgramVariable& v : p.variables) {
    const Value& value = p.values[v.value];
    sum += value.shape.elements() * static_cast<std::int64_t>(size_of(value.dtype));
  }
  return sum;
}

TEST(MemoryLimit, IsKeptAndChangesNoNumber) {
  const Deep deep;
  const auto program = [&](std::int64_t memory, const Mesh& mesh, const Layout& layout) {
    return compile_program(deep.g, mesh, layout, deep.options(memory)).program;
  };
  Array x({{"batch", 64}, {"width", 16}}, DType::kF32);
  for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, static_cast<double>(i * 29 % 31 - 15) / 16);
  for (const auto& [mesh, layout] : {std::pair("", ""), std::pair("data:2 model:2", "batch:data width:model")}) {
    const std::int64_t all = bytes_of(program(0, Mesh::parse(mesh), Layout::parse(layout)));
    const std::int64_t limit = all * 7 / 10;
    const Program lean = program(limit, Mesh::parse(mesh), Layout::parse(layout));
    EXPECT_LE(bytes_of(lean), limit);
    EXPECT_GT(summarize(lean).recomputed_flops, 0);
    Session session(Mesh::parse(mesh), wire::threads(), device::reference());
    const Values want = session.compile(deep.g, Layout::parse(layout), deep.options(0)).run({{deep.x, x}});
    const Values got = session.compile(deep.g, Layout::parse(layout), deep.options(limit)).run({{deep.x, x}});
    EXPECT_EQ(got[deep.loss].item(), want[deep.loss].item());
    EXPECT_EQ(got[deep.grads[0]].values(), want[deep.grads[0]].values());
  }
}

TEST(MemoryLimit, ATransformerFitsInLess) {
  models::Model model = models::build("transformer");
  const std::int64_t all = bytes_of(compile_program(model.graph, model.mesh, model.layout, model.options).program);
  model.options.memory_bytes = all * 9 / 10;
  EXPECT_LE(bytes_of(compile_program(model.graph, model.mesh, model.layout, model.options).program), all * 9 / 10);
}

TEST(MemoryLimit, WhatCannotBeIsRefused) {
  const Deep deep;
  Session session(Mesh::parse(""));
  EXPECT_USER_ERROR(session.compile(deep.g, Layout::parse(""), deep.options(100)),
                    "the variables alone take 2048 bytes of each processor; the memory limit is 100",
                    "use a storage layout, more processors or a higher limit");
  EXPECT_USER_ERROR(session.compile(deep.g, Layout::parse(""), deep.options(2048 + 64)), "the step needs ",
                    " bytes besides its variables, and recomputation cannot bring it to 64",
                    "use microbatches, a storage layout, more processors or a higher limit");
}

}  // namespace
}  // namespace weft::memory_limit_test
