// with_layout: one value lies by its own rules. What follows it, where it goes back, and that nothing of it is silent.
#include <gtest/gtest.h>

#include "base/str.h"
#include "support/sampling.h"
#include "weft/explain.h"

namespace weft::with_layout_test {
namespace {

class WithLayout : public ::testing::Test {
 protected:
  // How often the compiled program has an instruction of this name.
  static int count(const std::string& text, const std::string& instruction) {
    int found = 0;
    for (std::size_t at = 0; (at = text.find(" = " + instruction + " ", at)) != std::string::npos; ++at) ++found;
    return found;
  }
  static int collectives(const std::string& text) {
    int sum = 0;
    for (const char* kind : {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "permute"})
      sum += count(text, kind);
    return sum;
  }

  // The program under this layout on two processors, whose numbers must be those of one (where a rule with '?' is idle).
  std::string compiled(const Tensor& y, const std::string& layout = "a:p") const {
    const Feeds feeds{{x, test::filled({a, b}, uniform(-1, 1), DType::kF32, 3)}};
    Session session(Mesh::parse("p:2"));
    Executable step = session.compile(g, Layout::parse(layout), {.fetch = {y}});
    EXPECT_LE(relative_difference(step.run(feeds)[y], eval(y, feeds)), 1e-6);
    return step.text();
  }

  const Dim a{"a", 4}, b{"b", 6};
  Graph g;
  Tensor x = g.input("x", {a, b});
};

TEST_F(WithLayout, MovesTheValueByTheCheapestCollective) {
  const std::string text = compiled(with_layout(x, "a:- b:p?"));
  EXPECT_EQ(count(text, "all_to_all"), 1) << text;
  EXPECT_EQ(collectives(text), 1) << text;
}

TEST_F(WithLayout, GathersWhatIsToBeWhole) {
  const std::string text = compiled(with_layout(x, "a:-"));
  EXPECT_EQ(count(text, "all_gather"), 1) << text;
  EXPECT_EQ(collectives(text), 1) << text;
}

TEST_F(WithLayout, SplitsWhatIsWholeForNothing) { EXPECT_EQ(collectives(compiled(with_layout(x, "b:p?"), "")), 0); }

TEST_F(WithLayout, OpsOfOneOperandAndReductionsFollow) {
  const Tensor y = with_layout(x, "a:- b:p?");
  const std::string text = compiled(reduce_max(exp(y) * 2.0, {a}));
  EXPECT_EQ(count(text, "all_to_all"), 1) << text;
  EXPECT_EQ(collectives(text), 1) << text;  // the reduced dim is whole here: no all_reduce
}

TEST_F(WithLayout, GoesBackWhereItMeetsOthers) {
  const Tensor y = exp(with_layout(x, "a:- b:p?"));
  const std::string text = compiled(y + x);
  EXPECT_EQ(count(text, "all_to_all"), 2) << text;
  EXPECT_EQ(collectives(text), 2) << text;
}

// The axis splits a of one operand and b of the other: the op cannot have both, so its operands go by the layout.
TEST_F(WithLayout, GoesBackWhereOneAxisWouldSplitTwoDims) {
  const Tensor rows = reduce_sum(x, {b}), columns = with_layout(reduce_sum(x, {a}), "b:p?");
  const std::string text = compiled(rows * columns);
  EXPECT_EQ(count(text, "all_gather"), 1) << text;
}

TEST_F(WithLayout, OperandsThatLieAlikeStayTogether) {
  const Tensor y = with_layout(x, "a:- b:p?");
  const std::string text = compiled(exp(y) + square(y));
  EXPECT_EQ(collectives(text), 1) << text;
}

TEST_F(WithLayout, ExplainNamesTheLine) {
  const auto [y, line] = std::pair(with_layout(x, "a:- b:p?"), to_string(Site::current()));
  const Explanation e =
      explain(g, Mesh::parse("p:2"), Layout::parse("a:p"), {.fetch = {y}}, Machine::uniform(1e9, 1e9));
  ASSERT_EQ(e.collectives.size(), 1u);
  EXPECT_EQ(e.collectives[0].kind, "all_to_all");
  EXPECT_EQ(e.collectives[0].cause, std::vector<std::string>{line + " with_layout"});
  EXPECT_EQ(e.collectives[0].elements, 12);
}

TEST_F(WithLayout, DerivativePassesThrough) {
  const Tensor y = reduce_sum(square(with_layout(x, "a:- b:p?"))), dx = gradients({y}, {x})[0];
  compiled(dx);
  EXPECT_EQ(dx.shape(), x.shape());
}

}  // namespace
}  // namespace weft::with_layout_test
