// The memory plan on short programs: who shares storage, and who must not.
#include "program/memory_plan.h"

#include "program/program_text.h"

namespace weft::test::memory_plan_test {
namespace {

bool overlap(const Storage& a, const Storage& b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

TEST(MemoryPlan, ADeadValueGivesItsPlaceAway) {
  const MemoryPlan plan = plan_memory(program_of(R"(input x %0 f32 [a=16 b=16] {}
%1 f32 [a=16] {} = reduce %0 how=sum
%2 f32 [a=16 b=16] {} = map %1 expr=$0
output y %2)"));
  EXPECT_EQ(plan.storages.size(), 3u);
  EXPECT_EQ(plan.storages[0].offset, plan.storages[2].offset);  // y lies where x was
  EXPECT_EQ(plan.arena_bytes, 1024 + 64);
  EXPECT_EQ(plan.live_bytes, 1024 + 64);
}

TEST(MemoryPlan, AMapWritesOverAnOperandThatDies) {
  const MemoryPlan plan = plan_memory(program_of(R"(input x %0 f32 [a=16] {}
%1 f32 [a=16] {} = map %0 expr=exp($0)
%2 f32 [a=16] {} = map %1 expr=exp($0)
output y %2)"));
  EXPECT_EQ(plan.storages.size(), 1u);
  EXPECT_EQ(plan.arena_bytes, 64);
}

TEST(MemoryPlan, AMapKeepsAnOperandThatIsReadLater) {
  const MemoryPlan plan = plan_memory(program_of(R"(input x %0 f32 [a=16] {}
%1 f32 [a=16] {} = map %0 expr=exp($0)
%2 f32 [a=16] {} = map %1, %0 expr=add($0, $1)
output y %2)"));
  EXPECT_NE(plan.storage_of[ValueId(0)], plan.storage_of[ValueId(1)]);
  EXPECT_EQ(plan.arena_bytes, 128);
}

TEST(MemoryPlan, AMapThatReordersDoesNotWriteOverWhatItReads) {
  const MemoryPlan plan = plan_memory(program_of(R"(input x %0 f32 [a=4 b=4] {}
%1 f32 [b=4 a=4] {} = map %0 expr=exp($0)
output y %1)"));
  EXPECT_NE(plan.storage_of[ValueId(0)], plan.storage_of[ValueId(1)]);
}

TEST(MemoryPlan, AMapDoesNotWriteOverAStorageThatAnotherOperandReadsOtherwise) {
  const MemoryPlan plan = plan_memory(program_of(R"(input x %0 f32 [a=4 b=4] {}
%1 f32 [b=4 a=4] {} = view %0 offset=0 strides=[4 1]
%2 f32 [a=4 b=4] {} = map %0, %1 expr=add($0, $1)
output y %2)"));
  EXPECT_NE(plan.storage_of[ValueId(0)], plan.storage_of[ValueId(2)]);
}

// A slice and its root round up to the same number of bytes, but the slice starts elsewhere.
TEST(MemoryPlan, AMapDoesNotWriteOverAPartOfAStorage) {
  const MemoryPlan plan = plan_memory(program_of(R"(input x %0 f32 [a=5] {}
%1 f32 [a=3] {} = view %0 offset=2 strides=[1]
%2 f32 [a=3] {} = map %1 expr=exp($0)
output y %2)"));
  EXPECT_NE(plan.storage_of[ValueId(1)], plan.storage_of[ValueId(2)]);
}

TEST(MemoryPlan, AViewKeepsItsRootAlive) {
  const MemoryPlan plan = plan_memory(program_of(R"(input x %0 f32 [a=16] {}
%1 f32 [a=8] {} = view %0 offset=8 strides=[1]
%2 f32 [a=16] {} = map expr=1:f32
%3 f32 [a=8] {} = map %1 expr=exp($0)
output z %2
output y %3)"));
  EXPECT_EQ(plan.storage_of[ValueId(1)], plan.storage_of[ValueId(0)]);
  EXPECT_FALSE(overlap(plan.storages[0], plan.storages[static_cast<std::size_t>(plan.storage_of[ValueId(2)])]));
}

TEST(MemoryPlan, VariablesAndTheirViewsAreHeldOutside) {
  const MemoryPlan plan = plan_memory(program_of(R"(variable w %0 f32 [a=16] {} trainable
%1 f32 [b=16] {} = view %0 offset=0 strides=[1]
%2 f32 [b=16] {} = map %1 expr=exp($0)
output y %2)"));
  EXPECT_EQ(plan.storage_of[ValueId(0)], MemoryPlan::kExternal);
  EXPECT_EQ(plan.storage_of[ValueId(1)], MemoryPlan::kExternal);
  EXPECT_EQ(plan.arena_bytes, 64);
}

TEST(MemoryPlan, UpdatesLiveToTheEnd) {
  const MemoryPlan plan = plan_memory(program_of(R"(variable w %0 f32 [a=16] {} trainable update=%1
%1 f32 [a=16] {} = map %0 expr=exp($0)
%2 f32 [a=16] {} = map %1, %0 expr=add($0, $1)
output y %2)"));
  EXPECT_NE(plan.storage_of[ValueId(1)], plan.storage_of[ValueId(2)]);
  EXPECT_FALSE(overlap(plan.storages[0], plan.storages[1]));
}

TEST(MemoryPlan, AnAllReduceWorksInPlace) {
  const MemoryPlan plan = plan_memory(program_of(R"(input x %0 f32 [a=16 b=16] {a:data}
%1 f32 [b=16] {| sum:data} = reduce %0 how=sum
%2 f32 [b=16] {} = all_reduce %1 how=sum axes=data
output y %2)"));
  EXPECT_EQ(plan.storage_of[ValueId(1)], plan.storage_of[ValueId(2)]);
}

TEST(MemoryPlan, AlignsEveryPieceAsTheEngineWants) {
  const Program p = program_of(R"(input x %0 f32 [a=5] {}
%1 f32 [a=5] {} = map %0 expr=sin($0)
%2 f32 [] {} = reduce %1 how=sum
output y %1
output z %2)");
  for (const std::int64_t alignment : {16, 256, 4096}) {
    const MemoryPlan plan = plan_memory(p, {.alignment = alignment});
    for (const Storage& storage : plan.storages) {
      EXPECT_EQ(storage.offset % alignment, 0);
      EXPECT_EQ(storage.bytes, aligned_bytes(storage.bytes, alignment));
    }
    EXPECT_EQ(plan.arena_bytes, plan.arena_bytes / alignment * alignment);
    EXPECT_GE(plan.arena_bytes, alignment);
  }
  EXPECT_LT(plan_memory(p, {.alignment = 16}).arena_bytes, plan_memory(p, {.alignment = 256}).arena_bytes);
}

// A kernel's workspace lives while its instruction runs: those of several instructions share memory, with each other and
// with values that do not live meanwhile; a collective's lives until its done.
TEST(MemoryPlan, HasWorkspacesForAsLongAsInstructionsRun) {
  const Program p = program_of(R"(input x %0 f32 [a=16 b=16] {a:data}
%1 f32 [a=32 b=16] {} = all_gather %0 dim=a axes=data
%2 f32 [a=16 b=16] {a:data} = map %0 expr=sin($0)
done %1
%3 f32 [] {} = reduce %1 how=sum
output y %3
output z %2)");
  const MemoryPlan without = plan_memory(p);
  const MemoryPlan plan =
      plan_memory(p, {.workspace_bytes = [](const Program&, const Instr& instr, const auto&) -> std::int64_t {
                    return instr.is<AllGather>() ? 5000 : instr.is<ReduceDims>() ? 3000 : 0;
                  }});
  EXPECT_TRUE(without.workspaces.empty());
  ASSERT_EQ(plan.workspaces.size(), 2u);
  const Storage &gather = plan.storages[static_cast<std::size_t>(plan.workspaces.at(0))],
                &reduce = plan.storages[static_cast<std::size_t>(plan.workspaces.at(3))];
  EXPECT_EQ(gather.bytes, 5056);
  EXPECT_EQ(gather.first, 0);
  EXPECT_EQ(gather.last, 2);
  EXPECT_EQ(reduce.first, 3);
  EXPECT_EQ(reduce.last, 3);
  EXPECT_EQ(plan.live_bytes, without.live_bytes + 5056);
  EXPECT_EQ(plan.arena_bytes, without.arena_bytes + 5056);
  for (const ValueId value : p.values.ids()) {
    const Storage& storage = plan.storages[static_cast<std::size_t>(plan.storage_of[value])];
    EXPECT_TRUE(storage.last < gather.first || storage.first > gather.last ||
                storage.offset + storage.bytes <= gather.offset || gather.offset + gather.bytes <= storage.offset)
        << "value " << value;
  }
}

}  // namespace
}  // namespace weft::test::memory_plan_test
