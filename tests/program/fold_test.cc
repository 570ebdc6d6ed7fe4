// Passes fold, merge_common and drop_dead_code: text in, text out.
#include <gmock/gmock.h>

#include "program/passes/passes.h"
#include "program/pipeline.h"
#include "program/program_text.h"

namespace weft::fold_test {
namespace {

using test::is_program;
using test::program_of;

const std::string kX = R"(
input x %0 f32 [a=4 b=8]
input s %90 f32 [a=4 b=8] {a:data}
input ps %91 f32 [a=4 b=8] {| sum:one}
)";

Program folded(const std::string& lines) { return drop_dead_code(fold(program_of(kX + lines), {}), {}); }

#define EXPECT_FOLDS(before, after) EXPECT_TRUE(is_program(folded(before), kX + (after)))
#define EXPECT_FOLDS_NOT(lines) EXPECT_TRUE(is_program(folded(lines), kX + (lines)))

TEST(Fold, LiteralsEnterTheirConsumers) {
  EXPECT_FOLDS(R"(
%1 f32 [] = map expr=0.5:f32
%2 f32 [a=4 b=8] = map %0, %1 expr=multiply($0, $1)
output y %2)",
               R"(
%2 f32 [a=4 b=8] = map %0 expr=multiply($0, 0.5:f32)
output y %2)");
  EXPECT_FOLDS(R"(
%1 f32 [] = map expr=0.5:f32
%2 f32 [a=4 b=8] = map %1, %0 expr=subtract($0, $1)
output y %2)",
               R"(
%2 f32 [a=4 b=8] = map %0 expr=subtract(0.5:f32, $0)
output y %2)");
  EXPECT_FOLDS_NOT(R"(
%1 f32 [b=8 c=2] = map expr=0.5:f32
%2 f32 [a=4 c=2] = contract %0, %1
output y %2)");
}

TEST(Fold, LiteralsAreComputed) {
  const auto one = [](const char* from, const char* to) {
    EXPECT_FOLDS(std::string("%1 f32 [] = map expr=") + from + "\noutput y %1",
                 std::string("%1 f32 [] = map expr=") + to + "\noutput y %1");
  };
  one("add(1:f32, multiply(2:f32, 3:f32))", "7:f32");
  one("divide(1:f32, 3:f32)", "0.3333333432674408:f32");
  one("negative(subtract(1:f32, 4:f32))", "3:f32");
  one("add(0.1:f32, 0.2:f32)", "0.30000001192092896:f32");
  one("cast<f32>(cast<bf16>(1.001:f32))", "1:f32");
  one("cast<f32>(add(2:i32, 3:i32))", "5:f32");
  one("cast<f32>(multiply(100000:i32, 100000:i32))", "1410065408:f32");  // integers wrap
  one("cast<f32>(add(200:u8, 100:u8))", "44:f32");
  one("cast<f32>(subtract(3:u32, 4:u32))", "4294967296:f32");
  one("cast<f32>(cast<u8>(300:i32))", "44:f32");
  one("cast<f32>(cast<i32>(4294967295:u32))", "-1:f32");
  one("cast<f32>(subtract(9007199254740993:i64, 9007199254740992:i64))", "1:f32");
  one("cast<f32>(9007199254740993:i64)", "cast<f32>(9007199254740993:i64)");  // might round twice
  one("exp(1:f32)", "exp(1:f32)");                                            // the runtime's own
  one("divide(1:f32, 0:f32)", "inf:f32");
}

TEST(Fold, WhatChangesNothingGoes) {
  for (const char* idle :
       {"multiply($0, 1:f32)", "multiply(1:f32, $0)", "add($0, 0:f32)", "add(0:f32, $0)", "subtract($0, 0:f32)",
        "divide($0, 1:f32)", "negative(negative($0))", "cast<f32>($0)", "identity($0)"})
    EXPECT_FOLDS(
        std::string("%1 f32 [a=4 b=8] = map %0 expr=") + idle + "\n%2 f32 [a=4 b=8] = map %1 expr=exp($0)\noutput y %2",
        R"(
%2 f32 [a=4 b=8] = map %0 expr=exp($0)
output y %2)");
  for (const char* busy :
       {"multiply($0, 0:f32)", "subtract(0:f32, $0)", "divide(1:f32, $0)", "cast<f32>(cast<bf16>($0))"})
    EXPECT_FOLDS_NOT(std::string("%1 f32 [a=4 b=8] = map %0 expr=") + busy + "\noutput y %1");
}

TEST(Fold, IdleMapsThatGainDimsOrOrderStay) {
  EXPECT_FOLDS_NOT(R"(
%1 f32 [a=4 b=8 c=2] = map %0 expr=$0
output y %1)");
  EXPECT_FOLDS(R"(
%1 f32 [b=8 a=4] = map %0 expr=identity($0)
output y %1)",
               R"(
%1 f32 [b=8 a=4] = copy %0
output y %1)");
  EXPECT_FOLDS_NOT(R"(
%1 f32 [a=4 b=8] {| sum:data} = map %0 expr=$0
%2 f32 [a=4 b=8] = all_reduce %1 how=sum axes=data
output y %2)");
}

TEST(Fold, Copies) {
  const std::string e = "%9 f32 [a=4 b=8] = map %0 expr=exp($0)\n";
  EXPECT_FOLDS(e + R"(
%1 f32 [a=4 b=8] = copy %9
output y %1)",
               e + "output y %9");
  EXPECT_FOLDS_NOT(R"(
%1 f32 [a=4 b=8] = copy %0
output y %1)");  // an output is not an input's storage
  EXPECT_FOLDS_NOT(R"(
%1 f32 [b=8 a=4] = copy %0
output y %1)");
  EXPECT_FOLDS_NOT(R"(
%1 f32 [b=8 a=4] = view %0 offset=0 strides=[1 8]
%2 f32 [b=8 a=4] = copy %1
output y %2)");
}

TEST(Fold, ViewsOfViews) {
  EXPECT_FOLDS(R"(
%1 f32 [a=2 b=8] = view %0 offset=8 strides=[8 1]
%2 f32 [b=4 a=2] = view %1 offset=2 strides=[2 8]
%3 f32 [b=4 a=2] = copy %2
output y %3)",
               R"(
%2 f32 [b=4 a=2] = view %0 offset=10 strides=[2 8]
%3 f32 [b=4 a=2] = copy %2
output y %3)");
  EXPECT_FOLDS(R"(
%1 f32 [b=8 a=4] = view %0 offset=0 strides=[1 8]
%2 f32 [a=4 b=8] = view %1 offset=0 strides=[8 1]
%3 f32 [a=4 b=8] = map %2 expr=exp($0)
output y %3)",
               R"(
%3 f32 [a=4 b=8] = map %0 expr=exp($0)
output y %3)");
  EXPECT_FOLDS_NOT(R"(
%1 f32 [a=2 b=8] {a:data} = shard %0 dim=a axes=data
%2 f32 [a=1 b=8] {a:data} = view %1 offset=8 strides=[8 1]
%3 f32 [a=1 b=8] {a:data} = copy %2
output y %3)");
}

TEST(Fold, CollectivesAlongOneProcessor) {
  EXPECT_FOLDS(R"(
%1 f32 [a=4 b=8] = all_reduce %91 how=sum axes=one
%2 f32 [a=4 b=8] = map %1 expr=exp($0)
output y %2)",
               R"(
%1 f32 [a=4 b=8] = view %91 offset=0 strides=[8 1]
%2 f32 [a=4 b=8] = map %1 expr=exp($0)
output y %2)");
  EXPECT_FOLDS(R"(
%1 f32 [a=4 b=8] {a:one} = shard %0 dim=a axes=one
%2 f32 [a=4 b=8] = all_gather %1 dim=a axes=one
%3 f32 [a=4 b=8] = permute %2 axes=one to=[0]
%4 f32 [a=4 b=8] = map %3 expr=exp($0)
output y %4)",
               R"(
%4 f32 [a=4 b=8] = map %0 expr=exp($0)
output y %4)");
  // A view of the result counts on its dense strides.
  EXPECT_FOLDS(R"(
%1 f32 [b=8 a=4] {| sum:one} = view %91 offset=0 strides=[1 8]
%2 f32 [b=8 a=4] = all_reduce %1 how=sum axes=one
%3 f32 [n=32] = view %2 offset=0 strides=[1]
%4 f32 [n=32] = map %3 expr=exp($0)
output y %4)",
               R"(
%1 f32 [b=8 a=4] = view %91 offset=0 strides=[1 8]
%2 f32 [b=8 a=4] = copy %1
%3 f32 [n=32] = view %2 offset=0 strides=[1]
%4 f32 [n=32] = map %3 expr=exp($0)
output y %4)");
  EXPECT_FOLDS_NOT(R"(
%1 f32 [a=8 b=8] = all_gather %90 dim=a axes=data
output y %1)");
  EXPECT_FOLDS_NOT(R"(
%1 f32 [a=4 b=8] = permute %0 axes=one to=[-1]
output y %1)");  // zeros
}

// --- merge_common ---

Program merged(const std::string& lines) { return merge_common(program_of(kX + lines), {}); }

TEST(MergeCommon, EqualWorkIsDoneOnce) {
  EXPECT_TRUE(is_program(merged(R"(
%1 f32 [a=4 b=8] = map %0 expr=exp($0)
%2 f32 [a=4 b=8] = map %0 expr=exp($0)
%3 f32 [a=4 b=8] = map %1, %2 expr=add($0, $1)
output y %3)"),
                         kX + R"(
%1 f32 [a=4 b=8] = map %0 expr=exp($0)
%3 f32 [a=4 b=8] = map %1, %1 expr=add($0, $1)
output y %3)"));
  // Through what was merged before, collectives and random draws included.
  EXPECT_TRUE(is_program(merged(R"(
%1 f32 [a=8 b=8] = all_gather %90 dim=a axes=data
%2 f32 [a=8 b=8] = all_gather %90 dim=a axes=data
%3 f32 [a=8 b=8] = random distribution=uniform a=0 b=1 key=7
%4 f32 [a=8 b=8] = random distribution=uniform a=0 b=1 key=7
%5 f32 [a=8 b=8] = map %1, %3 expr=add($0, $1)
%6 f32 [a=8 b=8] = map %2, %4 expr=add($0, $1)
output y %5
output z %6)"),
                         kX + R"(
%1 f32 [a=8 b=8] = all_gather %90 dim=a axes=data
%3 f32 [a=8 b=8] = random distribution=uniform a=0 b=1 key=7
%5 f32 [a=8 b=8] = map %1, %3 expr=add($0, $1)
output y %5
output z %5)"));
  EXPECT_TRUE(is_program(merged(R"(
%1 f32 [a=4] = contract %0, %90
%2 f32 [a=4] = contract %90, %0
output y %1
output z %2)"),
                         kX + R"(
%1 f32 [a=4] = contract %0, %90
output y %1
output z %1)"));
}

TEST(MergeCommon, UnlikeWorkStays) {
  for (const char* lines : {R"(
%1 f32 [a=4 b=8] = map %0 expr=exp($0)
%2 f32 [b=8 a=4] = map %0 expr=exp($0)
output y %1
output z %2)",
                            R"(
%1 f32 [a=4] = random distribution=uniform a=0 b=1 key=7
%2 f32 [a=4] = random distribution=uniform a=0 b=1 key=8
output y %1
output z %2)",
                            R"(
%1 f32 [a=4 b=8] = map %0, %90 expr=subtract($0, $1)
%2 f32 [a=4 b=8] = map %90, %0 expr=subtract($0, $1)
output y %1
output z %2)",
                            R"(
%1 f32 [a=4 b=8] = map %0 expr=exp($0) @forward
%2 f32 [a=4 b=8] = map %0 expr=exp($0) @recompute#1
output y %1
output z %2)",
                            R"(
host %0 what=print text=x
host %0 what=print text=x)"})
    EXPECT_TRUE(is_program(merged(lines), kX + lines));
}

TEST(MergeCommon, TheLaterPhaseAndAllCauses) {
  const Program p = merged(R"(
%1 f32 [a=4 b=8] = map %0 expr=exp($0) @forward "a" "b"
%2 f32 [a=4 b=8] = map %0 expr=exp($0) @backward "b" "c"
output y %1
output z %2)");
  ASSERT_EQ(p.body.size(), 1u);
  EXPECT_EQ(p.body[0].origin.phase, Phase::kBackward);
  EXPECT_THAT(p.body[0].origin.causes, testing::ElementsAre("a", "b", "c"));
}

// --- drop_dead_code ---

TEST(DropDeadCode, KeepsWhatIsNeeded) {
  const Program p = drop_dead_code(program_of(R"(
input x %7 f32 [a=4]
variable w %3 f32 [a=4] trainable update=%10
%9 f32 [a=4] = map %7 expr=exp($0)
%10 f32 [a=4] = map %3, %7 expr=add($0, $1)
%11 f32 [a=4] = map %9 expr=exp($0)
%12 f32 [a=4] = map %7 expr=log($0)
host %12 what=print text=x
%14 f32 [a=4] = map %7 expr=sin($0)
output y %14)"),
                                   {});
  EXPECT_TRUE(is_program(p, R"(
input x %0 f32 [a=4]
variable w %1 f32 [a=4] trainable update=%2
%2 f32 [a=4] = map %1, %0 expr=add($0, $1)
%3 f32 [a=4] = map %0 expr=log($0)
host %3 what=print text=x
%4 f32 [a=4] = map %0 expr=sin($0)
output y %4)"));
  EXPECT_EQ(p.values.size(), 5u);  // numbered anew
}

TEST(DropDeadCode, MembersOfAJoinedReduction) {
  const std::string in = R"(
input a %0 f32 [a=4] {| sum:data}
input b %1 f32 [a=4] {| sum:data}
)";
  EXPECT_TRUE(is_program(drop_dead_code(program_of(in + R"(
%2 f32 [a=4], %3 f32 [a=4] = all_reduce %0, %1 how=sum axes=data
output y %3)"),
                                        {}),
                         in + R"(
%3 f32 [a=4] = all_reduce %1 how=sum axes=data
output y %3)"));
  EXPECT_TRUE(is_program(
      drop_dead_code(program_of(in + "%2 f32 [a=4], %3 f32 [a=4] = all_reduce %0, %1 how=sum axes=data"), {}), in));
}

}  // namespace
}  // namespace weft::fold_test
