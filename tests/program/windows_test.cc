// convolve and pool as instructions: what the verifier demands, what passes them pending, what they cost.
#include "program/cost.h"
#include "program/program_text.h"
#include "program/verify.h"
#include "support/expect_error.h"

namespace weft::windows_test {
namespace {

using test::program_of;
using test::raw_program_of;

// The mesh is data:2 model:4 one:1.
const std::string kGiven = R"(
input x %0 f32 [n=2 h=8 w=6 i=3]
input f %1 f32 [kh=3 kw=2 i=3 o=4]
input y %2 f32 [n=2 h=4 w=5 o=4]
input px %3 f32 [n=2 h=8 w=6 i=3] {| sum:data}
input pf %4 f32 [kh=3 kw=2 i=3 o=4] {| sum:data}
input mx %5 f32 [n=2 h=8 w=6 i=3] {| max:data}
input q %6 f32 [n=2 h=4 w=6 i=3]
input ids %7 i32 [n=2 h=8 w=6 i=3]
input pq %8 f32 [n=2 h=4 w=6 i=3] {| sum:data}
)";
const std::string kWindows =
    " windows=[{h:kh size=3 stride=2 dilation=1 before=1} {w:kw size=2 stride=1 dilation=1 before=0}]";
const std::string kPool = " windows=[{h size=2 stride=2 dilation=1 before=0}]";

void expect_whole(const std::string& line) { EXPECT_NO_THROW(program_of(kGiven + line)) << line; }

void expect_broken(const std::string& line, const std::string& rule) {
  EXPECT_INTERNAL_ERROR(verify(raw_program_of(kGiven + line), "some_pass"), "after pass 'some_pass'", rule) << line;
}

TEST(VerifyWindows, Convolve) {
  expect_whole("%20 f32 [n=2 h=4 w=5 o=4] = convolve %0, %1 direction=forward" + kWindows);
  expect_whole("%20 f32 [o=4 w=9 h=1 n=2] = convolve %0, %1 direction=forward" +
               kWindows);  // places beyond x are zeros
  expect_whole("%20 f32 [n=2 h=8 w=6 i=3] = convolve %2, %1 direction=to_input" + kWindows);
  expect_whole("%20 f32 [i=3 kh=3 kw=2 o=4] = convolve %0, %2 direction=to_filter" + kWindows);
  expect_whole("%20 f32 [n=2 h=4 w=5 o=4 i=3] = convolve %0, %1 direction=forward" + kWindows);  // i: groups
  const auto broken = [](const std::string& left, const std::string& right, const std::string& rule) {
    expect_broken("%20 f32 " + left + " = convolve " + right, rule);
  };
  const std::string y = "[n=2 h=4 w=5 o=4]", forward = "%0, %1 direction=forward windows=";
  broken(y, "%0 direction=forward" + kWindows, "takes 2 operands");
  broken(y, "%0, %7 direction=forward" + kWindows, "one dtype");
  broken(y, forward + "[]", "there is a window");
  broken(y, forward + "[{z:kh size=3 stride=1 dilation=1 before=0}]", "x and y have the dim of a window");
  broken(y, forward + "[{h:kz size=3 stride=1 dilation=1 before=0}]", "the filter has the taps of a window");
  broken(y, forward + "[{h:kh size=4 stride=1 dilation=1 before=0}]", "the filter has the taps of a window");
  broken(y, forward + "[{h:kh size=3 stride=0 dilation=1 before=0}]", "taps, stride and dilation are positive");
  broken(y, forward + "[{h:kh size=3 stride=1 dilation=-1 before=0}]", "taps, stride and dilation are positive");
  broken(y, forward + "[{h:kh size=3 stride=1 dilation=1 before=1} {h:kw size=2 stride=1 dilation=1 before=0}]",
         "a dim has one window");
  broken(y, forward + "[{h:kh size=3 stride=1 dilation=1 before=1} {w:kh size=3 stride=1 dilation=1 before=0}]",
         "a dim of the filter has one window");
  broken(y, forward + "[{h:kh size=3 stride=1 dilation=1 before=1}]", "dim 'w' has one local size");
  broken("[n=2 h=4 w=5]", "%0, %1 direction=forward" + kWindows, "dim 'o' is in two of x, y and filter");
  broken("[n=3 h=4 w=5 o=4]", "%0, %1 direction=forward" + kWindows, "dim 'n' has one local size");
  broken("[n=2 h=4 w=5 o=4 kh=3]", "%0, %1 direction=forward" + kWindows, "taps are the filter's own");
  expect_broken("%20 i32 [n=2 h=8 w=6] = convolve %7, %7 direction=forward" + kWindows, "convolves floats");
}

TEST(VerifyWindows, NoIndexOverflows) {
  const std::string big = "input big %19 f32 [h=17592186044416]\ninput k %18 f32 [kh=3]\n";
  const std::string line = "%20 f32 [h=17592186044416] = convolve %19, %18 direction=forward windows=[{h:kh size=3 ";
  expect_whole(big + line + "stride=1 dilation=1 before=0}]");
  for (const char* steps : {"stride=17592186044416 dilation=1 before=0}]", "stride=100000000 dilation=1 before=0}]"})
    expect_broken(big + line + steps, "the windows stay within what can be counted");
}

TEST(VerifyWindows, Pool) {
  expect_whole("%20 f32 [n=2 h=4 w=6 i=3] = pool %0 kind=max direction=forward" + kPool);
  expect_whole("%20 f32 [i=3 n=2 h=4 w=6] = pool %0 kind=sum direction=forward" + kPool);
  expect_whole("%20 f32 [n=2 h=8 w=6 i=3] = pool %6 kind=sum direction=to_input" + kPool);
  expect_whole("%20 f32 [n=2 h=4 w=6 i=3] = pool %0, %6, %0 kind=winners direction=forward" + kPool);
  expect_whole("%20 f32 [n=2 h=4 w=6 i=3] = pool %0, %6 kind=winners direction=forward" + kPool);
  expect_whole("%20 f32 [n=2 h=8 w=6 i=3] = pool %0, %6, %6 kind=winners direction=to_input" + kPool);
  const std::string y = "%20 f32 [n=2 h=4 w=6 i=3] = pool ", x = "%20 f32 [n=2 h=8 w=6 i=3] = pool ";
  expect_broken(y + "%0, %6 kind=max direction=forward" + kPool, "takes 1 operands");
  expect_broken(y + "%0 kind=winners direction=forward" + kPool, "takes 3 operands");
  expect_broken(x + "%0, %6 kind=winners direction=to_input" + kPool, "takes 3 operands");
  expect_broken(y + "%0 kind=sum direction=to_filter" + kPool, "a pool has no filter");
  expect_broken(x + "%6 kind=max direction=to_input" + kPool, "max goes forward");
  expect_broken(y + "%0 kind=max direction=forward windows=[{h:k size=2 stride=2 dilation=1 before=0}]",
                "a pool has no filter");
  expect_broken(y + "%0 kind=max direction=forward windows=[{w size=2 stride=2 dilation=1 before=0}]",
                "x and y have the same dims but for the windows");
  expect_broken("%20 f32 [n=2 h=4 w=6] = pool %0 kind=max direction=forward" + kPool, "x and y have the same dims");
  expect_broken(y + "%0, %6, %6 kind=winners direction=forward" + kPool, "lies like what is summed");
  expect_broken(x + "%0, %6, %0 kind=winners direction=to_input" + kPool, "lies like what is summed");
  expect_broken(x + "%0, %6, %0 kind=winners direction=forward" + kPool, "gives the other side");
  expect_broken("%20 i32 [n=2 h=4 w=6 i=3] = pool %7 kind=max direction=forward" + kPool, "pools floats");
}

TEST(VerifyWindows, WhatPassesPending) {
  const std::string y = "%20 f32 [n=2 h=4 w=5 o=4] {| sum:data} = convolve ", all = " direction=forward" + kWindows;
  expect_whole(y + "%3, %1" + all);
  expect_whole(y + "%0, %4" + all);
  expect_broken(y + "%3, %4" + all, "a sum pending over axis 'data' cannot pass this");
  expect_broken("%20 f32 [n=2 h=4 w=5 o=4] {| max:data} = convolve %5, %1" + all, "a max pending");
  const std::string sum = "%20 f32 [n=2 h=4 w=6 i=3] {| sum:data} = pool ";
  const std::string max = "%20 f32 [n=2 h=4 w=6 i=3] {| max:data} = pool ";
  expect_whole(sum + "%3 kind=sum direction=forward" + kPool);
  expect_whole(max + "%5 kind=max direction=forward" + kPool);
  expect_whole(sum + "%0, %6, %3 kind=winners direction=forward" + kPool);
  expect_broken(sum + "%3 kind=max direction=forward" + kPool, "cannot pass this");
  expect_broken(max + "%5 kind=sum direction=forward" + kPool, "cannot pass this");
  expect_broken(sum + "%3, %6, %0 kind=winners direction=forward" + kPool, "cannot pass this");
  expect_broken(sum + "%0, %8, %0 kind=winners direction=forward" + kPool, "cannot pass this");
}

TEST(Cost, OfWindows) {
  const auto flops = [](const std::string& line) {
    const Program p = program_of(kGiven + line);
    return cost_of(p, p.body.back()).flops;
  };
  const double products = 2.0 * (2 * 4 * 5) * (3 * 2) * 3 * 4;  // places, taps, in, out: in every direction
  EXPECT_EQ(flops("%20 f32 [n=2 h=4 w=5 o=4] = convolve %0, %1 direction=forward" + kWindows), products);
  EXPECT_EQ(flops("%20 f32 [n=2 h=8 w=6 i=3] = convolve %2, %1 direction=to_input" + kWindows), products);
  EXPECT_EQ(flops("%20 f32 [i=3 kh=3 kw=2 o=4] = convolve %0, %2 direction=to_filter" + kWindows), products);
  const double met = 2 * 4 * 6 * 3 * 2;
  EXPECT_EQ(flops("%20 f32 [n=2 h=4 w=6 i=3] = pool %0 kind=max direction=forward" + kPool), met);
  EXPECT_EQ(flops("%20 f32 [n=2 h=8 w=6 i=3] = pool %6 kind=sum direction=to_input" + kPool), met);
  EXPECT_EQ(flops("%20 f32 [n=2 h=8 w=6 i=3] = pool %0, %6, %6 kind=winners direction=to_input" + kPool), met);
  const Program p = program_of(kGiven + "%20 f32 [n=2 h=4 w=5 o=4] = convolve %0, %1 direction=forward" + kWindows);
  EXPECT_EQ(summarize(p).contract_flops[0], products);
}

}  // namespace
}  // namespace weft::windows_test
