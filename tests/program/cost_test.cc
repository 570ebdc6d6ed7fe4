#include "program/cost.h"

#include <gmock/gmock.h>

#include "program/program_text.h"

namespace weft::cost_test {
namespace {

using test::program_of;

Cost cost_of_last(const std::string& lines) {
  const Program p = program_of(
      "input x %0 f32 [a=4 b=8]\ninput w %1 bf16 [b=8 c=2]\ninput i %2 i32 [a=4]\n"
      "input p %3 f32 [a=4 b=8] {| sum:data}\n" +
      lines);
  return cost_of(p, p.body.back());
}

TEST(Cost, PerInstruction) {
  const Cost contract = cost_of_last("%4 f32 [a=4 c=2] = contract %0, %1");
  EXPECT_EQ(contract.flops, 2 * 4 * 8 * 2);
  EXPECT_EQ(contract.bytes, 4 * 32 + 2 * 16 + 4 * 8);
  EXPECT_EQ(cost_of_last("%4 f32 [a=4 b=8] = map %0 expr=add(exp($0), multiply($0, 2:f32))").flops, 32 * (8 + 1 + 1));
  EXPECT_EQ(cost_of_last("%4 bf16 [a=4 b=8] = map %0 expr=cast<bf16>($0)").flops, 0);
  EXPECT_EQ(cost_of_last("%4 f32 [a=4 b=8] = map %0 expr=selu(sqrt(identity($0)))").flops, 32 * (8 + 1 + 0));
  EXPECT_EQ(cost_of_last("%4 f32 [a=4 b=8] = map %0 expr=select(less($0, 1:f32), $0, 2:f32)").flops, 32 * 2);
  EXPECT_EQ(cost_of_last("%4 f32 [a=4] = reduce %0 how=max").flops, 32);
  EXPECT_EQ(cost_of_last("%4 f32 [n=9 b=8] = scatter_add %2, %0 dim=n").flops, 32);
  EXPECT_EQ(cost_of_last("%4 f32 [b=8 a=4] = copy %0").bytes, 2 * 128);
  EXPECT_EQ(cost_of_last("%4 f32 [b=8 a=4] = view %0 offset=0 strides=[1 8]").bytes, 0);
  EXPECT_EQ(cost_of_last("%4 f32 [a=4 b=8] = all_reduce %3 how=sum axes=data").bytes, 128);
  EXPECT_EQ(
      cost_of_last(
          "%4 f32 [a=2 b=8] {a:data} = shard %0 dim=a axes=data\n%5 f32 [a=4 b=8] = all_gather %4 dim=a axes=data")
          .bytes,
      64);
}

// Executed is what queries see, a triangle here; contractions count whole, and back without the scores made again.
TEST(Cost, Attention) {
  const std::string rules =
      "length=l memory=m key=d value=e scale=1 biased=false segments=false bounded=false sources=\"\"";
  const auto text = [&](const char* causal, const char* length, const char* axes) {
    const std::string q = std::string("[h=2 l=") + length, split = std::string("] {") + axes + "}";
    std::string with = rules;
    with.insert(with.find(" biased"), std::string(" causal=") + causal);
    return "input q %0 f32 " + q + " d=3" + split + "\ninput k %1 f32 [m=6 h=2 d=3]\ninput v %2 f32 [m=6 h=2 e=5]\n" +
           "input g %3 f32 " + q + " e=5" + split + "\n%4 f32 " + q + " e=5" + split + ", %5 f32 " + q + split +
           " = attend %0, %1, %2 " + with + "  @forward\n%6 f32 " + q + " d=3" + split +
           ", %7 f32 [m=6 h=2 d=3], %8 f32 [m=6 h=2 e=5] = attend_back %0, %1, %2, %4, %5, %3 " + with +
           " joined=\"\"  @backward";
  };
  const auto check = [&](const std::string& lines, double queries, double seen) {
    const Program p = program_of(lines);
    EXPECT_DOUBLE_EQ(cost_of(p, p.body[0]).flops, 2 * seen * (2 * (3 + 5) + 12));
    EXPECT_DOUBLE_EQ(cost_of(p, p.body[1]).flops, 2 * seen * (2 * (3 * 3 + 2 * 5) + 12));
    EXPECT_THAT(summarize(p).contract_flops,
                testing::ElementsAre(2 * queries * 6 * 2 * (3 + 5), 0, 2 * queries * 6 * 2 * 2 * (3 + 5), 0));
  };
  check(text("false", "4", ""), 4, 4 * 6);
  check(text("true", "4", ""), 4, 1 + 2 + 3 + 4);
  check(text("true", "8", ""), 8, 21 + 2 * 6);
  check(text("true", "4", "l:data"), 4, (21 + 2 * 6) / 2.0);  // half of eight queries, on average
  const Program biased = program_of(
      R"(
input q %0 f32 [h=2 l=4 d=3]
input k %1 f32 [m=6 h=2 d=3]
input b %2 f32 [l=4 m=6]
input t %3 f32 [h=2 l=4]
%4 f32 [h=2 l=4 d=3], %5 f32 [m=6 h=2 d=3], %6 f32 [m=6 h=2 d=3], %7 f32 [l=4 m=6] = attend_back %0, %1, %1, %0, %3, %0, %2)"
      " length=l memory=m key=d value=d scale=1 causal=false biased=true segments=false bounded=false sources=\"\" "
      "joined=\"\"");
  EXPECT_DOUBLE_EQ(cost_of(biased, biased.body[0]).flops, 2 * 4 * 6 * (2 * 5 * 3 + 13));
  EXPECT_DOUBLE_EQ(cost_of(biased, biased.body[0]).bytes, 4 * (3 * 24 + 8 + 24 + 2 * 36 + 24 + 2 * 36 + 24));
}

TEST(Cost, Summary) {
  const Program p = program_of(R"(
input x %0 f32 [a=4 b=8] {| sum:data}
input y %1 f32 [b=8 c=2]
input z %2 bf16 [c=2] {| sum:data+model}
%3 f32 [a=4 c=2] {| sum:data} = contract %0, %1  @forward "m:1"
%4 f32 [a=4 c=2] = all_reduce %3 how=sum axes=data  @forward "m:1"
%5 f32 [a=4 b=8] = all_reduce %0 how=sum axes=data  @forward "m:2" "m:1"
%6 f32 [a=4 c=2], %7 f32 [a=4 b=8] = all_reduce %3, %0 how=sum axes=data  @backward "m:3"
%8 bf16 [c=2] = all_reduce %2 how=sum axes=data+model  @forward
%9 f32 [a=4 b=8] = contract %4, %1  @backward
)");
  const ProgramCost cost = summarize(p);
  EXPECT_THAT(cost.contract_flops, testing::ElementsAre(128, 0, 128, 0));
  EXPECT_EQ(cost.flops, 256 + 8 + 32 + 40 + 2);
  EXPECT_EQ(cost.bytes, 2 * 4 * (32 + 16 + 8));
  ASSERT_EQ(cost.collectives.size(), 3u);
  const CollectiveCost &forward = cost.collectives[0], &backward = cost.collectives[1], &half = cost.collectives[2];
  EXPECT_EQ(forward.kind, "all_reduce");
  EXPECT_EQ(forward.axes, "data");
  EXPECT_EQ(forward.elements, 40);
  EXPECT_EQ(forward.bytes, 160);
  EXPECT_EQ(forward.count, 2);
  EXPECT_THAT(forward.causes, testing::ElementsAre("m:1", "m:2"));
  EXPECT_EQ(backward.phase, Phase::kBackward);
  EXPECT_EQ(backward.elements, 40);
  EXPECT_EQ(backward.count, 1);
  EXPECT_EQ(half.axes, "data+model");
  EXPECT_EQ(half.dtype, DType::kBF16);
  EXPECT_EQ(half.bytes, 4);
}

}  // namespace
}  // namespace weft::cost_test
