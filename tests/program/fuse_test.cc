// Passes fuse and hoist_updates, and what the memory plan makes of their results. The mesh is data:2 model:4 one:1.
#include <gmock/gmock.h>

#include "base/str.h"
#include "program/memory_plan.h"
#include "program/passes/passes.h"
#include "program/pipeline.h"
#include "program/program_text.h"

namespace weft::fuse_test {
namespace {

using test::is_program;
using test::program_of;

constexpr FusingRules kAll{.maps = true, .reductions = true};

Program fused(const std::string& lines, const FusingRules& rules = kAll) {
  return fuse(program_of(lines), {.target = {.fusing = rules}});
}

#define EXPECT_FUSES(before, after) EXPECT_TRUE(is_program(fused(before), after))

TEST(Fuse, MapsThatHandOnTheirResults) {
  EXPECT_FUSES(R"(
input x %0 f32 [a=8 b=8]
%1 f32 [a=8 b=8] = map %0 expr=exp($0)
%2 f32 [a=8 b=8] = map %1, %0 expr=multiply($0, $1)
output o %2)",
               R"(
input x %0 f32 [a=8 b=8]
%2 f32 [a=8 b=8] = fused %0
  input in0 %0 f32 [a=8 b=8]
  %1 f32 [a=8 b=8] = map %0 expr=exp($0)
  %2 f32 [a=8 b=8] = map %1, %0 expr=multiply($0, $1)
  output out0 %2
  end
output o %2)");
}

TEST(Fuse, ASoftmaxIsOneSweep) {
  EXPECT_FUSES(R"(
input x %0 f32 [a=8 b=8]
%1 f32 [a=8] = reduce %0 how=max
%2 f32 [a=8 b=8] = map %0, %1 expr=exp(subtract($0, $1))
%3 f32 [a=8] = reduce %2 how=sum
%4 f32 [a=8 b=8] = map %2, %3 expr=divide($0, $1)
output o %4)",
               R"(
input x %0 f32 [a=8 b=8]
%4 f32 [a=8 b=8] = fused %0
  input in0 %0 f32 [a=8 b=8]
  %1 f32 [a=8] = reduce %0 how=max
  %2 f32 [a=8 b=8] = map %0, %1 expr=exp(subtract($0, $1))
  %3 f32 [a=8] = reduce %2 how=sum
  %4 f32 [a=8 b=8] = map %2, %3 expr=divide($0, $1)
  output out0 %4
  end
output o %4)");
}

// The sum over rows is known after the sweep only, so what needs it is another one.
TEST(Fuse, WhatWaitsForAllRowsIsAnotherSweep) {
  const Program p = fused(R"(
input x %0 f32 [a=8 b=8]
%1 f32 [a=8 b=8] = map %0 expr=exp($0)
%2 f32 [b=8] = reduce %1 how=sum
%3 f32 [a=8 b=8] = map %1, %2 expr=divide($0, $1)
output o %3)");
  ASSERT_EQ(p.body.size(), 2u);
  EXPECT_EQ(p.body[0].outputs.size(), 2u);
  EXPECT_TRUE(p.body[0].is<Fused>());
  EXPECT_TRUE(p.body[1].is<Map>());
}

TEST(Fuse, WhatAnotherInstructionReadsInBetweenEndsAGroup) {
  const Program p = fused(R"(
input x %0 f32 [a=8 b=8]
%1 f32 [a=8 b=8] = map %0 expr=exp($0)
%2 f32 [a=8 b=8] = map %1 expr=sqrt($0)
%3 f32 [b=8 a=8] = copy %2
%4 f32 [a=8 b=8] = map %2 expr=log($0)
%5 f32 [b=8 a=8] = map %3 expr=log($0)
output o %4
output q %5)");
  ASSERT_EQ(p.body.size(), 4u);
  EXPECT_TRUE(p.body[0].is<Fused>());
  EXPECT_TRUE(p.body[1].is<Copy>());
}

TEST(Fuse, SharesALargeOperandButNotOverHeavyWork) {
  const auto sweeps = [](const std::string& between) {
    return fused(str(R"(
input x %0 f32 [a=8 b=8]
%1 f32 [a=8 b=8] = map %0 expr=exp($0)
)",
                     between, R"(%3 f32 [a=8 b=8] = map %0 expr=log($0)
output o %1
output q %3)"))
        .body.size();
  };
  EXPECT_EQ(sweeps(""), 1u);
  EXPECT_EQ(sweeps("%2 f32 [b=8 a=8] = copy %0\n"), 3u);
}

TEST(Fuse, KeepsRecomputationsApart) {
  EXPECT_EQ(fused(R"(
input x %0 f32 [a=8 b=8]
%1 f32 [a=8 b=8] = map %0 expr=exp($0)  @recompute#1
%2 f32 [a=8 b=8] = map %1 expr=log($0)  @recompute#2
output o %2)")
                .body.size(),
            2u);
}

TEST(Fuse, OnlyForRuntimesThatHaveIt) {
  const std::string lines = R"(
input x %0 f32 [a=8 b=8]
%1 f32 [a=8 b=8] = map %0 expr=exp($0)
%2 f32 [a=8 b=8] = map %1 expr=log($0)
output o %2)";
  EXPECT_TRUE(is_program(fuse(program_of(lines), {}), lines));
}

// --- widen_products and contract_to_sum ---

TEST(WidenProducts, WhereTheResultIsOnlyCast) {
  EXPECT_TRUE(is_program(widen_products(program_of(R"(
input x %0 bf16 [a=8 b=8]
input y %1 bf16 [a=8 c=8]
%2 bf16 [b=8 c=8] = contract %0, %1
%3 f32 [b=8 c=8] = map %2 expr=cast<f32>($0)
output o %3)"),
                                        {}),
                         R"(
input x %0 bf16 [a=8 b=8]
input y %1 bf16 [a=8 c=8]
%2 f32 [b=8 c=8] = contract %0, %1
output o %2)"));
}

TEST(WidenProducts, NotWhereTheNarrowResultIsUsed) {
  const std::string lines = R"(
input x %0 bf16 [a=8 b=8]
input y %1 bf16 [a=8 c=8]
%2 bf16 [b=8 c=8] = contract %0, %1
%3 f32 [b=8 c=8] = map %2 expr=cast<f32>($0)
%4 bf16 [b=8 c=8] = map %2 expr=exp($0)
output o %3
output p %4)";
  EXPECT_TRUE(is_program(widen_products(program_of(lines), {}), lines));
}

// The result is larger than both operands: the cast is left to what reads it, and a gather picks before it.
TEST(WidenProducts, NotLargeResultsWhereTheTargetWritesThemNarrow) {
  EXPECT_TRUE(is_program(widen_products(program_of(R"(
input x %0 bf16 [b=8 k=2]
input y %1 bf16 [c=8 k=2]
input i %2 i32 [b=8]
%3 bf16 [b=8 c=8] = contract %0, %1
%4 f32 [b=8 c=8] = map %3 expr=cast<f32>($0)
%5 f32 [b=8] = gather %4, %2 dim=c
%6 f32 [b=8 c=8] = map %4 expr=exp($0)
output o %5
output p %6)"),
                                        {.target = {.widens_large_products = false}}),
                         R"(
input x %0 bf16 [b=8 k=2]
input y %1 bf16 [c=8 k=2]
input i %2 i32 [b=8]
%3 bf16 [b=8 c=8] = contract %0, %1
%4 f32 [b=8 c=8] = map %3 expr=cast<f32>($0)
%7 bf16 [b=8] = gather %3, %2 dim=c
%5 f32 [b=8] = map %7 expr=cast<f32>($0)
%6 f32 [b=8 c=8] = map %4 expr=exp($0)
output o %5
output p %6)"));
}

TEST(ContractToSum, WhereNoOperandHasDimsOfItsOwn) {
  EXPECT_TRUE(is_program(contract_to_sum(program_of(R"(
input x %0 f32 [a=4 b=8] {a:data}
input y %1 f32 [a=4 b=8] {a:data}
%2 f32 [b=8] {| sum:data} = contract %0, %1
%3 f32 [b=8] = all_reduce %2 how=sum axes=data
%4 f32 [a=4] {a:data} = contract %0, %1
output o %3
output p %4)"),
                                         {.target = {.fusing = kAll}}),
                         R"(
input x %0 f32 [a=4 b=8] {a:data}
input y %1 f32 [a=4 b=8] {a:data}
%2 f32 [a=4 b=8] {a:data} = map %0, %1 expr=multiply($0, $1)
%3 f32 [b=8] {| sum:data} = reduce %2 how=sum
%6 f32 [b=8] = all_reduce %3 how=sum axes=data
%4 f32 [a=4 b=8] {a:data} = map %0, %1 expr=multiply($0, $1)
%5 f32 [a=4] {a:data} = reduce %4 how=sum
output o %6
output p %5)"));
}

// Each engine says what it takes as one instruction.
TEST(Fuse, HonoursTheRulesOfTheEngine) {
  const std::string lines = R"(
input x %0 f32 [a=8 b=8]
input y %1 f32 [a=8 b=8]
input z %2 f32 [a=8 b=8]
%3 f32 [a=8 b=8] = map %0, %1 expr=multiply($0, $1)
%4 f32 [a=8 b=8] = map %3, %2 expr=add($0, $1)
%5 f32 [a=8 b=8] = map %4 expr=exp($0)
%6 f32 [a=8] = reduce %5 how=sum
output o %6)";
  const auto members = [&](const FusingRules& rules) {
    std::vector<std::size_t> sizes;
    for (const Instr& instr : fused(lines, rules).body)
      sizes.push_back(instr.is<Fused>() ? body_of(instr)->body.size() : 1);
    return sizes;
  };
  EXPECT_THAT(members(kAll), testing::ElementsAre(4));
  EXPECT_THAT(members({}), testing::ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(members({.maps = true}), testing::ElementsAre(3, 1));
  EXPECT_THAT(members({.maps = true, .reductions = true, .most_members = 3}), testing::ElementsAre(3, 1));
  EXPECT_THAT(members({.maps = true, .reductions = true, .most_inputs = 2}), testing::ElementsAre(1, 3));
}

TEST(ContractToSum, OnlyForEnginesThatFuseReductions) {
  const std::string lines = R"(
input x %0 f32 [a=4 b=8]
input y %1 f32 [a=4 b=8]
%2 f32 [b=8] = contract %0, %1
output o %2)";
  EXPECT_TRUE(is_program(contract_to_sum(program_of(lines), {.target = {.fusing = {.maps = true}}}), lines));
}

TEST(ContractToSum, MatricesStay) {
  const std::string lines = R"(
input x %0 f32 [a=8 b=8]
input y %1 f32 [b=8 c=8]
input v %2 f32 [b=8]
%3 f32 [a=8 c=8] = contract %0, %1
%4 f32 [a=8] = contract %0, %2
output o %3
output p %4)";
  EXPECT_TRUE(is_program(contract_to_sum(program_of(lines), {.target = {.fusing = kAll}}), lines));
}

// --- hoist_updates ---

TEST(HoistUpdates, ToWhereTheGradientIs) {
  EXPECT_TRUE(is_program(hoist_updates(program_of(R"(
variable w %0 f32 [a=8] trainable update=%5
variable v %1 f32 [a=8] trainable update=%6
input x %2 f32 [a=8]
%3 f32 [a=8] = map %0, %2 expr=multiply($0, $1)  @backward
%4 f32 [a=8] = map %3, %1 expr=multiply($0, $1)  @backward
%5 f32 [a=8] = map %0, %3 expr=subtract($0, $1)  @update
%6 f32 [a=8] = map %1, %4 expr=subtract($0, $1)  @update
)"),
                                       {}),
                         R"(
variable w %0 f32 [a=8] trainable update=%5
variable v %1 f32 [a=8] trainable update=%6
input x %2 f32 [a=8]
%3 f32 [a=8] = map %0, %2 expr=multiply($0, $1)  @backward
%5 f32 [a=8] = map %0, %3 expr=subtract($0, $1)  @update
%4 f32 [a=8] = map %3, %1 expr=multiply($0, $1)  @backward
%6 f32 [a=8] = map %1, %4 expr=subtract($0, $1)  @update)"));
}

TEST(HoistUpdates, BehindAllWhoReadTheVariable) {
  const std::string lines = R"(
variable w %0 f32 [a=8] trainable update=%3
input x %1 f32 [a=8]
%2 f32 [a=8] = map %0, %1 expr=multiply($0, $1)  @backward
%3 f32 [a=8] = map %0, %1 expr=subtract($0, $1)  @update
output o %2)";
  EXPECT_TRUE(is_program(hoist_updates(program_of(lines), {}), lines));
}

TEST(HoistUpdates, NotBehindACollective) {
  const std::string lines = R"(
variable w %0 f32 [a=8] trainable update=%4
input x %1 f32 [a=8] {| sum:data}
%2 f32 [a=8] = all_reduce %1 how=sum axes=data  @backward
%3 f32 [a=8] = map %0 expr=exp($0)  @backward
%4 f32 [a=8] = map %0, %2 expr=subtract($0, $1)  @update
output o %3)";
  EXPECT_TRUE(is_program(hoist_updates(program_of(lines), {}), lines));
}

// --- the memory plan ---

TEST(UpdatesInPlace, LieOverOldContentsThatNobodyReadsLater) {
  const Program p = program_of(R"(
variable w %0 f32 [a=8] trainable update=%2
input x %1 f32 [a=8]
%2 f32 [a=8] = map %0, %1 expr=subtract($0, $1)  @update
)");
  const MemoryPlan plan = plan_memory(p);
  EXPECT_EQ(plan.over, (std::map<ValueId, ValueId>{{ValueId(2), ValueId(0)}}));
  EXPECT_EQ(plan.arena_bytes, 64);  // x alone
}

TEST(UpdatesInPlace, AnyInstructionBehindTheLastUse) {
  EXPECT_EQ(plan_memory(program_of(R"(
variable w %0 f32 [a=8] trainable update=%3
%1 f32 [a=4] {a:data} = shard %0 dim=a axes=data
%2 f32 [a=4] {a:data} = map %1 expr=exp($0)  @update
%3 f32 [a=8] = all_gather %2 dim=a axes=data  @update
)"))
                .over,
            (std::map<ValueId, ValueId>{{ValueId(3), ValueId(0)}}));
}

TEST(UpdatesInPlace, NotWhereOldContentsAreStillRead) {
  EXPECT_TRUE(plan_memory(program_of(R"(
variable w %0 f32 [a=8] trainable update=%2
input x %1 f32 [a=8]
%2 f32 [a=8] = map %0, %1 expr=subtract($0, $1)  @update
%3 f32 [a=8] = map %0 expr=exp($0)
output o %3)"))
                  .over.empty());
  EXPECT_TRUE(plan_memory(program_of(R"(
variable w %0 f32 [a=8] trainable update=%2
input x %1 f32 [a=8]
%2 f32 [a=8] = map %0, %1 expr=subtract($0, $1)  @update
output o %0)"))
                  .over.empty());
}

TEST(UpdatesInPlace, NotWhereAViewReadsInAnotherOrder) {
  EXPECT_TRUE(plan_memory(program_of(R"(
variable w %0 f32 [a=8 b=8] trainable update=%2
%1 f32 [b=8 a=8] = view %0 offset=0 strides=[1 8]
%2 f32 [a=8 b=8] = map %0, %1 expr=subtract($0, $1)  @update
)"))
                  .over.empty());
}

}  // namespace
}  // namespace weft::fuse_test
