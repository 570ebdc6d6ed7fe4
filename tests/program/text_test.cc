#include "program/text.h"

#include <cmath>
#include <limits>
#include <random>

#include "base/str.h"
#include "program/builder.h"
#include "program/program_text.h"
#include "program/verify.h"
#include "support/expect_error.h"
#include "support/soak.h"

namespace weft::text_test {
namespace {

using test::raw_program_of;

const char* const kEveryInstruction = R"(weft program 1
mesh data:2 model:4
layout "batch:data hidden:model"
input x %0.x f32 [batch=4 hidden=8] {batch:data hidden:model}
input ids %1.ids i32 [batch=4] {batch:data}
input at %2.at i64 [] {}
variable w %3.w f32 [hidden=8 out=16] {hidden:model} trainable update=%20.w
variable "scope with space/b" %4."scope with space/b" f32 [out=16] {} fixed
%5.y f32 [batch=4 out=16] {batch:data | sum:model} = contract %0.x, %3.w  @forward "a.cc:1 einsum"
%6.y f32 [batch=4 out=16] {batch:data} = all_reduce %5.y how=sum axes=model  @forward "a.cc:1 einsum"
%7.z f32 [batch=4 out=16] {batch:data} = map %6.y, %4."scope with space/b" expr=relu(add($0, $1))  @forward
%8.r f32 [batch=4] {batch:data} = reduce %7.z how=max  @forward
%9.c f32 [out=16 batch=4] {batch:data} = copy %7.z  @forward
%10.c f32 [out=32 batch=4] {batch:data} = concat %9.c, %9.c dim=out  @forward
%11.t f32 [out=4 batch=4] {batch:data} = dynamic_slice %10.c, %2.at dim=out  @forward
%12.p f32 [out=32 batch=4] {batch:data} = dynamic_update %10.c, %11.t, %2.at dim=out  @forward
%13.g f32 [batch=4 out=16] {batch:data} = gather %3.w, %1.ids dim=hidden  @forward
%14.s f32 [hidden=8 out=16] {hidden:model | sum:data} = scatter_add %1.ids, %13.g dim=hidden  @backward
%15.s f32 [batch=4 out=16] {batch:data} = scan %7.z dim=out how=sum exclusive=true reverse=false  @forward
%16.v f32 [batch=4 k=2] {batch:data}, %17.i i32 [batch=4 k=2] {batch:data} = sort %7.z dim=out k=k ascending=false  @forward
%18.m f32 [batch=4 out=16] {batch:data} = random distribution=bernoulli a=0.1 b=1 key=18446744073709551615  @forward
%19.a i64 [] {} = axis_index axes=data+model  @forward
%20.w f32 [hidden=8 out=16] {hidden:model} = all_reduce %14.s how=sum axes=data  @update "a.cc:9 sgd" "a.cc:10 \"quoted\" \\ \n"
%21.k f32 [three=3] {} = constant data=[0.5 -inf nan]  @recompute
host %8.r what=print text="the loss"  @forward
%22.v f32 [o=2 batch=4] {batch:data} = view %7.z offset=3 strides=[4 16]  @forward
%23.v f32 [batch=4 out=4] {batch:data out:model} = shard %7.z dim=out axes=model  @forward
%24.r f32 [hidden=4 out=16] {hidden:model+data} = reduce_scatter %14.s how=sum dim=hidden axes=data  @forward
%25.r f32 [hidden=8 out=16] {hidden:model} = all_gather %24.r dim=hidden axes=data  @forward
%26.r f32 [batch=1 out=16] {batch:data+model} = all_to_all %23.v split=batch gather=out axes=model  @forward
%27.r f32 [batch=4 out=16] {batch:data} = permute %7.z axes=model to=[1 2 3 -1]  @forward
%28.f f32 [taps=3 c=5] {} = constant data=[1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]  @forward
%29.c f32 [out=2 batch=4 c=5] {batch:data} = convolve %7.z, %28.f direction=forward windows=[{out:taps size=3 stride=2 dilation=4 before=-1}]  @forward
%30.x f32 [batch=4 out=16] {batch:data} = convolve %29.c, %28.f direction=to_input windows=[{out:taps size=3 stride=2 dilation=4 before=-1}]  @backward
%31.d f32 [c=5 taps=3] {| sum:data} = convolve %7.z, %29.c direction=to_filter windows=[{out:taps size=3 stride=2 dilation=4 before=-1}]  @backward
%32.p f32 [batch=3 out=7] {batch:data} = pool %7.z kind=max direction=forward windows=[{out size=2 stride=2 dilation=1 before=0} {batch size=2 stride=1 dilation=1 before=1}]  @forward
%33.p f32 [batch=4 out=16] {batch:data} = pool %7.z, %32.p, %32.p kind=winners direction=to_input windows=[{out size=2 stride=2 dilation=1 before=0} {batch size=2 stride=1 dilation=1 before=1}]  @backward
%34.p f32 [batch=4 out=16] {batch:data} = pool %32.p kind=sum direction=to_input windows=[{out size=2 stride=2 dilation=1 before=0} {batch size=2 stride=1 dilation=1 before=1}]  @backward
output loss %8.r
end
)";

std::string squeezed(const std::string& text) {  // runs of spaces as one
  std::string out;
  for (char c : text)
    if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
  return out;
}

TEST(ProgramText, EveryInstructionRoundTrips) {
  const Program program = parse_program(kEveryInstruction);
  EXPECT_EQ(squeezed(to_text(program)), squeezed(kEveryInstruction));
  EXPECT_EQ(to_text(parse_program(to_text(program))), to_text(program));
  EXPECT_NO_THROW(verify(program, "parse"));
}

TEST(ProgramText, WhatTheBuilderMakesRoundTrips) {
  Builder b(Mesh::parse("data:2 model:4"), "batch:data");
  const Shape shape{{"batch", 4}, {"out", 16}};
  const Sharding sharding{{{0}, {}}, {}, Reduce::kSum};
  const ValueId x = b.input("x", {DType::kF32, shape, sharding});
  b.begin("y", {Phase::kBackward, {"m.cc:3 slice"}});
  const ValueId y = b.slice(b.shard(x, "out", {1}), "out", 1, 2);
  const ValueId z = b.cast(b.map("add", {y, y}, b.type(y)), DType::kBF16);
  b.output("z", b.all_gather(b.dense(z, b.type(z).shape), "out", {1}));
  const Program program = std::move(b).finish();
  const std::string text = to_text(program);
  EXPECT_EQ(to_text(parse_program(text)), text);
  EXPECT_NE(text.find("expr=cast<bf16>($0)  @backward \"m.cc:3 slice\""), std::string::npos) << text;
  EXPECT_NO_THROW(verify(program, "build"));
}

std::string expression_of(const std::string& expression) {
  const Program program = raw_program_of(
      "input x %0 f32 [vocab=4]\ninput i %1 i32 [vocab=4]\n%2 f32 [vocab=4] = map %0, %1 expr=" + expression);
  const std::string text = to_text(program, program.body[0]);
  const std::size_t begin = text.find("expr=") + 5;
  return text.substr(begin, text.find("  @") - begin);
}

TEST(ProgramText, Expressions) {
  for (const char* text : {"select(equal(index(vocab), $1), 1:f32, 0:f32)", "cast<bf16>($0)", "index<i64>(vocab)", "$0",
                           "-inf:f32", "nan:f64", "multiply(#0=exp($0), add(#0, #0))", "add(#0=exp($0), #1=log(#0))",
                           "less<f32>($0, 1e-30:f32)", "add(0.1:f32, 5e-324:f64)"})
    EXPECT_EQ(expression_of(text),
              std::string(text) == "add(#0=exp($0), #1=log(#0))" ? "add(#0=exp($0), log(#0))" : text);
}

TEST(ProgramText, EqualLeavesAreOneNode) {
  const Program program =
      raw_program_of("input x %0 f32 [a=4]\n%1 f32 [a=4] = map %0 expr=add(add($0, 1:f32), multiply($0, 1:f32))");
  EXPECT_EQ(program.body[0].as<Map>()->nodes.size(), 5u);
}

TEST(ProgramText, NumbersComeBackExactly) {
  std::mt19937_64 bits(7);
  std::vector<double> numbers = {0.0,
                                 -0.0,
                                 0.1,
                                 1.0 / 3,
                                 std::numeric_limits<double>::max(),
                                 std::numeric_limits<double>::denorm_min(),
                                 std::numeric_limits<double>::infinity()};
  for (int i = 0; i < 1000; ++i) {
    const double number = std::bit_cast<double>(bits());
    if (!std::isnan(number)) numbers.push_back(number);
  }
  Builder b{Mesh{}};
  const std::int64_t size = static_cast<std::int64_t>(numbers.size());
  b.output("c", b.emit_one(Constant{std::vector<Number>(numbers.begin(), numbers.end())}, {},
                           {DType::kF64, {{"n", size}}, unsplit({{"n", size}})}));
  const Program back = parse_program(to_text(std::move(b).finish()));
  const std::vector<Number>& data = back.body[0].as<Constant>()->data;
  ASSERT_EQ(data.size(), numbers.size());
  for (std::size_t i = 0; i < data.size(); ++i)
    EXPECT_EQ(std::bit_cast<std::uint64_t>(data[i].real()), std::bit_cast<std::uint64_t>(numbers[i]));
}

// Beyond 2^53 a double would lose the last digits.
TEST(ProgramText, LongWholeNumbersComeBackExactly) {
  const std::vector<Number> numbers = {9007199254740993,
                                       std::numeric_limits<std::int64_t>::max(),
                                       std::numeric_limits<std::int64_t>::min(),
                                       -9007199254740993,
                                       100000,
                                       0};
  Builder b{Mesh{}};
  const Shape shape{{"n", 6}};
  b.output("c", b.emit_one(Constant{numbers}, {}, {DType::kI64, shape, unsplit(shape)}));
  for (const Number& number : numbers) b.output(str("l", number), b.fill(number, {DType::kI64, {}, {}}));
  const std::string text = to_text(std::move(b).finish());
  EXPECT_NE(text.find("expr=9007199254740993:i64"), std::string::npos) << text;
  const Program back = parse_program(text);
  EXPECT_EQ(to_text(back), text);
  EXPECT_EQ(back.body[0].as<Constant>()->data, numbers);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    EXPECT_EQ(back.body[i + 1].as<Map>()->nodes[0].literal.whole(), numbers[i].whole());
}

TEST(ProgramText, BrokenProgramsPrintToo) {
  Program program;
  program.values.resize(1);
  program.values[ValueId(0)].sharding = {{{7}}, {9}, Reduce::kMax};
  program.body.push_back(
      {Map{{{.op = "add", .args = {5, -1}, .dim = {}}}}, {ValueId(3)}, {ValueId(0), ValueId(44)}, {}});
  EXPECT_EQ(to_text(program, program.body[0]),
            "%0 f32 [] {?:?7 | max:?9}, %44? = map %3? expr=add<f32>(?, ?)  @forward");
}

// --- What is refused ---

struct Refused {
  const char* lines;
  const char* what;
  const char* fix = "fix:";
  const char* code = "code:";
};

TEST(ProgramTextErrors, EachNamesItsLine) {
  const Refused cases[] = {
      {"%0 f32 [a=2] = frobnicate", "there is no instruction 'frobnicate'"},
      {"%0 f32 [a=2] = al_reduce", "did you mean 'all_reduce'?"},
      {"%0 f32 [a=0] = map expr=1:f32", "the size of a dim 0 is out of range"},
      {"%0 f32 [a=2 a=2] = map expr=1:f32", "dim 'a' occurs twice"},
      {"%0 f32 [a=99999999999999999999] = map expr=1:f32", "out of range"},
      {"%0 f32 [a=1000000000 b=1000000000] = map expr=1:f32", "out of range"},
      {"%0 f33 [a=2] = map expr=1:f32", "f33"},
      {"%0 f32 [a=2] {a:row} = map expr=1:f32", "the mesh has no axis 'row'", "its axes are: data:2"},
      {"%0 f32 [a=2] {b:data} = map expr=1:f32", "the sharding splits 'b', no dim of the shape",
       "name a dim of the shape"},
      {"%0 f32 [a=2] {a:data a:model} = map expr=1:f32", "dim 'a' is split twice", "join the axes by '+'"},
      {"%0 f32 [a=2] {| mean:data} = map expr=1:f32", "'mean' is not a reduction"},
      {"%0 f32 [a=2] = copy %1", "value %1 is used but not defined", "define it on an earlier line"},
      {"%0 f32 [a=2] = copy %0", "value %0 is used but not defined"},
      {"input x %0 f32 [a=2]\ninput y %0 f32 [a=2]", "value %0 is defined twice", "give one of the two another number"},
      {"%0 f32 [a=2], %0 f32 [a=2] = sort dim=a k=a ascending=false", "value %0 is defined twice"},
      {"input x %0.x f32 [a=2]\n%1 f32 [a=2] = copy %0.y", "value %0 is called 'x', not 'y'",
       "use its name, or its number alone", "program.wrong-value-name"},
      {"input x %4000000000 f32 [a=2]", "a value's number 4000000000 is out of range"},
      {"input x %999 f32 [a=2]", "a value's number 999 is out of range"},
      {"%0 f32 [a=2] = reduce how=mean", "'mean' is not a reduction"},
      {"%0 f32 [a=2] = reduce", "instruction 'reduce' lacks its attribute 'how'",
       "write how=… after the operands, attributes in the order that to_text prints"},
      {"%0 f32 [a=2] = random a=1", "lacks its attribute 'distribution'"},
      {"%0 f32 [a=2] = random distribution=cauchy", "'cauchy' is not a distribution"},
      {"%0 f32 [a=2] = random distribution=bits a=1 b=2 key=-3", "'-3' is not a whole number of 64 bits",
       "write 0 to 18446744073709551615"},
      {"%0 f32 [a=2] = random distribution=bits a=one b=2 key=3", "'one' is not a number", "write digits, inf or nan"},
      {"%0 f32 [a=2] = random distribution=bits a=1e999 b=2 key=3", "the number 1e999 is out of range",
       "write a number that a double can hold"},
      {"%0 f32 [a=2] = scan dim=a how=sum exclusive=maybe", "expected true or false", "write one of the two"},
      {"%0 f32 [a=2] = convolve direction=sideways", "'sideways' is not a direction",
       "write one of: ", "program.unknown-word"},
      {"%0 f32 [a=2] = pool kind=mean", "'mean' is not a kind of pool"},
      {"%0 f32 [a=2] = pool kind=max direction=forward windows=[a]", "expected '{' in column ",
       "compare the line with what to_text prints", "program.missing-character"},
      {"%0 f32 [a=2] = pool kind=max direction=forward windows=[{a size=2 dilation=1}]", "a window lacks its stride",
       "write stride=… in its place"},
      {"%0 f32 [a=2] = map expr=exp($0)", "$0 names no operand", "the instruction has 0 operands"},
      {"%0 f32 [a=2] = map expr=#1", "label #1 is not bound yet"},
      {"%0 f32 [a=2] = map expr=add(#1=exp(1:f32), #1=exp(1:f32))", "label #1 is bound twice", "use another number"},
      {"%0 f32 [a=2] = map expr=cast(1:f32)", "a cast lacks its dtype", "write cast<f32>(…)"},
      {"%0 f32 [a=2] = map expr=", "expected a function, found ''", "write $0, 1:f32, index(dim) or name(…)"},
      {"%0 f32 [a=2] = map expr=exp(1:f32", "expected ')'"},
      {"%0 f32 [a=2] = map expr=1:f32 @sideways", "'sideways' is not a phase"},
      {"%0 f32 [a=2] = map expr=1:f32 @recompute#x", "'recompute#x' has no number of a recomputation",
       "write it as: recompute#1"},
      {"%0 f32 [a=2] = map expr=1:f32 @forward more", "words left over at the end of the line",
       "one statement per line"},
      {"%0 f32 [a=2] = map expr=1:f32 @forward \"open", "a quoted text does not end", "close it with \""},
      {"%0 f32 [a=2] = map expr=1:f32 @forward \"\\q\"", "unknown escape in column ",
       "inside quotes write \\\" \\\\ \\n or \\xHH"},
      {"variable w %0 f32 [a=2]", "the variable is neither trainable nor fixed", "write one of the two words"},
      {"variable w %0 f32 [a=2] fixed update=%7", "value %7 is used but not defined"},
      {"output x %0", "value %0 is used but not defined"},
      {"output", "expected the name of the output in column ", "compare the line with what to_text prints",
       "program.missing-word"},
      {"%0 f32 a", "expected '[' in column 8, found 'a'"},
      {"%x f32 [a=2]", "expected a value's number in column 2", "write a whole number there", "program.missing-number"},
  };
  for (const Refused& refused : cases)
    EXPECT_USER_ERROR(raw_program_of(refused.lines), refused.what, "program text, line ", refused.fix, refused.code)
        << refused.lines;
}

TEST(ProgramTextErrors, HeaderAndEnd) {
  EXPECT_USER_ERROR(parse_program(""), "no version line", "begin it with: weft program 1");
  EXPECT_USER_ERROR(parse_program("mesh data:2\nend\n"), "no version line", "line 1");
  EXPECT_USER_ERROR(parse_program("weft program 2\n"), "program text of version 2", "this Weft reads version 1");
  EXPECT_USER_ERROR(parse_program("weft program 1\nend\n"), "the mesh is missing", "line 2",
                    "write it in the second line, as: mesh data:2 model:4");
  EXPECT_USER_ERROR(parse_program("weft program 1\nmesh data:70000\n"), "out of range");
  EXPECT_USER_ERROR(parse_program("weft program 1\nmesh a:300 b:300\n"), "the mesh has too many processors",
                    "at most 65536");
  EXPECT_USER_ERROR(parse_program("weft program 1\nmesh a:2 a:2\nend\n"), "line 2");
  EXPECT_USER_ERROR(parse_program("weft program 1\nmesh data:2\n"), "breaks off", "end it with the line: end");
  EXPECT_USER_ERROR(parse_program("weft program 1\nmesh\nend\nmesh\n"), "there is text after the end",
                    "remove what follows the line: end");
  std::string deep = "weft program 1\nmesh\n%0 f32 [] = map expr=";
  for (int i = 0; i < 100000; ++i) deep += "exp(";
  EXPECT_USER_ERROR(parse_program(deep), "an expression is nested too deeply", "at most ");
  std::string wide = "weft program 1\nmesh\n%0 f32 [";
  for (int i = 0; i < 100; ++i) wide += "d" + std::to_string(i) + "=1 ";
  EXPECT_USER_ERROR(parse_program(wide), "the shape has too many dims", "at most ");
  std::string axes = "weft program 1\nmesh";
  for (int i = 0; i < 100; ++i) axes += " a" + std::to_string(i) + ":1";
  EXPECT_USER_ERROR(parse_program(axes + "\nend\n"), "the mesh has too many axes", "at most ");
}

// --- Any text either is a program that prints and parses again, or gives a UserError ---

void parse_any(const std::string& text) {
  Program program;
  try {
    program = parse_program(text);
  } catch (const UserError&) {
    return;
  }
  const std::string once = to_text(program);
  ASSERT_EQ(to_text(parse_program(once)), once) << text;
  try {
    verify(program, "parse");
  } catch (const InternalError&) {
  }
}

void mutate(int rounds, unsigned seed) {
  static constexpr std::string_view kPieces[] = {"%", ".",           "=",  "[",    "]",    "{",    "}",  "|",   ":",
                                                 "-", "99999999999", "$0", "#0=",  "\"",   "\\",   "\n", "end", "nan",
                                                 "0", " ",           ",",  "exp(", "data", "view", "@"};
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  for (int round = 0; round < rounds; ++round) {
    std::string text = kEveryInstruction;
    for (std::size_t edits = 1 + below(4); edits > 0 && !text.empty(); --edits) {
      const std::size_t at = below(text.size());
      switch (below(5)) {
        case 0: text.erase(at, 1 + below(20)); break;
        case 1: text.insert(at, kPieces[below(std::size(kPieces))]); break;
        case 2: text[at] = static_cast<char>(below(256)); break;
        case 3: text.insert(at, text.substr(below(text.size()), below(40))); break;
        default:
          if (below(8) == 0) text.resize(at);
          break;
      }
    }
    ASSERT_NO_FATAL_FAILURE(parse_any(text));
  }
}

TEST(ProgramText, MutatedTextsAreReadOrRefused) { mutate(2000, 1); }

TEST(SoakProgramText, MutatedTextsAreReadOrRefused) {
  for (unsigned seed = 2; seed < 30; ++seed) mutate(test::soak_count(10000), seed);
}

}  // namespace
}  // namespace weft::text_test
