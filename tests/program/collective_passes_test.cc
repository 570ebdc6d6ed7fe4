// Passes reduce_then_scatter and join_collectives, and the pipeline. The mesh is data:2 model:4 one:1.
#include <gmock/gmock.h>

#include "program/passes/passes.h"
#include "program/pipeline.h"
#include "program/program_text.h"
#include "support/expect_error.h"

namespace weft::collective_passes_test {
namespace {

using test::is_program;
using test::program_of;

// --- reduce_then_scatter ---

const std::string kPending =
    R"(
input x %0 f32 [a=8 b=8] {| sum:data}
input y %1 f32 [a=8 b=8] {| sum:data+model}
input m %2 f32 [a=8 b=8] {| max:data}
)";

Program scattered(const std::string& lines) { return reduce_then_scatter(program_of(kPending + lines), {}); }

#define EXPECT_SCATTERS(before, after) EXPECT_TRUE(is_program(scattered(before), kPending + (after)))

TEST(ReduceThenScatter, OneAxis) {
  EXPECT_SCATTERS(R"(
%5 f32 [a=8 b=8] = all_reduce %0 how=sum axes=data
%6 f32 [a=4 b=8] {a:data} = shard %5 dim=a axes=data
output o %6)",
                  R"(
%6 f32 [a=4 b=8] {a:data} = reduce_scatter %0 how=sum dim=a axes=data
output o %6)");
  EXPECT_SCATTERS(R"(
%5 f32 [a=8 b=8] = all_reduce %2 how=max axes=data
%6 f32 [a=8 b=4] {b:data} = shard %5 dim=b axes=data
%7 f32 [a=8 b=4] {b:data} = map %6 expr=exp($0)
output o %7)",
                  R"(
%6 f32 [a=8 b=4] {b:data} = reduce_scatter %2 how=max dim=b axes=data
%7 f32 [a=8 b=4] {b:data} = map %6 expr=exp($0)
output o %7)");
}

TEST(ReduceThenScatter, UnderOtherNames) {
  EXPECT_SCATTERS(R"(
%5 f32 [a=8 b=8] = all_reduce %0 how=sum axes=data
%6 f32 [c=8 b=8] = view %5 offset=0 strides=[8 1]
%7 f32 [c=4 b=8] {c:data} = shard %6 dim=c axes=data
output o %7)",
                  R"(
%6 f32 [c=8 b=8] {| sum:data} = view %0 offset=0 strides=[8 1]
%7 f32 [c=4 b=8] {c:data} = reduce_scatter %6 how=sum dim=c axes=data
output o %7)");
  const std::string turned = R"(
%5 f32 [a=8 b=8] = all_reduce %0 how=sum axes=data
%6 f32 [c=8 b=8] = view %5 offset=0 strides=[1 8]
%7 f32 [c=4 b=8] {c:data} = shard %6 dim=c axes=data
%8 f32 [c=4 b=8] {c:data} = copy %7
output o %8)";
  EXPECT_SCATTERS(turned, turned);
}

TEST(ReduceThenScatter, ViewsFollowWhatIsScattered) {
  EXPECT_SCATTERS(R"(
%5 f32 [a=8 b=8] = all_reduce %0 how=sum axes=data
%6 f32 [a=8 b=4] {b:data} = shard %5 dim=b axes=data
%7 f32 [a=8 p=1 c=4] {c:data} = view %6 offset=0 strides=[8 8 1]
%8 f32 [a=8 p=1 c=4] {c:data} = map %7 expr=exp($0)
output o %8)",
                  R"(
%6 f32 [a=8 b=4] {b:data} = reduce_scatter %0 how=sum dim=b axes=data
%7 f32 [a=8 p=1 c=4] {c:data} = view %6 offset=0 strides=[4 4 1]
%8 f32 [a=8 p=1 c=4] {c:data} = map %7 expr=exp($0)
output o %8)");
  const std::string turned = R"(
%5 f32 [a=8 b=8] = all_reduce %0 how=sum axes=data
%6 f32 [a=8 b=4] {b:data} = shard %5 dim=b axes=data
%7 f32 [b=4 a=8] {b:data} = view %6 offset=0 strides=[1 8]
%8 f32 [b=4 a=8] {b:data} = map %7 expr=exp($0)
output o %8)";
  EXPECT_SCATTERS(turned, turned);
}

TEST(ReduceThenScatter, TheRestIsReducedOnTheSmallerPiece) {
  EXPECT_SCATTERS(R"(
%5 f32 [a=8 b=8] = all_reduce %1 how=sum axes=data+model
%6 f32 [a=2 b=8] {a:model} = shard %5 dim=a axes=model
output o %6)",
                  R"(
%5 f32 [a=2 b=8] {a:model | sum:data} = reduce_scatter %1 how=sum dim=a axes=model
%6 f32 [a=2 b=8] {a:model} = all_reduce %5 how=sum axes=data
output o %6)");
  EXPECT_SCATTERS(R"(
%5 f32 [a=8 b=8] = all_reduce %1 how=sum axes=data+model
%6 f32 [a=2 b=8] {a:model} = shard %5 dim=a axes=model
%7 f32 [a=2 b=4] {a:model b:data} = shard %6 dim=b axes=data
%8 f32 [a=2 b=4] {a:model b:data} = map %7 expr=exp($0)
output o %8)",
                  R"(
%5 f32 [a=2 b=8] {a:model | sum:data} = reduce_scatter %1 how=sum dim=a axes=model
%7 f32 [a=2 b=4] {a:model b:data} = reduce_scatter %5 how=sum dim=b axes=data
%8 f32 [a=2 b=4] {a:model b:data} = map %7 expr=exp($0)
output o %8)");
}

TEST(ReduceThenScatter, TheOrderOfTheAxesIsTheShards) {
  EXPECT_SCATTERS(R"(
%5 f32 [a=8 b=8] = all_reduce %1 how=sum axes=data+model
%6 f32 [a=1 b=8] {a:model+data} = shard %5 dim=a axes=model+data
output o %6)",
                  R"(
%6 f32 [a=1 b=8] {a:model+data} = reduce_scatter %1 how=sum dim=a axes=model+data
output o %6)");
  EXPECT_SCATTERS(R"(
%5 f32 [a=8 b=8] = all_reduce %0 how=sum axes=data
%6 f32 [a=1 b=8] {a:model+data} = shard %5 dim=a axes=model+data
output o %6)",
                  R"(
%5 f32 [a=2 b=8] {a:model | sum:data} = shard %0 dim=a axes=model
%6 f32 [a=1 b=8] {a:model+data} = reduce_scatter %5 how=sum dim=a axes=data
output o %6)");
  EXPECT_SCATTERS(R"(
%5 f32 [a=8 b=8] = all_reduce %0 how=sum axes=data
%6 f32 [a=1 b=8] {a:data+model} = shard %5 dim=a axes=data+model
output o %6)",
                  R"(
%5 f32 [a=4 b=8] {a:data} = reduce_scatter %0 how=sum dim=a axes=data
%6 f32 [a=1 b=8] {a:data+model} = shard %5 dim=a axes=model
output o %6)");
}

TEST(ReduceThenScatter, WhatStays) {
  const std::string reduced = "%5 f32 [a=8 b=8] = all_reduce %0 how=sum axes=data\n";
  for (const std::string& lines : {reduced + R"(
%6 f32 [a=2 b=8] {a:model} = shard %5 dim=a axes=model
output o %6)",  // another axis
                                   reduced + R"(
%6 f32 [a=4 b=8] {a:data} = shard %5 dim=a axes=data
output o %6
output p %5)",  // needed whole
                                   reduced + R"(
%6 f32 [a=8 b=8] = map %5 expr=exp($0)
output o %6)",
                                   // The view counts on the strides of the whole.
                                   reduced + R"(
%6 f32 [a=8 b=4] {b:data} = shard %5 dim=b axes=data
%7 f32 [b=4] {b:data} = view %6 offset=8 strides=[1]
output o %7)"})
    EXPECT_SCATTERS(lines, lines);
  EXPECT_SCATTERS(reduced + R"(
%6 f32 [a=4 b=8] {a:data} = shard %5 dim=a axes=data
%7 f32 [n=32] {n:data} = view %6 offset=0 strides=[1]
output o %7)",
                  R"(
%6 f32 [a=4 b=8] {a:data} = reduce_scatter %0 how=sum dim=a axes=data
%7 f32 [n=32] {n:data} = view %6 offset=0 strides=[1]
output o %7)");
}

// --- join_collectives ---

const std::string kMany =
    R"(
input x %0 f32 [a=8] {| sum:data}
input y %1 f32 [b=4] {| sum:data}
input z %2 f32 [] {| sum:data}
input m %3 f32 [a=8] {| sum:model}
input h %4 bf16 [a=8] {| sum:data}
input n %5 f32 [a=8] {| max:data}
)";
const std::string kX = "%10 f32 [a=8] = all_reduce %0 how=sum axes=data\n";
const std::string kY = "%11 f32 [b=4] = all_reduce %1 how=sum axes=data\n";
const std::string kZ = "%12 f32 [] = all_reduce %2 how=sum axes=data\n";
const std::string kTwo = "output x %10\noutput y %11";
const std::string kOut = "output x %10\noutput y %11\noutput z %12";

Program joined(const std::string& lines, std::int64_t limit = 1000) {
  PassOptions options;
  options.join_limit = limit;
  return join_collectives(program_of(kMany + lines), options);
}

TEST(JoinCollectives, SameGroupAndKind) {
  const std::string all = "%10 f32 [a=8], %11 f32 [b=4], %12 f32 [] = all_reduce %0, %1, %2 how=sum axes=data\n";
  EXPECT_TRUE(is_program(joined(kX + kY + kZ + kOut), kMany + all + kOut));
  EXPECT_TRUE(is_program(joined("%10 f32 [a=8], %11 f32 [b=4] = all_reduce %0, %1 how=sum axes=data\n" + kZ + kOut),
                         kMany + all + kOut));
  // At the place of the last member, across other work.
  const std::string operation = "%20 f32 [a=8] = map expr=1:f32\n", more = "%21 f32 [a=8] = map expr=1:f32\n";
  EXPECT_TRUE(is_program(joined(kX + operation + kY + kZ + more + kOut), kMany + operation + all + more + kOut));
}

TEST(JoinCollectives, UpToTheLimit) {
  // 32, 16 and 4 bytes enter.
  EXPECT_TRUE(is_program(joined(kX + kY + kZ + kOut, 48),
                         kMany + "%10 f32 [a=8], %11 f32 [b=4] = all_reduce %0, %1 how=sum axes=data\n" + kZ + kOut));
  EXPECT_TRUE(is_program(joined(kX + kY + kZ + kOut, 32),
                         kMany + kX + "%11 f32 [b=4], %12 f32 [] = all_reduce %1, %2 how=sum axes=data\n" + kOut));
  EXPECT_TRUE(is_program(joined(kX + kY + kZ + kOut, 4), kMany + kX + kY + kZ + kOut));
}

TEST(JoinCollectives, NotAcrossAUse) {
  const std::string use = "%20 f32 [a=8] = map %10 expr=exp($0)\n";
  EXPECT_TRUE(is_program(joined(kX + use + kY + kTwo), kMany + kX + use + kY + kTwo));
  EXPECT_TRUE(
      is_program(joined(kX + kY + use + kZ + kOut),
                 kMany + "%10 f32 [a=8], %11 f32 [b=4] = all_reduce %0, %1 how=sum axes=data\n" + use + kZ + kOut));
  // What depends on the first cannot travel with it.
  const std::string chain = kX + R"(
%20 f32 [] {| sum:data} = view %10 offset=0 strides=[]
%21 f32 [] = all_reduce %20 how=sum axes=data
output o %21)";
  EXPECT_TRUE(is_program(joined(chain), kMany + chain));
}

TEST(JoinCollectives, ViewsFollow) {
  EXPECT_TRUE(is_program(joined(kX + R"(
%20 f32 [c=2 d=4] = view %10 offset=0 strides=[4 1]
%21 f32 [c=2] = view %20 offset=0 strides=[4]
)" + kY +
                                R"(
%22 f32 [c=2] = map %21 expr=exp($0)
output y %11
output o %22)"),
                         kMany + R"(
%10 f32 [a=8], %11 f32 [b=4] = all_reduce %0, %1 how=sum axes=data
%20 f32 [c=2 d=4] = view %10 offset=0 strides=[4 1]
%21 f32 [c=2] = view %20 offset=0 strides=[4]
%22 f32 [c=2] = map %21 expr=exp($0)
output y %11
output o %22)"));
}

TEST(JoinCollectives, UnlikeOnesStay) {
  const std::string lines = kX + R"(
%11 f32 [a=8] = all_reduce %3 how=sum axes=model
%12 bf16 [a=8] = all_reduce %4 how=sum axes=data
%13 f32 [a=8] = all_reduce %5 how=max axes=data
)" + kOut + "\noutput n %13";
  EXPECT_TRUE(is_program(joined(lines), kMany + lines));
}

TEST(JoinCollectives, ScattersAndGathersAlongOneDim) {
  const std::string inputs = R"(input x %0 f32 [a=8 b=2] {| sum:data}
input y %1 f32 [a=4] {| sum:data}
input z %2 f32 [b=4] {| sum:data}
input u %3 f32 [a=2] {a:data}
input v %4 f32 [b=4 a=2] {a:data}
)";
  const std::string outputs = "output p %10\noutput q %11\noutput r %12\noutput s %13\noutput t %14\n";
  const std::string lines = inputs + R"(%10 f32 [a=4 b=2] {a:data} = reduce_scatter %0 how=sum dim=a axes=data
%13 f32 [a=4] = all_gather %3 dim=a axes=data
%12 f32 [b=2] {b:data} = reduce_scatter %2 how=sum dim=b axes=data
%11 f32 [a=2] {a:data} = reduce_scatter %1 how=sum dim=a axes=data
%14 f32 [b=4 a=4] = all_gather %4 dim=a axes=data
)" + outputs;
  const std::string together = inputs + R"(%12 f32 [b=2] {b:data} = reduce_scatter %2 how=sum dim=b axes=data
%10 f32 [a=4 b=2] {a:data}, %11 f32 [a=2] {a:data} = reduce_scatter %0, %1 how=sum dim=a axes=data
%13 f32 [a=4], %14 f32 [b=4 a=4] = all_gather %3, %4 dim=a axes=data
)" + outputs;
  EXPECT_TRUE(is_program(join_collectives(program_of(lines), {}), together));
  PassOptions small;
  small.join_limit = 64 + 16;  // 64 and 16 bytes enter the reduce_scatters, 8 and 32 the all_gathers
  EXPECT_TRUE(is_program(join_collectives(program_of(lines), small), together));
  small.join_limit = 64 + 15;
  EXPECT_EQ(join_collectives(program_of(lines), small).body.size(), 4u);
  // What is joined and half of it dead loses that half.
  const std::string half = inputs + R"(%10 f32 [a=4 b=2] {a:data} = reduce_scatter %0 how=sum dim=a axes=data
%14 f32 [b=4 a=4] = all_gather %4 dim=a axes=data
output p %10
output t %14
)";
  const std::size_t end = together.find("output q");
  EXPECT_TRUE(is_program(drop_dead_code(program_of(together.substr(0, end) + "output t %14\n"), {}), half));
}

TEST(JoinCollectives, AllCauses) {
  const Program p = join_collectives(program_of(R"(input x %0 f32 [a=8] {| sum:data}
input y %1 f32 [b=4] {| sum:data}
%10 f32 [a=8] = all_reduce %0 how=sum axes=data @backward "a"
%11 f32 [b=4] = all_reduce %1 how=sum axes=data @backward "b"
output p %10
output q %11)"),
                                     {});
  ASSERT_EQ(p.body.size(), 1u);
  EXPECT_EQ(p.body[0].origin.phase, Phase::kBackward);
  EXPECT_THAT(p.body[0].origin.causes, testing::ElementsAre("a", "b"));
}

TEST(JoinCollectives, NotAcrossPhases) {
  const Program p = join_collectives(program_of(R"(input x %0 f32 [a=8] {| sum:data}
input y %1 f32 [b=4] {| sum:data}
%10 f32 [a=8] = all_reduce %0 how=sum axes=data @forward "a"
%11 f32 [b=4] = all_reduce %1 how=sum axes=data @backward "b"
output p %10
output q %11)"),
                                     {});
  EXPECT_EQ(p.body.size(), 2u);
}

// --- The pipeline ---

TEST(Pipeline, TheWholeListOnAStep) {
  const Program p = program_of(R"(
input x %0 f32 [batch=4 in=8] {batch:data}
input dy %3 f32 [batch=4 out=8] {batch:data}
variable w %1 f32 [in=8 out=8] trainable update=%9
variable b %2 f32 [out=8] trainable update=%12
%4 f32 [] = map expr=0.1:f32
%5 f32 [in=8 out=8] {| sum:data} = contract %0, %3  @backward "m.cc:1 einsum"
%6 f32 [in=8 out=8] = all_reduce %5 how=sum axes=data  @backward "m.cc:1 einsum"
%7 f32 [in=8 out=8] = copy %6  @backward
%10 f32 [out=8] {| sum:data} = reduce %3 how=sum  @backward "m.cc:2 add"
%11 f32 [out=8] = all_reduce %10 how=sum axes=data  @backward "m.cc:2 add"
%8 f32 [in=8 out=8] = map %7, %4 expr=multiply($0, $1)  @update
%9 f32 [in=8 out=8] = map %1, %8 expr=subtract($0, $1)  @update
%12 f32 [out=8] = map %2, %11 expr=subtract($0, $1)  @update
)");
  std::vector<std::string> dumped;
  std::vector<PassTime> times;
  PassOptions options;
  options.verify = true;
  options.times = &times;
  options.dump = [&](std::string_view pass, const Program&) { dumped.emplace_back(pass); };
  EXPECT_TRUE(is_program(run_passes(p, options), R"(
input x %0 f32 [batch=4 in=8] {batch:data}
input dy %3 f32 [batch=4 out=8] {batch:data}
variable w %1 f32 [in=8 out=8] trainable update=%9
variable b %2 f32 [out=8] trainable update=%12
%5 f32 [in=8 out=8] {| sum:data} = contract %0, %3
%10 f32 [out=8] {| sum:data} = reduce %3 how=sum
%6 f32 [in=8 out=8], %11 f32 [out=8] = all_reduce %5, %10 how=sum axes=data
%8 f32 [in=8 out=8] = map %6 expr=multiply($0, 0.1:f32)
%9 f32 [in=8 out=8] = map %1, %8 expr=subtract($0, $1)
%12 f32 [out=8] = map %2, %11 expr=subtract($0, $1)
)"));
  ASSERT_EQ(dumped.size(), pipeline().size());
  ASSERT_EQ(times.size(), pipeline().size());
  for (std::size_t i = 0; i < dumped.size(); ++i) EXPECT_EQ(dumped[i], pipeline()[i].name);
}

TEST(Pipeline, VerifiesWhatItGets) {
  PassOptions options;
  options.verify = true;
  EXPECT_INTERNAL_ERROR(run_passes(test::raw_program_of(R"(
input x %0 f32 [a=8] {| sum:data}
output o %0)"),
                                   options),
                        "after pass 'partition'");
}

}  // namespace
}  // namespace weft::collective_passes_test
