// What a module says besides the instructions: its signature, groups, places; and which programs are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/str.h"
#include "kernels/pointwise.h"
#include "program/text.h"
#include "program/verify.h"
#include "stablehlo/emit.h"
#include "support/expect_error.h"

namespace weft::stablehlo_emit_test {
namespace {

using stablehlo::Argument;
using stablehlo::Mode;
using stablehlo::Module;
using stablehlo::Platform;
using stablehlo::Result;
using ::testing::HasSubstr;
using ::testing::Not;

Module emitted(const std::string& lines, Mode mode = Mode::kReplicas, const std::string& mesh = "data:2 model:4") {
  return stablehlo::emit(parse_verified(str("weft program 1\nmesh ", mesh, "\nlayout \"\"\n", lines, "\nend\n")),
                         {.mode = mode});
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

const std::string kStep = R"(
input x %0 f32 [a=4]
variable kept %1 f32 [a=4] trainable
variable w %2 f32 [a=4] trainable update=%3
%3 f32 [a=4] = map %0, %2 expr=subtract($1, $0)
%4 f32 [] = reduce %0 how=sum
host %4 what=metric text=loss
output sum %4)";

TEST(StableHloModule, HasInputsVariablesSeedAndStep) {
  const Module module = emitted(kStep);
  ASSERT_EQ(module.arguments.size(), 5u);
  EXPECT_EQ(module.arguments[0].role, Argument::Role::kInput);
  EXPECT_EQ(module.arguments[0].name, "x");
  EXPECT_EQ(module.arguments[1].donated_to, -1);
  EXPECT_EQ(module.arguments[2].name, "w");
  EXPECT_EQ(module.arguments[2].donated_to, 1);
  EXPECT_EQ(module.arguments[3].role, Argument::Role::kSeed);
  EXPECT_EQ(module.arguments[3].shape, Shape({{"word", 2}}));
  EXPECT_EQ(module.arguments[4].role, Argument::Role::kStep);
  EXPECT_TRUE(module.arguments[4].shape.empty());
  ASSERT_EQ(module.results.size(), 3u);
  EXPECT_EQ(module.results[0].role, Result::Role::kFetched);
  EXPECT_EQ(module.results[1].role, Result::Role::kVariable);
  EXPECT_EQ(module.results[1].name, "w");
  EXPECT_EQ(module.results[2].role, Result::Role::kHost);
  EXPECT_EQ(module.results[2].what, "metric");
  EXPECT_EQ(module.results[2].name, "loss");
  EXPECT_EQ(count(module.text, "tf.aliasing_output"), 1);
  EXPECT_THAT(module.text, HasSubstr("{tf.aliasing_output = 1 : i32} loc(\"w [a=4]\")"));
  EXPECT_THAT(module.text, HasSubstr("mhlo.num_replicas = 8 : i32"));
  EXPECT_THAT(module.text, Not(HasSubstr("manual")));
}

TEST(StableHloModule, OfPartitionsIsManual) {
  const Module module = emitted(kStep, Mode::kPartitions);
  EXPECT_EQ(count(module.text, "mhlo.sharding = \"{manual}\""), 5 + 3);
  EXPECT_THAT(module.text, HasSubstr("mhlo.num_partitions = 8 : i32"));
}

const std::string kTalk = R"(
input x %0 f32 [a=8] {| sum:data}
input y %1 f32 [a=2] {a:model}
%2 f32 [a=8] = all_reduce %0 how=sum axes=data
%3 f32 [a=8] = all_gather %1 dim=a axes=model
%4 f32 [a=2] {a:model} = permute %1 axes=model to=[1 -1 -1 0]
%5 i64 [] = axis_index axes=data
output a %2
output b %3
output c %4
output d %5)";

TEST(StableHloGroups, AreTheMeshs) {
  const std::string text = emitted(kTalk).text;
  EXPECT_THAT(text, HasSubstr("replica_groups = dense<[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>"));
  EXPECT_THAT(text, HasSubstr("replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>"));
  EXPECT_THAT(text, HasSubstr("source_target_pairs = dense<[[0, 1], [3, 0], [4, 5], [7, 4]]> : tensor<4x2xi64>"));
  EXPECT_THAT(text, HasSubstr("\"stablehlo.replica_id\""));
  EXPECT_THAT(text, Not(HasSubstr("channel_handle")));
}

TEST(StableHloGroups, OfPartitionsTalkOverChannels) {
  const std::string text = emitted(kTalk, Mode::kPartitions).text;
  for (const char* channel : {"handle = 1,", "handle = 2,", "handle = 3,"}) EXPECT_EQ(count(text, channel), 1);
  EXPECT_EQ(count(text, "use_global_device_ids"), 2);  // not of the permute
  EXPECT_THAT(text, HasSubstr("\"stablehlo.partition_id\""));
}

TEST(StableHloGroups, OfOneProcessorNeedNoCollective) {
  const std::string text = emitted(kTalk, Mode::kReplicas, "data:1 model:4").text;
  EXPECT_THAT(text, Not(HasSubstr("stablehlo.all_reduce")));
  EXPECT_THAT(text, HasSubstr("all_gather"));
}

// TPUs have no 64-bit integers: a division of i64 becomes hundreds of instructions, and a loop's number of trips is lost.
TEST(StableHloIntegers, Have32BitsWhereThatIsEnough) {
  const auto gather = [](const std::string& index, std::int64_t ids) {
    return str("input x %0 f32 [id=", ids, " a=2] {id:model}\ninput i %1 ", index, " [b=3]\n",
               "%2 f32 [b=3 a=2] {| sum:model} = gather %0, %1 dim=id\n"
               "%3 f32 [b=3 a=2] = all_reduce %2 how=sum axes=model\noutput o %3");
  };
  const std::string few = emitted(gather("i32", 8)).text;
  EXPECT_THAT(few, HasSubstr("stablehlo.remainder %4, %5 : tensor<ui32>"));
  EXPECT_THAT(few, Not(HasSubstr("tensor<3xi64>")));
  EXPECT_THAT(emitted(gather("i64", 8)).text, HasSubstr("tensor<3xi64>"));
  // 2^29 on each of 4 processors: the difference of an index and a shard's begin no longer fits.
  EXPECT_THAT(emitted(gather("i32", std::int64_t{1} << 29)).text, HasSubstr("tensor<3xi64>"));
  const std::string loop = emitted(R"(
input x %0 f32 [a=4]
%1 f32 [a=4] = loop %0 trips=3 stops=false
  input i %0 i64 []
  input c %1 f32 [a=4]
  %2 f32 [a=4] = map %1 expr=exp($0)
  output c %2
end
output o %1)")
                               .text;
  EXPECT_THAT(loop, HasSubstr(", SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>"));
}

TEST(StableHloPlaces, NameDimsAndLines) {
  const std::string text =
      emitted("input x %0 f32 [a=4]\n%1.h f32 [a=4] = map %0 expr=exp($0)  @forward \"net.cc:7 exp\"\noutput o %1")
          .text;
  EXPECT_THAT(text, HasSubstr("#loc0 = loc(\"h [a=4] = map @ net.cc:7 exp\")"));
  EXPECT_THAT(text, HasSubstr("stablehlo.exponential %0 : tensor<4xf32> loc(#loc0)"));
}

// A function that gets an entry in kernels/pointwise-inl.h and no StableHLO form fails here.
TEST(StableHloPointwise, EveryFunctionHasAForm) {
  for (const Pointwise& function : pointwise_functions())
    for (const DType dtype :
         {DType::kF32, DType::kBF16, DType::kF64, DType::kI32, DType::kU8, DType::kI8, DType::kBool}) {
      if (!function.takes_dtype(dtype)) continue;
      const std::string lines =
          str("input x %0 ", dtype, " [a=4]\n%1 ", function.result(dtype), " [a=4] = map %0 expr=", function.name,
              "($0", function.arity == 2 ? ", $0" : "", ")\noutput o %1");
      EXPECT_NO_THROW(emitted(lines)) << function.name << " of " << dtype;
    }
}

// No value of the module has all scores: [b h l m] would be 2 x 4 x 4096 x 4096.
TEST(StableHloAttend, StoresNoScores) {
  const std::string rules =
      " length=l memory=m key=d value=d scale=1 causal=true biased=false segments=false bounded=false sources=\"\"";
  const std::string text = emitted(str(R"(
input q %0 f32 [b=2 l=4096 h=4 d=8]
input k %1 f32 [b=2 m=4096 h=4 d=8]
input v %2 f32 [b=2 m=4096 h=4 d=8]
input dy %3 f32 [b=2 l=4096 h=4 d=8]
%4 f32 [b=2 l=4096 h=4 d=8], %5 f32 [b=2 l=4096 h=4] = attend %0, %1, %2)",
                                       rules, R"(
%6 f32 [b=2 l=4096 h=4 d=8], %7 f32 [b=2 m=4096 h=4 d=8], %8 f32 [b=2 m=4096 h=4 d=8] = attend_back %0, %1, %2, %4, %5, %3)",
                                       rules, " joined=\"\"\noutput a %6\noutput b %7\noutput c %8"))
                               .text;
  EXPECT_EQ(count(text, "\"stablehlo.while\""), 2);
  EXPECT_EQ(count(text, "4096x4x4096"), 0);
  EXPECT_EQ(count(text, "4096x4096"), 0);
}

// A pair of attend and attend_back, with some of its text replaced.
std::string attend_pair(const std::vector<std::pair<std::string, std::string>>& changes) {
  std::string text = R"(
input q %0 bf16 [b=4 l=16 h=4 d=8]
input k %1 bf16 [b=4 m=16 h=4 d=8]
input v %2 bf16 [b=4 m=16 h=4 d=8]
input dy %3 bf16 [b=4 l=16 h=4 d=8]
%4 bf16 [b=4 l=16 h=4 d=8], %5 f32 [b=4 l=16 h=4] = attend %0, %1, %2 RULES
%6 bf16 [b=4 l=16 h=4 d=8], %7 bf16 [b=4 m=16 h=4 d=8], %8 bf16 [b=4 m=16 h=4 d=8] = attend_back %0, %1, %2, %4, %5, %3 RULES joined=""
output y %4
output dq %6
output dk %7
output dv %8)";
  const auto replace = [&](const std::string& from, const std::string& to) {
    ASSERT_NE(text.find(from), std::string::npos) << from;
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  replace("RULES",
          "length=l memory=m key=d value=d scale=1 causal=true biased=false segments=false bounded=false sources=\"\"");
  for (const auto& [from, to] : changes) replace(from, to);
  return text;
}

// How many calls of cuDNN the pair has for NVIDIA cards.
int cudnn_calls(const std::vector<std::pair<std::string, std::string>>& changes) {
  const Program program =
      parse_verified(str("weft program 1\nmesh data:2\nlayout \"\"\n", attend_pair(changes), "\nend\n"));
  const std::string cuda = stablehlo::emit(program, {.platform = Platform::kCuda}).text;
  EXPECT_EQ(count(stablehlo::emit(program).text, "custom_call"), 0);
  return count(cuda, "custom_call @__cudnn$fmhaSoftmax(") + count(cuda, "custom_call @__cudnn$fmhaSoftmaxBackward(");
}

TEST(StableHloCudnn, TakesPairsThatFit) {
  EXPECT_EQ(cudnn_calls({}), 2);
  EXPECT_EQ(cudnn_calls({{"bf16", "f16"}}), 2);
  EXPECT_EQ(cudnn_calls({{"d=8", "d=128"}}), 2);
  EXPECT_EQ(cudnn_calls({{"causal=true", "causal=false"}, {"m=16", "m=5"}}), 2);
  EXPECT_EQ(cudnn_calls({{"b=4 l=16 h=4 d=8]", "b=4 l=16 h=4 d=8] {b:data}"},
                         {"b=4 l=16 h=4]", "b=4 l=16 h=4] {b:data}"},
                         {"b=4 m=16 h=4 d=8]", "b=4 m=16 h=4 d=8] {b:data}"}}),
            2);
}

TEST(StableHloCudnn, LeavesOthersToTheLoop) {
  EXPECT_EQ(cudnn_calls({{"bf16", "f32"}}), 0);
  EXPECT_EQ(cudnn_calls({{"d=8", "d=12"}}), 0);
  EXPECT_EQ(cudnn_calls({{"d=8", "d=136"}}), 0);
  EXPECT_EQ(cudnn_calls({{"m=16", "m=5"}}), 0);                 // causal, and queries behind the memory's end
  EXPECT_EQ(cudnn_calls({{" m=16 h=4 ", " m=16 "}}), 0);        // heads that share keys
  EXPECT_EQ(cudnn_calls({{"output y %4", "output y %5"}}), 0);  // the total means something else
  EXPECT_EQ(cudnn_calls({{"input dy", "input t %9 f32 [b=4 l=16 h=4]\ninput dy"}, {"%5, %3", "%9, %3"}}), 1);
  EXPECT_EQ(
      cudnn_calls({{"b=4 l=16 h=4 d=8]", "b=4 l=16 h=4 d=8] {l:data}"}, {"b=4 l=16 h=4]", "b=4 l=16 h=4] {l:data}"}}),
      0);  // positions that begin elsewhere
}

TEST(StableHloRefusals, ListAllWithTheirReasons) {
  const std::string loop = R"(
input x %0 f32 [a=4]
%1 f32 [a=4] = loop %0 trips=3 stops=false
  input i %0 i64 []
  input c %1 f32 [a=4]
  host %1 what=print text=inner
  output c %1
end
%2 f32 [h=4096] = map expr=1:f32
%3 f32 [h=1] = pool %2 kind=max direction=forward windows=[{h size=4096 stride=1 dilation=1 before=0}]
%4 f32 [h=4096] = pool %2, %3, %3 kind=winners direction=to_input windows=[{h size=4096 stride=1 dilation=1 before=0}]
output a %1
output b %4)";
  EXPECT_USER_ERROR(emitted(loop),
                    "the program has instructions without a StableHLO form (2):\n  host: print 'inner' is inside a "
                    "loop, and a module hands nothing to the host before its end",
                    "the gradient of a max pool is written out tap by tap, and a window has 4096 of at most 1024 taps",
                    "change the ops above as the reasons say, or run the program on --device cpu", "stablehlo.no-form");
}

// A view of a shard that reads what other processors hold.
TEST(StableHloRefusals, ViewThatLeavesItsShard) {
  EXPECT_USER_ERROR(emitted(R"(
input x %0 f32 [a=4 b=4]
%1 f32 [a=4 b=2] {b:data} = shard %0 dim=b axes=data
%2 f32 [a=2 b=4] = view %1 offset=0 strides=[4 1]
%3 f32 [a=2 b=4] = map %2 expr=exp($0)
output o %3)",
                            Mode::kReplicas, "data:2"),
                    "the program has instructions without a StableHLO form (1):", "is a view that leaves its shard");
}

}  // namespace
}  // namespace weft::stablehlo_emit_test
