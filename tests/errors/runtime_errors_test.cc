// What a user reads when an engine cannot carry out a program.
#include "errors/lines.h"
#include "program/builder.h"
#include "runtime/host/host_engine.h"

namespace weft::runtime_errors_test {
namespace {

TEST(RuntimeErrors, AllMissingKernelsAreListedOnce) {
  const Shape shape{{"a", 4}};
  const ValueType type{DType::kF32, shape, unsplit(shape)};
  Builder b(Mesh::parse("p:2"));
  const ValueId x = b.emit_one(Copy{}, {b.input("x", type)}, type);
  b.output("y", b.map("exp", {b.map("exp", {x}, type)}, type));
  const Program program = std::move(b).finish();
  EXPECT_USER_ERROR(check_engine(program, HostEngine("abacus", {}, {}, false)),
                    test::lines("the device 'abacus' has no kernel for: copy, map", "program for mesh p:2",
                                "use device::reference(), which has them all"));
}

TEST(RuntimeErrors, OnlyTheCudaEngineHasANondeterministicMode) {
  EXPECT_USER_ERROR(engine_named("cpu", "a test", "", true),
                    test::lines("the device 'cpu' has no nondeterministic mode", "a test",
                                "add --device cuda, or leave --nondeterministic (mesh.nondeterministic) out"));
}

TEST(RuntimeErrors, TheNcclWireJoinsCudaCardsOnly) {
  EXPECT_USER_ERROR(engine_named("cpu", "a test", "", false, true),
                    test::lines("the wire nccl joins CUDA cards, but the device is 'cpu'", "a test",
                                "add --device cuda, or use --wire mpi"));
}

// Opens no plugin, where the engine is in the build.
TEST(RuntimeErrors, TheXlaEngineIsNotInEveryBuild) {
  try {
    engine_named("xla", "a test", "none.so");
    GTEST_SKIP() << "this build has the engine";
  } catch (const UserError&) {
    EXPECT_USER_ERROR(engine_named("xla", "a test", "none.so"),
                      test::lines("the device 'xla' cannot be used: this build of Weft has no XLA engine, because it "
                                  "found no header pjrt_c_api.h",
                                  "a test",
                                  "run scripts/setup where it can reach PyPI, or configure with "
                                  "-DWEFT_PJRT_INCLUDE=FOLDER; then build Weft again"));
  }
}

}  // namespace
}  // namespace weft::runtime_errors_test
