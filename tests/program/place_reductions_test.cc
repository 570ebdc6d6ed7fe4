// Pass place_reductions: text in, text out. The mesh is data:2 model:4 one:1.
#include <gmock/gmock.h>

#include "program/passes/passes.h"
#include "program/pipeline.h"
#include "program/program_text.h"

namespace weft::place_reductions_test {
namespace {

using test::is_program;
using test::program_of;

const std::string kGiven = R"(
input a %0 f32 [a=4 b=8] {| sum:data}
input b %1 f32 [a=4 b=8] {| sum:data}
input y %2 f32 [a=4 b=8]
input w %3 f32 [b=8 c=2]
input m %4 f32 [a=4 b=8] {| max:data}
input q %5 bool [a=4 b=8]
input s %6 f32 [a=4 b=8] {a:data}
input p2 %7 f32 [a=4 b=8] {| sum:data+model}
input i %8 i64 []
input pm %9 f32 [a=4 b=8] {| sum:model}
)";
const std::string kA = "%20 f32 [a=4 b=8] = all_reduce %0 how=sum axes=data\n";
const std::string kB = "%21 f32 [a=4 b=8] = all_reduce %1 how=sum axes=data\n";

Program placed(const std::string& lines) { return place_reductions(program_of(kGiven + lines), {}); }

#define EXPECT_PLACES(before, after) EXPECT_TRUE(is_program(placed(before), kGiven + (after)))
#define EXPECT_STAYS(lines) EXPECT_TRUE(is_program(placed(lines), kGiven + (lines)))

TEST(PlaceReductions, SinksWhereFewerBytesEnter) {
  EXPECT_PLACES(kA + R"(
%22 f32 [a=4] = reduce %20 how=sum
output o %22)",
                R"(
%22 f32 [a=4] {| sum:data} = reduce %0 how=sum
%23 f32 [a=4] = all_reduce %22 how=sum axes=data
output o %23)");
  EXPECT_PLACES(kA + R"(
%22 f32 [a=4 c=2] = contract %20, %3
output o %22)",
                R"(
%22 f32 [a=4 c=2] {| sum:data} = contract %0, %3
%23 f32 [a=4 c=2] = all_reduce %22 how=sum axes=data
output o %23)");
  EXPECT_PLACES(kA + R"(
%22 f32 [a=2 b=8] = view %20 offset=8 strides=[8 1]
%23 f32 [a=2 b=8] = map %22 expr=exp($0)
output o %23)",
                R"(
%22 f32 [a=2 b=8] {| sum:data} = view %0 offset=8 strides=[8 1]
%24 f32 [a=2 b=8] = all_reduce %22 how=sum axes=data
%23 f32 [a=2 b=8] = map %24 expr=exp($0)
output o %23)");
  EXPECT_PLACES(kA + R"(
%22 f32 [a=4 b=2] {b:model} = shard %20 dim=b axes=model
%23 f32 [a=4 b=2] {b:model} = copy %22
output o %23)",
                R"(
%22 f32 [a=4 b=2] {b:model | sum:data} = shard %0 dim=b axes=model
%24 f32 [a=4 b=2] {b:model} = all_reduce %22 how=sum axes=data
%23 f32 [a=4 b=2] {b:model} = copy %24
output o %23)");
  EXPECT_PLACES(kA + R"(
%22 f32 [a=4 b=1] = dynamic_slice %20, %8 dim=b
output o %22)",
                R"(
%22 f32 [a=4 b=1] {| sum:data} = dynamic_slice %0, %8 dim=b
%23 f32 [a=4 b=1] = all_reduce %22 how=sum axes=data
output o %23)");
}

TEST(PlaceReductions, SinksThroughTiesToASaving) {
  EXPECT_PLACES(kA + R"(
%22 f32 [a=4 b=8] = map %20, %2 expr=multiply($0, $1)
%23 f32 [a=4 b=8] = map %22 expr=negative($0)
%24 f32 [b=8] = reduce %23 how=sum
output o %24)",
                R"(
%22 f32 [a=4 b=8] {| sum:data} = map %0, %2 expr=multiply($0, $1)
%23 f32 [a=4 b=8] {| sum:data} = map %22 expr=negative($0)
%24 f32 [b=8] {| sum:data} = reduce %23 how=sum
%25 f32 [b=8] = all_reduce %24 how=sum axes=data
output o %25)");
  // Also through what is larger on the way.
  EXPECT_PLACES(kA + R"(
%22 f32 [a=4 b=8 c=2] = map %20, %3 expr=multiply($0, $1)
%23 f32 [c=2] = reduce %22 how=sum
output o %23)",
                R"(
%22 f32 [a=4 b=8 c=2] {| sum:data} = map %0, %3 expr=multiply($0, $1)
%23 f32 [c=2] {| sum:data} = reduce %22 how=sum
%24 f32 [c=2] = all_reduce %23 how=sum axes=data
output o %24)");
}

TEST(PlaceReductions, TiesStay) {
  EXPECT_STAYS(kA + R"(
%22 f32 [a=4 b=8] = map %20 expr=multiply($0, 0.5:f32)
output o %22)");
  EXPECT_STAYS(kA + R"(
%22 f32 [b=8 a=4] = copy %20
output o %22)");
  EXPECT_STAYS(kA + R"(
%22 f32 [a=4 b=8 c=2] = map %20 expr=$0
output o %22)");
}

TEST(PlaceReductions, WhatMustNotMove) {
  const std::string reduced = R"(
%23 f32 [a=4] = reduce %22 how=sum
output o %23)";
  for (const std::string& lines : {
           kA + "%22 f32 [a=4 b=8] = map %20 expr=exp($0)\n" + reduced,
           kA + "%22 f32 [a=4 b=8] = map %20, %2 expr=add($0, $1)\n" + reduced,
           kA + "%22 f32 [a=4 b=8] = map %20, %2 expr=divide($1, $0)\n" + reduced,
           kA + R"(
%22 f32 [a=4] = reduce %20 how=sum
output o %22
output p %20)",  // kept
           kA + R"(
%22 f32 [a=4] = reduce %20 how=sum
%23 f32 [b=8] = reduce %20 how=sum
output o %22
output p %23)",
           kA + R"(
%22 f32 [a=4] = reduce %20 how=max
output o %22)",
           // A cast to bf16 rounds: it forces the reduction, though fewer bytes would enter.
           kA + R"(
%22 bf16 [a=4 b=8] = map %20 expr=cast<bf16>($0)
output o %22)",
           // The other operand differs over the axis: by its sharding, or by what it is made of.
           kA + R"(
%22 f32 [a=4 b=8] {a:data} = map %20, %6 expr=multiply($0, $1)
%23 f32 [a=4] {a:data} = reduce %22 how=sum
output o %23)",
           kA + R"(
%25 i64 [] = axis_index axes=data
%26 f32 [] = map %25 expr=cast<f32>($0)
%22 f32 [a=4 b=8] = map %20, %26 expr=multiply($0, $1)
)" + reduced,
           kA + R"(
%25 i64 [] = axis_index axes=data
%22 f32 [a=1 b=8] = dynamic_slice %20, %25 dim=a
output o %22)",
       })
    EXPECT_STAYS(lines);
}

TEST(PlaceReductions, OtherAxesDoNotHinder) {
  EXPECT_PLACES(kA + R"(
%25 i64 [] = axis_index axes=model
%22 f32 [a=1 b=8] = dynamic_slice %20, %25 dim=a
output o %22)",
                R"(
%25 i64 [] = axis_index axes=model
%22 f32 [a=1 b=8] {| sum:data} = dynamic_slice %0, %25 dim=a
%23 f32 [a=1 b=8] = all_reduce %22 how=sum axes=data
output o %23)");
}

TEST(PlaceReductions, TermsAreReducedOnce) {
  EXPECT_PLACES(kA + kB + R"(
%22 f32 [a=4 b=8] = map %20, %21 expr=add($0, $1)
output o %22)",
                R"(
%22 f32 [a=4 b=8] {| sum:data} = map %0, %1 expr=add($0, $1)
%23 f32 [a=4 b=8] = all_reduce %22 how=sum axes=data
output o %23)");
  EXPECT_PLACES(kA + kB + R"(
%22 f32 [a=4 b=8] = map %20 expr=multiply($0, 0.5:f32)
%23 f32 [a=4 b=8] = map %22, %21 expr=subtract($0, $1)
output o %23)",
                R"(
%22 f32 [a=4 b=8] {| sum:data} = map %0 expr=multiply($0, 0.5:f32)
%23 f32 [a=4 b=8] {| sum:data} = map %22, %1 expr=subtract($0, $1)
%24 f32 [a=4 b=8] = all_reduce %23 how=sum axes=data
output o %24)");
  EXPECT_PLACES(kA + kB + R"(
%22 f32 [a=8 b=8] = concat %20, %21 dim=a
output o %22)",
                R"(
%22 f32 [a=8 b=8] {| sum:data} = concat %0, %1 dim=a
%23 f32 [a=8 b=8] = all_reduce %22 how=sum axes=data
output o %23)");
  EXPECT_PLACES(kA + kB + R"(
%22 f32 [a=4 b=8] = map %5, %20, %21 expr=select($0, $1, $2)
output o %22)",
                R"(
%22 f32 [a=4 b=8] {| sum:data} = map %5, %0, %1 expr=select($0, $1, $2)
%23 f32 [a=4 b=8] = all_reduce %22 how=sum axes=data
output o %23)");
  // Not over unlike axes, and of a product only one factor.
  EXPECT_STAYS(kA + R"(
%21 f32 [a=4 b=8] = all_reduce %9 how=sum axes=model
%22 f32 [a=4 b=8] = map %20, %21 expr=add($0, $1)
output o %22)");
  EXPECT_PLACES(kA + kB + R"(
%22 f32 [a=4 b=8] = map %20, %21 expr=multiply($0, $1)
%23 f32 [a=4] = reduce %22 how=sum
output o %23)",
                kB + R"(
%22 f32 [a=4 b=8] {| sum:data} = map %0, %21 expr=multiply($0, $1)
%23 f32 [a=4] {| sum:data} = reduce %22 how=sum
%24 f32 [a=4] = all_reduce %23 how=sum axes=data
output o %24)");
}

TEST(PlaceReductions, SumsAreRegrouped) {
  EXPECT_PLACES(kA + kB + R"(
%22 f32 [a=4 b=8] = map %20, %2 expr=add($0, $1)
%23 f32 [a=4 b=8] = map %22, %21 expr=add($0, $1)
output o %23)",
                R"(
%22 f32 [a=4 b=8] {| sum:data} = map %0, %1 expr=add($0, $1)
%23 f32 [a=4 b=8] = all_reduce %22 how=sum axes=data
%24 f32 [a=4 b=8] = map %23, %2 expr=add($0, $1)
output o %24)");
  // y - AR(a) - AR(b): the group is -(a + b) as two subtractions, the rest is added.
  EXPECT_PLACES(kA + kB + R"(
%22 f32 [a=4 b=8] = map %2, %20 expr=subtract($0, $1)
%23 f32 [a=4 b=8] = map %22, %21 expr=subtract($0, $1)
output o %23)",
                R"(
%22 f32 [a=4 b=8] {| sum:data} = map %0 expr=negative($0)
%23 f32 [a=4 b=8] {| sum:data} = map %22, %1 expr=subtract($0, $1)
%24 f32 [a=4 b=8] = all_reduce %23 how=sum axes=data
%25 f32 [a=4 b=8] = map %24, %2 expr=add($0, $1)
output o %25)");
  // An inner sum that is used elsewhere is a leaf.
  EXPECT_STAYS(kA + kB + R"(
%22 f32 [a=4 b=8] = map %20, %2 expr=add($0, $1)
%23 f32 [a=4 b=8] = map %22, %21 expr=add($0, $1)
output o %23
output p %22)");
}

TEST(PlaceReductions, SumsOverTwoGroupsAreRegroupedForBoth) {
  const std::string m = "input d %30 f32 [a=4 b=8] {| sum:model}\n";
  EXPECT_PLACES(m + kA + R"(
%21 f32 [a=4 b=8] = all_reduce %9 how=sum axes=model
%22 f32 [a=4 b=8] = all_reduce %1 how=sum axes=data
%23 f32 [a=4 b=8] = all_reduce %30 how=sum axes=model
%24 f32 [a=4 b=8] = map %20, %21 expr=add($0, $1)
%25 f32 [a=4 b=8] = map %24, %22 expr=add($0, $1)
%26 f32 [a=4 b=8] = map %25, %23 expr=add($0, $1)
output o %26)",
                m + R"(
%22 f32 [a=4 b=8] {| sum:data} = map %0, %1 expr=add($0, $1)
%23 f32 [a=4 b=8] = all_reduce %22 how=sum axes=data
%24 f32 [a=4 b=8] {| sum:model} = map %9, %30 expr=add($0, $1)
%25 f32 [a=4 b=8] = all_reduce %24 how=sum axes=model
%26 f32 [a=4 b=8] = map %25, %23 expr=add($0, $1)
output o %26)");
}

TEST(PlaceReductions, MaximaAreNotSummedTogether) {
  EXPECT_STAYS(R"(
input n %30 f32 [a=4 b=8] {| max:data}
%20 f32 [a=4 b=8] = all_reduce %4 how=max axes=data
%21 f32 [a=4 b=8] = all_reduce %30 how=max axes=data
%22 f32 [a=4 b=8] = map %20, %2 expr=add($0, $1)
%23 f32 [a=4 b=8] = map %22, %21 expr=add($0, $1)
output o %23)");
}

TEST(PlaceReductions, MaximaSinkThroughMaxima) {
  const std::string m = "%20 f32 [a=4 b=8] = all_reduce %4 how=max axes=data\n";
  EXPECT_PLACES(m + R"(
%22 f32 [a=4] = reduce %20 how=max
output o %22)",
                R"(
%22 f32 [a=4] {| max:data} = reduce %4 how=max
%23 f32 [a=4] = all_reduce %22 how=max axes=data
output o %23)");
  EXPECT_PLACES(m + R"(
%22 f32 [a=4 b=8] = map %20 expr=exp($0)
%23 f32 [a=4] = reduce %22 how=max
output o %23)",
                R"(
%22 f32 [a=4 b=8] {| max:data} = map %4 expr=exp($0)
%23 f32 [a=4] {| max:data} = reduce %22 how=max
%24 f32 [a=4] = all_reduce %23 how=max axes=data
output o %24)");
  EXPECT_STAYS(m + R"(
%22 f32 [a=4] = reduce %20 how=sum
output o %22)");
  EXPECT_STAYS(m + R"(
%22 f32 [a=4 b=8] = map %20 expr=log($0)
%23 f32 [a=4] = reduce %22 how=max
output o %23)");  // nan
}

TEST(PlaceReductions, NestedReductionsJoin) {
  EXPECT_PLACES(R"(
%20 f32 [a=4 b=8] {| sum:model} = all_reduce %7 how=sum axes=data
%21 f32 [a=4 b=8] = all_reduce %20 how=sum axes=model
output o %21)",
                R"(
%21 f32 [a=4 b=8] = all_reduce %7 how=sum axes=data+model
output o %21)");
  // A sum over a split dim adds an axis on the way down.
  const std::string x = "input z %30 f32 [a=4 b=8] {a:model | sum:data}\n";
  EXPECT_PLACES(x + R"(
%31 f32 [a=4 b=8] {a:model} = all_reduce %30 how=sum axes=data
%32 f32 [b=8] {| sum:model} = reduce %31 how=sum
%33 f32 [b=8] = all_reduce %32 how=sum axes=model
output o %33)",
                x + R"(
%32 f32 [b=8] {| sum:data+model} = reduce %30 how=sum
%33 f32 [b=8] = all_reduce %32 how=sum axes=data+model
output o %33)");
}

TEST(PlaceReductions, SinksToAShardOverItsAxes) {
  EXPECT_PLACES(kA + R"(
%22 f32 [a=4 b=8] = map %20 expr=multiply($0, 0.5:f32)
%23 f32 [a=2 b=8] {a:data} = shard %22 dim=a axes=data
%24 f32 [a=2 b=8] {a:data} = map %23 expr=exp($0)
output o %24)",
                R"(
%22 f32 [a=4 b=8] {| sum:data} = map %0 expr=multiply($0, 0.5:f32)
%25 f32 [a=4 b=8] = all_reduce %22 how=sum axes=data
%23 f32 [a=2 b=8] {a:data} = shard %25 dim=a axes=data
%24 f32 [a=2 b=8] {a:data} = map %23 expr=exp($0)
output o %24)");
}

TEST(PlaceReductions, StridesAreHeeded) {
  // The operand is not dense, its sum would be: the view after it holds for the sum only.
  EXPECT_STAYS(R"(
%19 f32 [b=8 a=4] {| sum:data} = view %0 offset=0 strides=[1 8]
%20 f32 [b=8 a=4] = all_reduce %19 how=sum axes=data
%22 f32 [b=2 a=4] = view %20 offset=0 strides=[4 1]
%23 f32 [b=2 a=4] = map %22 expr=exp($0)
output o %23)");
  // Views of a strided slice hold for the slice only; the reduction can still land below both.
  EXPECT_PLACES(kA + R"(
%22 f32 [a=4 b=4] {} = view %20 offset=0 strides=[8 1]
%23 f32 [b=4] = view %22 offset=8 strides=[1]
%24 f32 [b=4] = map %23 expr=exp($0)
output o %24)",
                R"(
%22 f32 [a=4 b=4] {| sum:data} = view %0 offset=0 strides=[8 1]
%23 f32 [b=4] {| sum:data} = view %22 offset=8 strides=[1]
%25 f32 [b=4] = all_reduce %23 how=sum axes=data
%24 f32 [b=4] = map %25 expr=exp($0)
output o %24)");
  EXPECT_STAYS(kA + R"(
%22 f32 [a=4 b=4] {} = view %20 offset=0 strides=[8 1]
%23 f32 [b=4] = view %22 offset=8 strides=[1]
%24 f32 [b=4] = map %23 expr=exp($0)
%25 f32 [a=4 b=4] = map %22 expr=exp($0)
output o %24
output p %25)");
}

TEST(PlaceReductions, TheReductionKeepsItsCauses) {
  const Program p = placed(R"(
%20 f32 [a=4 b=8] = all_reduce %0 how=sum axes=data @backward "m.cc:1 einsum"
%21 f32 [a=4 b=8] = all_reduce %1 how=sum axes=data @forward "m.cc:2 einsum"
%22 f32 [a=4 b=8] = map %20, %21 expr=add($0, $1) @backward "m.cc:3 add"
output o %22)");
  ASSERT_EQ(p.body.size(), 2u);
  EXPECT_EQ(p.body[1].origin.phase, Phase::kBackward);
  EXPECT_THAT(p.body[1].origin.causes, testing::ElementsAre("m.cc:1 einsum", "m.cc:2 einsum"));
}

}  // namespace
}  // namespace weft::place_reductions_test
