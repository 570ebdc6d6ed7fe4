// What a user reads when a runtime cannot carry out a program.
#include "comm/wire.h"
#include "errors/lines.h"
#include "program/builder.h"
#include "runtime/bound_program.h"

namespace weft {
namespace {

TEST(RuntimeErrors, AllMissingKernelsAreListedOnce) {
  const Shape shape{{"a", 4}};
  const ValueType type{DType::kF32, shape, unsplit(shape)};
  const Mesh mesh = Mesh::parse("p:2");
  Builder b(mesh);
  const ValueId x = b.emit_one(Copy{}, {b.input("x", type)}, type);
  b.output("y", b.map("exp", {b.map("exp", {x}, type)}, type));
  const Program program = std::move(b).finish();
  const std::unique_ptr<comm::Wire> wire = comm::make_threads_wire(2);
  EXPECT_USER_ERROR(BoundProgram(program, 0, *wire, Engine{"abacus", {}, {}, {}}, {}),
                    test::lines("the runtime 'abacus' has no kernel for: copy, map", "program for mesh p:2",
                                "use device::reference(), which has them all"));
}

}  // namespace
}  // namespace weft
