// What a user reads from sessions, executables, explain, the bench and the built-in models.
#include <cmath>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "errors/lines.h"
#include "weft/detail/bench.h"
#include "weft/explain.h"
#include "weft/detail/models.h"

namespace weft::api_errors_test {
namespace {

using test::lines;

class SessionErrors : public ::testing::Test {
 protected:
  const Dim a{"a", 4}, b{"b", 2};
  Graph g, other;
  Tensor x = g.input("x", {a, b}), w = g.variable("weight", {a}), y = (einsum({x, w}, {b})).named("y");
  Tensor far = other.input("far", {a});
  Session session{Mesh::parse("p:2")};
  const Layout layout = Layout::parse("a:p");
};

TEST_F(SessionErrors, UnknownWireOrRuntime) {
  EXPECT_USER_ERROR(
      Session(Mesh::parse("p:2"), wire::Choice{"pigeons"}),
      lines("there is no wire 'pigeons'", "session on mesh p:2", "use wire::threads(), wire::mpi() or wire::nccl()"));
  EXPECT_USER_ERROR(Session(Mesh(), {"pigeons"}, device::cpu()),
                    lines("there is no wire 'pigeons'", "session on mesh of one processor",
                          "use wire::threads(), wire::mpi() or wire::nccl()"));
  EXPECT_USER_ERROR(
      Session(Mesh::parse("p:2"), wire::threads(), device::Choice{"abacus"}),
      lines("there is no device 'abacus'", "session on mesh p:2", "use one of the devices: cpu, reference, cuda"));
}

TEST_F(SessionErrors, OptionsOutOfRange) {
  const auto with = [](const SessionOptions& options) { Session(Mesh(), wire::threads(), device::cpu(), options); };
  for (const double seconds : {0.0, -1.0, std::nan("")})
    EXPECT_USER_ERROR(with({.deadline_seconds = seconds}), "processors cannot wait ", " s for each other\n",
                      "give SessionOptions::deadline_seconds a number above 0");
  EXPECT_USER_ERROR(with({.workers = -3}), "a processor cannot have -3 threads",
                    "give SessionOptions::workers a number of threads, or 0 for the engine's choice");
}

TEST_F(SessionErrors, UnknownVariable) {
  EXPECT_USER_ERROR(session.value("weight"),
                    lines("the session holds no variable 'weight'", "session on mesh p:2", "it holds: none yet"));
  session.compile(g, layout, {.fetch = {y}});
  EXPECT_USER_ERROR(session.value("wieght"),
                    lines("the session holds no variable 'wieght'", "session on mesh p:2", "did you mean 'weight'?"));
  EXPECT_USER_ERROR(session.set_value("bias", Array()), "the session holds no variable 'bias'", "it holds: weight");
}

TEST_F(SessionErrors, ValuesOfAnotherShape) {
  session.compile(g, layout, {.fetch = {y}});
  EXPECT_USER_ERROR(session.set_value("weight", Array({b}, DType::kF32)),
                    lines("variable 'weight' [a=4] cannot take values of shape [b=2]", "Session::set_value",
                          "give an array with the variable's dims"));
}

TEST_F(SessionErrors, VariableHeldOtherwise) {
  session.compile(g, layout, {.fetch = {y}});
  EXPECT_USER_ERROR(
      session.compile(g, Layout(), {.fetch = {y}}),
      lines("variable 'weight' is held as f32 [a=2] {a:p}, but this graph needs f32 [a=4] {}", "layout \"\", mesh p:2",
            "compile with the layout and dtypes of the first executable, or make a new Session"));
  EXPECT_USER_ERROR(session.compile(g, layout, {.fetch = {y}, .compute_as = DType::kF64}),
                    "is held as f32 [a=2] {a:p}, but this graph needs f64 [a=2] {a:p}");
}

TEST_F(SessionErrors, FetchFromAnotherGraph) {
  EXPECT_USER_ERROR(session.compile(g, layout, {.fetch = {far}}),
                    lines("a tensor to fetch is 'far' of another graph", "Session::compile",
                          "give tensors of the graph that is compiled"));
  EXPECT_USER_ERROR(session.compile(g, layout, {.fetch = {Tensor()}}), "a tensor to fetch is empty");
  EXPECT_USER_ERROR(session.compile(g, layout, {.update = {far}}), "a tensor to update is 'far' of another graph");
}

class RunErrors : public SessionErrors {
 protected:
  Executable step = session.compile(g, layout, {.fetch = {y}});
  const Array values{{a, b}, DType::kF32};
};

TEST_F(RunErrors, InputNotGiven) {
  EXPECT_USER_ERROR(step.run(), lines("input 'x' was not given", "Executable::run",
                                      "feed every input that the fetched tensors and updates stand on"));
}

TEST_F(RunErrors, InputOfAnOptimizerNotGiven) {
  const optim::Adam adam(reduce_sum(y), g.variables());
  Executable training = session.compile(g, layout, {.fetch = {y}, .update = adam.updates()});
  EXPECT_USER_ERROR(training.run({{x, values}}),
                    lines("input 'adam/rate' was not given", "Executable::run",
                          "the optimizer made this input: add optimizer.feeds(step, rate) to the feeds"));
  Feeds feeds = adam.feeds(1, 0.1);
  feeds.emplace_back(x, values);
  EXPECT_NO_THROW(training.run(feeds));
}

TEST_F(RunErrors, InputFedTwice) {
  EXPECT_USER_ERROR(step.run({{x, values}, {x, values}}),
                    lines("input 'x' was fed twice", "Executable::run", "give one array for each input"));
}

TEST_F(RunErrors, FeedOfAnotherShapeOrKind) {
  const std::string fix = "give an array with the input's dims and kind of dtype";
  EXPECT_USER_ERROR(step.run({{x, Array({a}, DType::kF32)}}),
                    lines("input 'x' is f32 [a=4 b=2], but f32 [a=4] was given", "Executable::run", fix),
                    "code:  run.input-mismatch");
  EXPECT_USER_ERROR(step.run({{x, values.cast(DType::kI32)}}),
                    lines("input 'x' is f32 [a=4 b=2], but i32 [a=4 b=2] was given", "Executable::run", fix));
}

TEST_F(RunErrors, FeedOfWhatIsNoInput) {
  EXPECT_USER_ERROR(
      step.run({{x, values}, {y, Array({b}, DType::kF32)}}),
      lines("'y' is not an input of this graph", "Executable::run", "give a tensor that Graph::input() made"));
  EXPECT_USER_ERROR(step.run({{x, values}, {far, Array({a}, DType::kF32)}}), "'far' is not an input");
  EXPECT_USER_ERROR(step.run({{Tensor(), values}}), "an empty tensor is not an input of this graph");
}

TEST_F(RunErrors, ValueThatWasNotFetched) {
  const Values out = step.run({{x, values}});
  EXPECT_USER_ERROR(out[x], lines("'x' was not fetched", "Values", "name it in CompileOptions::fetch"));
  EXPECT_USER_ERROR(out[Tensor()], "an empty tensor was not fetched");
  EXPECT_USER_ERROR(out.scalar(y), "item() was called on an array of shape [b=2]");
}

// A tensor of another graph may have the number of one that was fetched.
TEST_F(RunErrors, ValueOfAnotherGraph) {
  Graph twin;
  const Tensor twin_x = twin.input("x", {a, b}), twin_w = twin.variable("weight", {a});
  const Tensor same_id = einsum({twin_x, twin_w}, {b}).named("twin");
  ASSERT_EQ(same_id.id(), y.id());
  EXPECT_USER_ERROR(step.run({{x, values}})[same_id], "'twin' was not fetched");
}

// The errors of a bad feed leave the session as it was.
TEST_F(RunErrors, SessionIsUsableAfterThem) {
  EXPECT_USER_ERROR(step.run(), "was not given");
  EXPECT_EQ(step.run({{x, values}})[y].at(0), 0);
}

TEST(ExplainErrors, MachineWithoutRates) {
  Graph g;
  const Tensor x = g.input("x", {});
  EXPECT_USER_ERROR(explain(g, Mesh(), Layout(), {.fetch = {x}}, Machine{}),
                    lines("a machine cannot have 0 flops and 0 bytes per second", "explain",
                          "give rates above zero, or use measure_machine()"));
}

TEST(ExplainErrors, UnknownTensorToShow) {
  Graph g;
  const Tensor x = g.input("image", {{"a", 4}});
  const Explanation e =
      explain(g, Mesh::parse("p:2"), Layout::parse("a:p"), {.fetch = {exp(x)}}, Machine::uniform(1e9, 1e9));
  EXPECT_USER_ERROR(e.text({"imgae"}), lines("the program has no tensor 'imgae' to show", "layout \"a:p\", mesh p:2",
                                             "did you mean 'image'?"));
  EXPECT_USER_ERROR(e.text({"quite another"}), "give a name that the program's text has after a '%' and a number");
}

TEST(BenchErrors, KindsCountsAndSizes) {
  EXPECT_USER_ERROR(
      bench::collectives({.kinds = {"all_reduse"}}),
      lines("there is no collective 'all_reduse'", "bench::collectives",
            "did you mean 'all_reduce'? the kinds are: all_reduce, reduce_scatter, all_gather, all_to_all, "
            "permute"));
  EXPECT_USER_ERROR(bench::collectives({.wire = "string"}),
                    lines("there is no wire 'string' to measure", "bench::collectives", "the wires are: threads, mpi"));
  EXPECT_USER_ERROR(bench::collectives({.processors = {0}}),
                    lines("cannot measure on 0 processors", "bench::collectives", "give from 1 to 1024 processors"));
  EXPECT_USER_ERROR(bench::collectives({.bytes = {0}}), lines("cannot measure with buffers of 0 bytes",
                                                              "bench::collectives", "give from 1 byte to 16 GiB"));
  EXPECT_USER_ERROR(bench::collectives({.repeats = 0}),
                    lines("cannot measure with 0 repeats", "bench::collectives", "give from 1 to 100000 repeats"));
}

TEST(ModelErrors, UnknownModel) {
  EXPECT_USER_ERROR(models::build("two_layers"),
                    lines("there is no built-in model 'two_layers'", "models::build",
                          "did you mean 'two_layer'? the models are: two_layer, mlp, transformer"));
}

TEST(ModelErrors, Sizes) {
  EXPECT_USER_ERROR(models::build("two_layer", {{"hiden", 8}}),
                    lines("model 'two_layer' has no size 'hiden' to set", "size hiden=8",
                          "did you mean 'hidden'? it has: batch, hidden, io"));
  EXPECT_USER_ERROR(models::parse_sizes("batch=64,hidden"),
                    lines("'hidden' does not set a size", "sizes \"batch=64,hidden\", column 10",
                          "write dim=size with a whole size of at least one, as in batch=64,hidden=1024"));
  EXPECT_USER_ERROR(models::parse_sizes("batch=0"), "'batch=0' does not set a size");
  EXPECT_USER_ERROR(models::parse_sizes("a=1,a=2"),
                    lines("the size of 'a' is set twice", "sizes \"a=1,a=2\", column 5", "set it once"));
}

}  // namespace
}  // namespace weft::api_errors_test
