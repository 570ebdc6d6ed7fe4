// Pass join_attend, and what the verifier demands of attend and attend_back. The mesh is data:2 model:4 one:1.
#include <gmock/gmock.h>

#include "program/passes/passes.h"
#include "program/pipeline.h"
#include "program/program_text.h"
#include "program/verify.h"
#include "support/expect_error.h"

namespace weft::join_attend_test {
namespace {

using test::is_program;
using test::program_of;

const std::string kInputs =
    R"(
input q %0 f32 [l=4 h=2 d=3] {}
input k %1 f32 [m=4 h=2 d=3] {}
input v %2 f32 [m=4 h=2 d=3] {}
input y %3 f32 [l=4 h=2 d=3] {}
input s %4 f32 [l=4 h=2] {}
input g %5 f32 [l=4 h=2 d=3] {}
)";
const std::string kRules =
    "length=l memory=m key=d value=d scale=1 causal=true biased=false segments=false bounded=false sources=\"\"";
const std::string kBack = R"(
%6 f32 [l=4 h=2 d=3], %7 f32 [m=4 h=2 d=3], %8 f32 [m=4 h=2 d=3] = attend_back %0, %1, %2, %3, %4, %5 )" +
                          kRules + R"( joined="")";
const std::string kViews = R"(
%9 f32 [l=4 p=1 h=2 d=3] = view %6 offset=0 strides=[6 6 3 1]
%10 f32 [l=4 p=1 h=2 d=3] = view %7 offset=0 strides=[6 6 3 1]
%11 f32 [l=4 p=1 h=2 d=3] = view %8 offset=0 strides=[6 6 3 1]
)";

Program joined(const std::string& lines) { return join_attend(program_of(kInputs + lines), {}); }

TEST(JoinAttend, WritesWhereTheResultsBelong) {
  EXPECT_TRUE(is_program(joined(kBack + kViews + R"(
%12 f32 [l=4 p=3 h=2 d=3] = concat %9, %10, %11 dim=p
output o %12)"),
                         kInputs + R"(
%12 f32 [l=4 p=3 h=2 d=3] = attend_back %0, %1, %2, %3, %4, %5 )" +
                             kRules + R"( joined=p
output o %12)"));
}

const std::string kBiasedRules =
    "length=l memory=m key=d value=d scale=1 causal=true biased=true segments=false bounded=false sources=\"\"";
const std::string kBiasedBack = R"(
input b %12 f32 [m=4 l=4] {}
%6 f32 [l=4 h=2 d=3], %7 f32 [m=4 h=2 d=3], %8 f32 [m=4 h=2 d=3], %13 f32 [m=4 l=4] = attend_back %0, %1, %2, %3, %4, %5, %12 )" +
                                kBiasedRules + R"( joined="")";

TEST(JoinAttend, LeavesTheDerivativeByTheBiasBeside) {
  EXPECT_TRUE(is_program(joined(kBiasedBack + kViews + R"(
%14 f32 [l=4 p=3 h=2 d=3] = concat %9, %10, %11 dim=p
output o %14
output b %13)"),
                         kInputs + R"(
input b %12 f32 [m=4 l=4] {}
%14 f32 [l=4 p=3 h=2 d=3], %13 f32 [m=4 l=4] = attend_back %0, %1, %2, %3, %4, %5, %12 )" +
                             kBiasedRules + R"( joined=p
output o %14
output b %13)"));
}

TEST(DropDeadCode, ForgetsADerivativeByABiasThatNothingNeeds) {
  const std::string needed = kBiasedBack + "\noutput o %6\noutput b %13";
  EXPECT_TRUE(is_program(drop_dead_code(program_of(kInputs + needed), {}), kInputs + needed));
  EXPECT_TRUE(is_program(drop_dead_code(program_of(kInputs + kBiasedBack + "\noutput o %6"), {}), kInputs + R"(
input b %12 f32 [m=4 l=4] {}
%6 f32 [l=4 h=2 d=3], %7 f32 [m=4 h=2 d=3], %8 f32 [m=4 h=2 d=3] = attend_back %0, %1, %2, %3, %4, %5, %12 )" +
                                                                                                      kBiasedRules +
                                                                                                      R"( joined=""
output o %6)"));
}

TEST(JoinAttend, LeavesOthersAlone) {
  const std::string in_another_order = kBack + kViews + R"(
%12 f32 [l=4 p=3 h=2 d=3] = concat %10, %9, %11 dim=p
output o %12)";
  const std::string used_elsewhere = kBack + kViews + R"(
%12 f32 [l=4 p=3 h=2 d=3] = concat %9, %10, %11 dim=p
output o %12
output r %6)";
  const std::string otherwise = kBack + R"(
%9 f32 [l=4 p=1 h=2 d=3] = view %6 offset=0 strides=[6 6 3 1]
%10 f32 [l=4 p=1 h=2 d=3] = view %7 offset=18 strides=[-6 6 3 1]
%11 f32 [l=4 p=1 h=2 d=3] = view %8 offset=0 strides=[6 6 3 1]
%12 f32 [l=4 p=3 h=2 d=3] = concat %9, %10, %11 dim=p
output o %12)";
  for (const std::string& text : {in_another_order, used_elsewhere, otherwise})
    EXPECT_TRUE(is_program(joined(text), kInputs + text));
}

std::string broken(const std::string& lines) {
  const auto breach = find_breach(test::raw_program_of(kInputs + lines));
  return breach ? breach->rule : "";
}

TEST(VerifyAttend, HoldsTheRoles) {
  const auto attend = [&](const std::string& operands, const std::string& rules) {
    return broken("%6 f32 [l=4 h=2 d=3], %7 f32 [l=4 h=2] = attend " + operands + " " + rules + "\noutput o %6");
  };
  EXPECT_EQ(attend("%0, %1, %2", kRules), "");
  EXPECT_EQ(attend("%0, %1", kRules), "takes 3 operands");
  EXPECT_EQ(attend("%1, %0, %2", kRules), "k and v have the memory");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string rules = kRules;
    return rules.replace(rules.find(from), from.size(), to);
  };
  EXPECT_EQ(attend("%0, %1, %2", with("length=l", "length=\"\"")), "causal needs the length");
  EXPECT_EQ(attend("%0, %1, %2", with("length=l", "length=h")), "the length is a dim of q that k lacks");
  EXPECT_EQ(attend("%0, %1, %2", with("value=d", "value=h")), "the value is v's own, or called like the key");
  EXPECT_EQ(attend("%0, %1, %2, %4", with("biased=false", "biased=true")), "");
  EXPECT_EQ(attend("%0, %1, %2, %5", with("biased=false", "biased=true")),
            "dim 'd' of the bias is a dim of the scores");
  EXPECT_EQ(attend("%0, %1, %2, %4, %4", with("segments=false", "segments=true")), "ids are integers");
}

TEST(VerifyAttend, HoldsTheMemorysEndAndSources) {
  const auto attend = [&](const std::string& input, const std::string& field, const std::string& value) {
    std::string rules = kRules;
    rules.replace(rules.find(field), field.size(), value);
    return broken("input e %10 " + input + " {}\n%6 f32 [l=4 h=2 d=3], %7 f32 [l=4 h=2] = attend %0, %1, %2, %10 " +
                  rules + "\noutput o %6");
  };
  const auto bounded = [&](const std::string& input) { return attend(input, "bounded=false", "bounded=true"); };
  EXPECT_EQ(bounded("i32 [h=2]"), "");
  EXPECT_EQ(bounded("i32 []"), "");
  EXPECT_EQ(bounded("f32 [h=2]"), "the memory's end is an integer");
  EXPECT_EQ(bounded("i32 [m=4]"), "dim 'm' of the memory's end is a dim of the scores");
  const auto sourced = [&](const std::string& input, const std::string& dim) {
    return attend(input, "sources=\"\"", "sources=" + dim);
  };
  EXPECT_EQ(sourced("i32 [h=2 m=4]", "h"), "");
  EXPECT_EQ(sourced("f32 [h=2 m=4]", "h"), "sources are integers");
  EXPECT_EQ(sourced("i32 [h=2 m=4]", "l"), "k has the dim of the sources");
  EXPECT_EQ(sourced("i32 [m=4]", "h"), "sources have their dim and the memory");
  EXPECT_EQ(sourced("i32 [h=2 m=4 l=4]", "h"), "dim 'l' of the sources is a dim of the scores");
  std::string rules = kRules;
  rules.replace(rules.find("sources=\"\""), 10, "sources=h");
  EXPECT_EQ(broken("input e %10 i32 [h=2 m=4] {}\n%6 f32 [l=4 h=2 d=3], %7 f32 [m=4 h=2 d=3], %8 f32 [m=4 h=2 d=3] = "
                   "attend_back %0, %1, %2, %3, %4, %5, %10 " +
                   rules + " joined=\"\"\noutput o %6"),
            "attend_back has no sources");
}

TEST(VerifyAttend, HoldsWhatComesBack) {
  EXPECT_EQ(broken(kBack + "\noutput o %6"), "");
  EXPECT_EQ(broken("%6 f32 [l=4 h=2 d=3], %7 f32 [m=4 h=2 d=3], %8 f32 [l=4 h=2 d=3] = attend_back %0, %1, %2, %3, %4, "
                   "%5 " +
                   kRules + " joined=\"\"\noutput o %6"),
            "a derivative has the dims and the dtype of its operand");
  EXPECT_EQ(
      broken("%6 f32 [p=2 l=4 h=2 d=3] = attend_back %0, %1, %2, %3, %4, %5 " + kRules + " joined=p\noutput o %6"),
      "the joined dim has size 3");
  EXPECT_EQ(
      broken("%6 f32 [p=3 l=4 h=2 d=3] = attend_back %0, %1, %2, %3, %4, %5 " + kRules + " joined=p\noutput o %6"), "");
}

TEST(VerifyAttend, HoldsTheDerivativeByTheBias) {
  const auto back = [](const std::string& more, const std::string& rules) {
    return broken("input b %12 f32 [m=4 l=4] {}\n%6 f32 [l=4 h=2 d=3], %7 f32 [m=4 h=2 d=3], %8 f32 [m=4 h=2 d=3]" +
                  more + " = attend_back %0, %1, %2, %3, %4, %5" + (rules == kRules ? " " : ", %12 ") + rules +
                  " joined=\"\"\noutput o %6");
  };
  EXPECT_EQ(back("", kBiasedRules), "");
  EXPECT_EQ(back(", %9 f32 [l=4 m=4]", kBiasedRules), "");
  EXPECT_EQ(back(", %9 f32 [l=4 m=4]", kRules), "gives 3 values");
  EXPECT_EQ(back(", %9 f32 [l=4 m=4], %10 f32 [l=4 m=4]", kBiasedRules), "gives 3 values, and the bias's at most");
  EXPECT_EQ(back(", %9 f32 [l=4 h=2]", kBiasedRules), "the bias's derivative is a float with its dims");
  EXPECT_EQ(back(", %9 i32 [l=4 m=4]", kBiasedRules), "the bias's derivative is a float with its dims");
}

TEST(VerifyAttend, WantsSomeDimsWhole) {
  EXPECT_EQ(broken(R"(
input w %6 f32 [m=4 h=2 d=3] {m:data}
%7 f32 [l=4 h=2 d=3], %8 f32 [l=4 h=2] = attend %0, %6, %2 )" +
                   kRules + "\noutput o %7"),
            "dim 'm' is whole");
}

}  // namespace
}  // namespace weft::join_attend_test
