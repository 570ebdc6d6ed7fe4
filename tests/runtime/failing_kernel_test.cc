// A kernel that fails on one processor of many, not the first: every processor ends and the report says who it was.
#include <gtest/gtest.h>

#include <stdexcept>

#include "program/builder.h"
#include "support/expect_error.h"
#include "support/run_program.h"

namespace weft::failing_kernel_test {
namespace {

TEST(FailingKernel, EndsEveryProcessorAndIsNamed) {
  const Mesh mesh = Mesh::parse("rows:2 cols:3");
  const Shape shape{{"a", 4}};
  Sharding pending = unsplit(shape);
  pending.partial = {0, 1};
  Builder b(mesh);
  const ValueId x = b.input("x", {DType::kF32, shape, pending});
  b.begin("copied", {Phase::kForward, {"model.cc:12 copy"}});
  b.output("y", b.all_reduce(b.emit_one(Copy{}, {x}, b.type(x)), {0, 1}));
  const Program program = std::move(b).finish();

  KernelTable table = reference_engine().table();
  table.kernels[Copy::kName] = [](const KernelArgs& args) -> Kernel {
    return [p = args.processor](const StepState&) {
      if (p == ProcessorId(4)) throw std::runtime_error("the disk is full");
    };
  };
  const HostEngine engine("failing", table, reference_engine().target(), false);
  const test::Shards shards(6, Array(shape, DType::kF32));
  const std::exception_ptr failure = test::run_all(program, {{"x", shards}}, {}, engine).failure;
  ASSERT_TRUE(failure);
  EXPECT_RUN_ERROR(std::rethrow_exception(failure), "copy of 'copied' failed: the disk is full",
                   "processor 4 (rows=1 cols=1)", "model.cc:12 copy",
                   "fix:   fix the cause above and make a new Session; this session is unusable");
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    EXPECT_EQ(error.text().where.text.find("left behind"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace weft::failing_kernel_test
