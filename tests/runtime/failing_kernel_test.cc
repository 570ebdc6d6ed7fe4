// A kernel that fails on one processor of many, not the first: every processor ends and all say who it was.
#include <gtest/gtest.h>

#include <stdexcept>

#include "comm/spawn.h"
#include "program/builder.h"
#include "runtime/bound_program.h"
#include "support/expect_error.h"

namespace weft {
namespace {

TEST(FailingKernel, EndsEveryProcessorAndIsNamedByAll) {
  const Mesh mesh = Mesh::parse("rows:2 cols:3");
  const Shape shape{{"a", 4}};
  Sharding pending = unsplit(shape);
  pending.partial = {0, 1};
  Builder b(mesh);
  const ValueId x = b.input("x", {DType::kF32, shape, pending});
  b.begin("copied", {Phase::kForward, {"model.cc:12 copy"}});
  b.output("y", b.all_reduce(b.emit_one(Copy{}, {x}, b.type(x)), {0, 1}));
  const Program program = std::move(b).finish();

  Engine engine = reference_engine();
  engine.makers[Copy::kName] = [](const KernelArgs& args) -> Kernel {
    return [p = args.processor](const StepState&) {
      if (p == 4) throw std::runtime_error("the disk is full");
    };
  };
  const std::unique_ptr<comm::Wire> wire = comm::make_threads_wire(6);
  std::vector<std::unique_ptr<BoundProgram>> all;  // bound before any runs: an aborted wire takes no one in
  for (int p = 0; p < 6; ++p)
    all.push_back(std::make_unique<BoundProgram>(program, p, *wire, engine, std::map<ValueId, void*>()));
  comm::on_every_processor(*wire, [&](int p) {
    BoundProgram& bound = *all[static_cast<std::size_t>(p)];
    EXPECT_RUN_ERROR(bound.run({.deadline = std::chrono::seconds(60)}), "the disk is full", "processor 4",
                     "rows=1 cols=1");
    if (p != 4) return;
    EXPECT_RUN_ERROR(bound.run({}), "copy of 'copied' failed: the disk is full", "model.cc:12 copy",
                     "fix:   mend the cause above; the session cannot go on and a new one is needed");
  });
}

}  // namespace
}  // namespace weft
