// What a run needs of the machine's memory is said before it begins; what cannot fit is refused.
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "weft/detail/doctor.h"

namespace weft::memory_text_test {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

TEST(MemoryText, SaysWhatIsNeededAndWhatThereIs) {
  Explanation step;
  step.variable_bytes = 300 * kMiB;
  step.arena_bytes = 100 * kMiB;
  EXPECT_EQ(memory_text(step, 1, {960 * kMiB, 900 * kMiB}), "variables 300 MiB + arena 100 MiB = 400 MiB of 960 MiB");
  EXPECT_EQ(memory_text(step, 2, {}), "2 x (variables 300 MiB + arena 100 MiB) = 800 MiB");
  step.workspace_bytes = 20 * kMiB;
  step.scratch_bytes = 3 * kMiB;
  EXPECT_EQ(memory_text(step, 2, {}),
            "2 x (variables 300 MiB + arena 100 MiB (workspaces 20 MiB of it) + scratch 3 MiB) = 806 MiB");
  step.workspace_bytes = step.scratch_bytes = 0;
  EXPECT_EQ(memory_text(step, 2, {960 * kMiB, 500 * kMiB}),
            "2 x (variables 300 MiB + arena 100 MiB) = 800 MiB of 960 MiB\n"
            "warning: only 500 MiB are available now; the run may be slow or be killed");
}

TEST(MemoryText, RefusesWhatCannotFit) {
  Explanation step;
  step.variable_bytes = 300 * kMiB;
  step.arena_bytes = 100 * kMiB;
  step.mesh = Mesh::parse("p:4");
  step.layout = "batch:p";
  EXPECT_USER_ERROR(memory_text(step, 4, {960 * kMiB, 900 * kMiB}),
                    "the run needs more memory than the 960 MiB of this machine: 4 x (variables 300 MiB + arena "
                    "100 MiB) = 1.56 GiB",
                    "mesh p:4, layout \"batch:p\"",
                    "use a smaller model or batch, microbatches, recomputation (a memory limit), a storage layout, or "
                    "processors on more machines");
}

TEST(MemoryText, FindsTheMemoryOfThisMachine) {
  const MachineMemory machine = machine_memory();
  EXPECT_GT(machine.total, 0);
  EXPECT_GT(machine.available, 0);
  EXPECT_LE(machine.available, machine.total);
}

}  // namespace
}  // namespace weft::memory_text_test
