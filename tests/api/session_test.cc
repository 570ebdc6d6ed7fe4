// Sessions, executables and values: what is shared, what is read, what is checked, what happens when a run fails.
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>

#include "base/str.h"
#include "support/expect_error.h"
#include "weft/weft.h"

namespace weft::session_test {
namespace {

std::vector<double> ramp(std::int64_t count, double first = 0) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<double>(i);
  return values;
}

TEST(Session, ExecutablesShareVariables) {
  const Dim a{"a", 4};
  Graph train, look;
  const Tensor w = train.variable("w", {a}), same = look.variable("w", {a});
  Session session(Mesh::parse("p:2"));
  const Layout layout = Layout::parse("a:p");
  Executable step = session.compile(train, layout, {.update = {assign_add(w, ones_like(w))}});
  const Tensor sum = reduce_sum(same);
  Executable read = session.compile(look, layout, {.fetch = {sum}});
  EXPECT_EQ(read.run().scalar(sum), 0);
  step.run();
  EXPECT_EQ(read.run().scalar(sum), 4);
  step.run();
  EXPECT_EQ(read.run().scalar(sum), 8);
  EXPECT_EQ(session.variables(), std::vector<std::string>{"w"});
  EXPECT_EQ(session.mesh(), Mesh::parse("p:2"));
}

// A second compilation does not fill variables anew.
TEST(Session, CompilingAgainKeepsValues) {
  const Dim a{"a", 4};
  Graph g;
  const Tensor w = g.variable("w", {a}, init::normal(1));
  Session session{Mesh()};
  session.compile(g, Layout(), {.fetch = {w}});
  session.set_value("w", Array({a}, ramp(4), DType::kF32));
  EXPECT_EQ(session.compile(g, Layout(), {.fetch = {w}}).run()[w].values(), ramp(4));
}

class OldValues : public ::testing::TestWithParam<const char*> {};

// w1 := w2 and w2 := w1 in one step exchange them, whichever is written first; the fetched ones are the old.
TEST_P(OldValues, AreRead) {
  const Dim a{"a", 4}, b{"b", 6};
  Graph g;
  const Tensor w1 = g.variable("w1", {a, b}, init::values(Array({a, b}, ramp(24), DType::kF32)));
  const Tensor w2 = g.variable("w2", {a, b}, init::values(Array({a, b}, ramp(24, 100), DType::kF32)));
  Session session(Mesh::parse("p:2 q:2"));
  Executable swap =
      session.compile(g, Layout::parse(GetParam()), {.fetch = {w1}, .update = {assign(w1, w2), assign(w2, w1)}});
  EXPECT_EQ(swap.run()[w1].values(), ramp(24));
  EXPECT_EQ(session.value("w1").values(), ramp(24, 100));
  EXPECT_EQ(session.value("w2").values(), ramp(24));
  swap.run();
  EXPECT_EQ(session.value("w1").values(), ramp(24));
}

// As above, through a slice of the other variable: a view of memory that is written in the same step.
TEST_P(OldValues, AreReadThroughViews) {
  const Dim a{"a", 4}, b{"b", 6};
  Graph g;
  const Tensor w = g.variable("w", {a, b}, init::values(Array({a, b}, ramp(24), DType::kF32)));
  const Tensor turned = g.variable("turned", {b, a});
  Session session(Mesh::parse("p:2 q:2"));
  Executable step =
      session.compile(g, Layout::parse(GetParam()), {.update = {assign(turned, w), assign(w, shift(w, b, 1, true))}});
  step.run();
  EXPECT_EQ(session.value("turned").transposed({a, b}).values(), ramp(24));
  EXPECT_EQ(session.value("w").values()[0], 5);
  EXPECT_EQ(session.value("w").values()[1], 0);
}

INSTANTIATE_TEST_SUITE_P(Layouts, OldValues, ::testing::Values("", "a:p", "b:p", "a:p b:q", "a:p+q b:r?", "a:q+p"),
                         [](const auto& info) { return str("Layout", info.index); });

// Dense in declared order: what is put in comes out, whatever the split and the order of the array given.
TEST(Session, SetValueAndValueAreARoundTrip) {
  const Dim a{"a", 4}, b{"b", 6}, c{"c", 2};
  for (const char* layout : {"", "a:p", "c:q", "a:p+q", "b:q c:p", "a:q+p", "a:p b:q"}) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64, DType::kI64, DType::kU8}) {
      SCOPED_TRACE(str(layout, " ", dtype));
      Graph g;
      const Tensor w = g.variable("w", {a, b, c}, init::zeros(), {.stored = dtype});
      Session session(Mesh::parse("p:2 q:2"));
      Executable read = session.compile(g, Layout::parse(layout), {.fetch = {w}});
      const Array values({a, b, c}, ramp(48), dtype);
      session.set_value("w", values.transposed({c, a, b}));
      EXPECT_EQ(session.value("w").shape(), (Shape{a, b, c}));
      EXPECT_EQ(session.value("w").dtype(), dtype);
      EXPECT_EQ(session.value("w").values(), ramp(48));
      EXPECT_EQ(read.run()[w].values(), ramp(48));
    }
  }
}

// Feeds come in any dim order and in any dtype of the input's kind.
TEST(Session, FeedsAreFitted) {
  const Dim a{"a", 4}, b{"b", 6};
  Graph g;
  const Tensor x = g.input("x", {a, b}), n = g.input("n", {a}, DType::kI32);
  Session session(Mesh::parse("p:2"));
  Executable step = session.compile(g, Layout::parse("b:p"), {.fetch = {x, n}});
  const Array given({a, b}, ramp(24), DType::kF64), counts({a}, ramp(4), DType::kI64);
  const Values out = step.run({{n, counts}, {x, given.transposed({b, a})}});
  EXPECT_EQ(out[x].values(), ramp(24));
  EXPECT_EQ(out[x].dtype(), DType::kF32);
  EXPECT_EQ(out[n].values(), ramp(4));
  EXPECT_EQ(out[n].dtype(), DType::kI32);
}

TEST(Session, PrintAndMetrics) {
  const Dim a{"a", 4};
  Graph g;
  const Tensor x = g.input("x", {a});
  const Tensor shown = print(x * 2.0, "twice"), sum = reduce_sum(shown);
  scalar_metric("sum", sum);
  scalar_metric("largest", reduce_max(x));
  std::vector<std::string> said;
  Session session(Mesh::parse("p:2"), wire::threads(), device::reference(),
                  {.print = [&](const std::string& line) { said.push_back(line); }});
  const Feeds feeds{{x, Array({a}, ramp(4), DType::kF32)}};
  const Layout layout = Layout::parse("a:p");
  Executable with = session.compile(g, layout, {.fetch = {sum}, .metrics = true});
  const Values out = with.run(feeds);
  EXPECT_EQ(said, std::vector<std::string>{"twice f32 [a=4]: 0 2 4 6"});
  EXPECT_EQ(out.metrics(), (std::map<std::string, double>{{"largest", 3}, {"sum", 12}}));
  EXPECT_EQ(out.scalar(sum), 12);
  Executable without = session.compile(g, layout, {.fetch = {x}});
  EXPECT_TRUE(without.run(feeds).metrics().empty());
  EXPECT_EQ(said.size(), 1u) << "a print that nothing stands on was printed";
}

TEST(Session, EvalNeedsNoCeremony) {
  Graph g;
  const Dim a{"a", 3};
  const Tensor x = g.input("x", {a}), w = g.variable("w", {a}, init::constant(2));
  EXPECT_EQ(eval(x * w, {{x, Array({a}, ramp(3), DType::kF32)}}).values(), (std::vector<double>{0, 2, 4}));
  EXPECT_EQ(eval(constant(g, 7)).item(), 7);
}

TEST(Session, ComputeAsDoubleKeepsWhatFloatLoses) {
  Graph g;
  const Tensor x = g.input("x", {});
  const Tensor y = (x + 1.0) - 1.0;
  Session session{Mesh()};
  const Feeds feeds{{x, Array::scalar(1e-9, DType::kF64)}};
  EXPECT_EQ(session.compile(g, Layout(), {.fetch = {y}}).run(feeds).scalar(y), 0);
  const Values wide = session.compile(g, Layout(), {.fetch = {y}, .compute_as = DType::kF64}).run(feeds);
  EXPECT_NEAR(wide.scalar(y), 1e-9, 1e-15);
  EXPECT_EQ(wide[y].dtype(), DType::kF64);
}

TEST(Session, DumpShowsEveryPass) {
  Graph g;
  const Tensor x = g.input("x", {{"a", 4}});
  std::vector<std::string> passes;
  Session(Mesh::parse("p:2"))
      .compile(g, Layout::parse("a:p"),
               {.fetch = {reduce_sum(x)}, .dump = [&](std::string_view pass, const std::string& text) {
                  passes.emplace_back(pass);
                  EXPECT_EQ(text.find("weft program"), 0u);
                }});
  ASSERT_GT(passes.size(), 3u);
  EXPECT_EQ(passes.front(), "partition");
  EXPECT_EQ(passes.back(), "recompute_for_memory");
}

TEST(Session, ReportCountsTheStep) {
  Graph g;
  const Dim a{"a", 4}, b{"b", 8};
  const Tensor x = g.input("x", {a}), w = g.variable("w", {a, b});
  const Tensor y = einsum({x, w}, {b});
  const std::string report = Session(Mesh::parse("p:2")).compile(g, Layout::parse("a:p"), {.fetch = {y}}).report();
  EXPECT_NE(report.find("mesh p:2, layout \"a:p\""), std::string::npos) << report;
  EXPECT_NE(report.find("all_reduce"), std::string::npos) << report;
  EXPECT_NE(report.find("64 B"), std::string::npos) << report;  // half of w
}

}  // namespace
}  // namespace weft::session_test
