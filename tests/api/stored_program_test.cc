// A program's text run by itself: the session's numbers, and every text that cannot run refused before it does.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/str.h"
#include "support/expect_error.h"
#include "weft/detail/stored_program.h"
#include "weft/weft.h"

namespace weft::stored_program_test {
namespace {

// The body between the head and `end`.
std::string text_of(const std::string& lines, const std::string& mesh = "data:2") {
  return str("weft program 1\nmesh ", mesh, "\nlayout \"\"\n", lines, "end\n");
}

StoredProgram program_of(const std::string& lines, const std::string& mesh = "data:2") {
  return StoredProgram::parse(text_of(lines, mesh));
}

const std::string kDouble =
    "input x %0.x f32 [a=2] {a:data}\n"
    "%1.y f32 [a=2] {a:data} = map %0.x expr=add($0, $0)\n"
    "output y %1.y\n";

Array ramp(const Shape& shape, DType dtype = DType::kF32) {
  Array array(shape, dtype);
  for (std::int64_t i = 0; i < array.elements(); ++i) array.set(i, static_cast<double>(i % 7) - 3);
  return array;
}

TEST(StoredProgram, GivesTheNumbersOfItsSession) {
  Dim batch{"batch", 8}, in{"in", 6}, hidden{"hidden", 4};
  Graph g;
  Tensor x = g.input("x", {batch, in});
  Tensor w = g.variable("w", {in, hidden}, init::fan_in(in));
  Tensor y = relu(einsum({x, w}, {batch, hidden}));
  Tensor loss = mean(y * y);
  const CompileOptions options{.fetch = {loss, y}, .update = optim::sgd(loss, g.variables(), 0.1f)};
  const Array data = ramp({batch, in});

  Session session(Mesh::parse("data:2 model:2"));
  Executable step = session.compile(g, Layout::parse("batch:data hidden:model"), options);
  const StoredProgram program = StoredProgram::parse(step.text());
  EXPECT_EQ(program.mesh().text(), "data:2 model:2");
  EXPECT_GT(program.instructions(), 3);
  ASSERT_EQ(program.inputs().size(), 1u);
  EXPECT_EQ(program.inputs()[0].shape, (Shape{batch, in}));
  ASSERT_EQ(program.variables().size(), 1u);
  EXPECT_EQ(program.variables()[0].shape, (Shape{in, hidden}));
  ASSERT_EQ(program.outputs().size(), 2u);

  const StoredRunResults got = program.run({{"x", data}, {"w", session.value("w")}}, {.steps = 3});
  for (int i = 0; i < 2; ++i) step.run({{x, data}});
  const Values want = step.run({{x, data}});
  ASSERT_EQ(got.outputs.size(), 2u);
  EXPECT_EQ(got.outputs[0].second.item(), want.scalar(loss));
  EXPECT_EQ(got.outputs[1].second.values(), want[y].values());
  EXPECT_EQ(got.variables.at("w").values(), session.value("w").values());
  EXPECT_EQ(got.metrics.size(), 3u);
}

TEST(StoredProgram, FillsWhatIsNotGiven) {
  const StoredProgram program = program_of(
      "input f %0 f32 [a=64]\ninput i %1 i32 [a=64]\ninput b %2 bool [a=64]\n"
      "variable v %3 f32 [a=64] fixed\noutput f %0\noutput i %1\noutput b %2\noutput v %3\n");
  const auto run = [&](std::uint64_t seed) {
    return program.run({}, {.random_inputs = seed, .random_variables = seed}).outputs;
  };
  const auto one = run(1), again = run(1), two = run(2);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(one[i].second.values(), again[i].second.values()) << one[i].first;
    EXPECT_NE(one[i].second.values(), two[i].second.values()) << one[i].first;
  }
  for (double x : one[1].second.values()) EXPECT_TRUE(x >= 0 && x <= 9) << x;
  EXPECT_EQ(program.run({}, {.random_inputs = 1}).variables.at("v").values(), std::vector<double>(64, 0));
}

TEST(StoredProgram, CastsAndTurnsWhatIsGiven) {
  const StoredProgram program = program_of("input x %0 f32 [a=2 b=3] {b:data}\noutput x %0\n", "data:1");
  const Array given({{"b", 3}, {"a", 2}}, {1, 2, 3, 4, 5, 6}, DType::kF64);
  EXPECT_EQ(program.run({{"x", given}}).outputs[0].second.values(), (std::vector<double>{1, 3, 5, 2, 4, 6}));
}

TEST(StoredProgram, PrintsAndCountsMetrics) {
  const StoredProgram program = program_of(
      "input x %0 f32 [a=2]\ninput s %1 f32 []\nhost %0 what=print text=seen\nhost %1 what=metric text=loss\n"
      "host %0 what=metric text=odd\n");
  std::vector<std::string> lines;
  const StoredRunResults results =
      program.run({{"x", ramp({{"a", 2}})}, {"s", Array::scalar(2)}},
                  {.steps = 2, .print = [&](const std::string& line) { lines.push_back(line); }});
  EXPECT_EQ(lines.size(), 4u) << "a metric of two elements is printed";
  EXPECT_EQ(lines[0], "seen f32 [a=2]: -3 -2");
  EXPECT_EQ(results.metrics[1].at("loss"), 2);
}

TEST(StoredProgram, RefusesValuesThatDoNotFit) {
  const StoredProgram program = program_of(kDouble);
  EXPECT_USER_ERROR(program.run({}), "inputs are missing: x f32 [a=4]",
                    "give a value for each (weft run --inputs), or let all be random (--random-inputs SEED)");
  EXPECT_USER_ERROR(program.run({{"x", ramp({{"a", 4}})}, {"w", Array()}}), "the program has no input or variable 'w'",
                    "did you mean 'x'?");
  EXPECT_USER_ERROR(program.run({{"x", ramp({{"a", 2}})}}), "'x' is f32 [a=4] in the program, but f32 [a=2] was given",
                    "give an array with these dims and this kind of dtype");
  EXPECT_USER_ERROR(program.run({{"x", ramp({{"a", 4}}, DType::kI32)}}), "but i32 [a=4] was given");
  EXPECT_USER_ERROR(program.run({{"x", ramp({{"a", 4}})}}, {.steps = 0}), "a run of 0 steps was asked for",
                    "run at least one step");
}

TEST(StoredProgram, RefusesTextsThatBreakRules) {
  EXPECT_USER_ERROR(StoredProgram::parse("weft program 2\n"), "program text of version 2", "reads version 1");
  EXPECT_USER_ERROR(program_of("input x %0 f32 [a=2]\n%1 f32 [a=3] = map %0 expr=$0\n"),
                    "the program breaks a rule: dim 'a' of operand 0 is in the output, of the same size",
                    "program text: %1 f32 [a=3] {} = map", "compare the line with what weft explain --program writes");
  EXPECT_USER_ERROR(program_of("input x %0 f32 [a=2] {| sum:data}\n"), "input 'x' is partial: a sum is pending",
                    "write inputs and variables of a program without a pending reduction");
  EXPECT_USER_ERROR(program_of("variable v %0 f32 [a=2] {| max:data} fixed\n"), "variable 'v' is partial: a max");
  EXPECT_USER_ERROR(program_of("input x %0 f32 [a=2]\n%1 f32 [a=2] = map %0 expr=tahn($0)\n"),
                    "the program breaks a rule: there is no pointwise function 'tahn': did you mean 'tanh'?");
  EXPECT_USER_ERROR(program_of("input x %0 f32 [a=2]\n%1 f32 [a=2] = map %0 expr=exp($0, $0)\n"),
                    "the program breaks a rule: 'exp' takes 1 operand, not 2");
  EXPECT_USER_ERROR(program_of(R"(input x %0 f32 [a=2 b=3 c=4]
%1 f32 [a=2 c=4] = fused %0
  input in0 %0 f32 [a=2 b=3 c=4]
  %1 f32 [a=2 c=4] = reduce %0 how=sum
  output out0 %1
  end
)")
                        .run({}, {.random_inputs = 1}),
                    "the program cannot be bound to kernels: ", "a fused body that cannot run in one sweep",
                    "compare the text with the output of weft explain --program");
}

TEST(StoredProgram, RefusesWhatNoMachineHolds) {
  const std::string fix = "make the program from smaller sizes, or run it on a machine with more memory";
  const StoredProgram huge = program_of("input x %0 f32 [a=17592186044416]\noutput x %0\n");  // 2^44
  EXPECT_USER_ERROR(huge.run({}, {.random_inputs = 1}), "the program needs 281474976710656 bytes, but ",
                    " are all there is", fix);
  std::string many;
  for (int i = 0; i < 70000; ++i) many += str("input x", i, " %", i, " f64 [a=17592186044416]\n");
  EXPECT_USER_ERROR(program_of(many), "the program needs more than 2^60 bytes on each processor", fix);
  EXPECT_USER_ERROR(program_of("input x %0 f64 [a=17592186044416]\noutput x %0\n", "data:65536"),
                    "the program needs more than 2^60 bytes on all processors", fix);
  EXPECT_USER_ERROR(program_of(kDouble).run({{"x", ramp({{"a", 4}})}}, {.most_bytes = 100}),
                    "bytes, but 100 are all there is");
  EXPECT_USER_ERROR(program_of(kDouble, "data:2048").run({}, {.random_inputs = 1}),
                    "the program is for 2048 processors, each a thread here",
                    "make the program for at most 1024 processors");
}

TEST(StoredProgram, LoadsFiles) {
  const std::string path =
      (std::filesystem::path(testing::TempDir()) / str("weft_stored_", getpid(), ".weft")).string();
  EXPECT_USER_ERROR(StoredProgram::load(path), "cannot read the program '", path,
                    "give the path of a text that weft explain --program has written");
  EXPECT_USER_ERROR(StoredProgram::load(testing::TempDir()), "cannot read the program '");
  std::ofstream(path) << text_of(kDouble);
  EXPECT_EQ(StoredProgram::load(path).run({{"x", ramp({{"a", 4}})}}).outputs[0].second.at(0), -6);
  std::ofstream(path) << "no program";
  EXPECT_USER_ERROR(StoredProgram::load(path), "the text has no version line", str("where: ", path, ": program text"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace weft::stored_program_test
