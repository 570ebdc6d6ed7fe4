// Pass recompute_maps: what is made again behind other work, and what is kept. The mesh is data:2 model:4 one:1.
#include <gtest/gtest.h>

#include "program/passes/passes.h"
#include "program/pipeline.h"
#include "program/program_text.h"

namespace weft::recompute_maps_test {
namespace {

using test::is_program;
using test::program_of;

Program passed(const std::string& lines) {
  return recompute_maps(program_of(lines), {.target = {.recomputed_bytes = 1024}});
}

#define EXPECT_MADE_AGAIN(before, after) EXPECT_TRUE(is_program(passed(before), after))
#define EXPECT_REMAINS(before) EXPECT_TRUE(is_program(passed(before), before))

// %2 and %3 are read behind two products; both come from the first product, which then is all that is kept.
TEST(RecomputeMaps, AnActivationIsMadeAgainFromTheProductBeforeIt) {
  EXPECT_MADE_AGAIN(R"(
input x %0 f32 [a=256 b=128]
variable w %1 f32 [b=128 c=256] trainable
variable v %2 f32 [c=256 b=128] trainable
%3 f32 [a=256 c=256] = contract %0, %1
%4 f32 [a=256 c=256] = map %3 expr=tanh($0)
%5 f32 [a=256 c=256] = map %4, %3 expr=multiply($0, $1)
%6 f32 [a=256 b=128] = contract %5, %2
%7 f32 [a=256 c=256] = contract %6, %2
%8 f32 [a=256 c=256] = map %7, %4 expr=multiply($0, $1)
output o %8)",
                 R"(
input x %0 f32 [a=256 b=128]
variable w %1 f32 [b=128 c=256] trainable
variable v %2 f32 [c=256 b=128] trainable
%3 f32 [a=256 c=256] = contract %0, %1
%4 f32 [a=256 c=256] = map %3 expr=tanh($0)
%5 f32 [a=256 c=256] = map %4, %3 expr=multiply($0, $1)
%6 f32 [a=256 b=128] = contract %5, %2
%7 f32 [a=256 c=256] = contract %6, %2
%9 f32 [a=256 c=256] = map %3 expr=tanh($0)
%8 f32 [a=256 c=256] = map %7, %9 expr=multiply($0, $1)
output o %8)");
}

// The mean of a row is small, so it is kept; the large difference is made again from it.
TEST(RecomputeMaps, SmallSumsAreKept) {
  EXPECT_MADE_AGAIN(R"(
input x %0 f32 [a=256 b=128]
variable w %1 f32 [b=128 c=128] trainable
%2 f32 [a=256] = reduce %0 how=sum
%3 f32 [a=256 b=128] = map %0, %2 expr=subtract($0, $1)
%4 f32 [a=256 b=128] = map %3 expr=exp($0)
%5 f32 [a=256 c=128] = contract %4, %1
%6 f32 [a=256 b=128] = contract %5, %1
%7 f32 [a=256 b=128] = map %6, %3 expr=multiply($0, $1)
output o %7)",
                 R"(
input x %0 f32 [a=256 b=128]
variable w %1 f32 [b=128 c=128] trainable
%2 f32 [a=256] = reduce %0 how=sum
%3 f32 [a=256 b=128] = map %0, %2 expr=subtract($0, $1)
%4 f32 [a=256 b=128] = map %3 expr=exp($0)
%5 f32 [a=256 c=128] = contract %4, %1
%6 f32 [a=256 b=128] = contract %5, %1
%8 f32 [a=256 b=128] = map %0, %2 expr=subtract($0, $1)
%7 f32 [a=256 b=128] = map %6, %8 expr=multiply($0, $1)
output o %7)");
}

TEST(RecomputeMaps, NotFromMoreThanItSaves) {
  EXPECT_REMAINS(R"(
input x %0 f32 [a=256 b=128]
variable w %1 f32 [b=128 c=128] trainable
variable v %2 f32 [c=128 b=128] trainable
variable u %10 f32 [b=128 c=128] trainable
%3 f32 [a=256 c=128] = contract %0, %1
%4 f32 [a=256 c=128] = contract %0, %10
%5 f32 [a=256 c=128] = map %3, %4 expr=multiply($0, $1)
%6 f32 [a=256 c=128] = map %5 expr=exp($0)
%7 f32 [a=256 b=128] = contract %6, %2
%8 f32 [a=256 c=128] = contract %7, %1
%9 f32 [a=256 c=128] = map %8, %5 expr=multiply($0, $1)
output o %9)");
}

TEST(RecomputeMaps, NotWhatAProductReadsLater) {
  EXPECT_REMAINS(R"(
input x %0 f32 [a=256 b=128]
variable w %1 f32 [b=128 c=128] trainable
%2 f32 [a=256 b=128] = map %0 expr=exp($0)
%3 f32 [a=256 c=128] = contract %2, %1
%4 f32 [b=128 c=128] = contract %2, %3
output o %4)");
}

TEST(RecomputeMaps, OnlyWhereTheTargetWantsIt) {
  const std::string text = R"(
input x %0 f32 [a=256 b=128]
variable w %1 f32 [b=128 c=128] trainable
%2 f32 [a=256 b=128] = map %0 expr=exp($0)
%3 f32 [a=256 c=128] = contract %0, %1
%4 f32 [a=256 b=128] = contract %3, %1
%5 f32 [a=256 b=128] = map %4, %2 expr=multiply($0, $1)
output o %5)";
  EXPECT_TRUE(is_program(recompute_maps(program_of(text), {}), text));
  EXPECT_FALSE(is_program(passed(text), text));
}

}  // namespace
}  // namespace weft::recompute_maps_test
