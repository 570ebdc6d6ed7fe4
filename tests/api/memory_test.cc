// Planned memory on whole models: no two values that live together overlap, and the plan is near the least possible.
#include <gtest/gtest.h>

#include "support/compile.h"
#include "program/memory_plan.h"
#include "weft/detail/models.h"

namespace weft::memory_test {
namespace {

struct Case {
  const char *model, *mesh, *layout;
};

class PlannedMemory : public ::testing::TestWithParam<Case> {};

TEST_P(PlannedMemory, IsSoundAndTight) {
  const Case& c = GetParam();
  const models::Model model = models::build(c.model);
  const Program program =
      compile_program(model.graph, Mesh::parse(c.mesh), Layout::parse(c.layout), model.options).program;
  const MemoryPlan plan = plan_memory(program);
  for (std::size_t i = 0; i < plan.storages.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const Storage &a = plan.storages[i], &b = plan.storages[j];
      const bool together = a.first <= b.last && b.first <= a.last;
      const bool apart = a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
      ASSERT_TRUE(!together || apart) << i << " and " << j;
    }
  EXPECT_GE(plan.arena_bytes, plan.live_bytes);
  EXPECT_LE(static_cast<double>(plan.arena_bytes), 1.05 * static_cast<double>(plan.live_bytes));
}

INSTANTIATE_TEST_SUITE_P(Models, PlannedMemory,
                         ::testing::Values(Case{"two_layer", "", ""}, Case{"two_layer", "r:2 c:2", "batch:r hidden:c"},
                                           Case{"mlp", "", ""}, Case{"mlp", "data:2", "batch:data"},
                                           Case{"transformer", "", ""},
                                           Case{"transformer", "data:2 model:4", "batch:data heads,d_ff,vocab:model"}));

}  // namespace
}  // namespace weft::memory_test
