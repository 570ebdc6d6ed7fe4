// What a user reads when a layout cannot work for a graph, or the updates of a step contradict each other.
#include "errors/lines.h"

namespace weft::partition_errors_test {
namespace {

using test::here;
using test::lines;

class PartitionErrors : public ::testing::Test {
 protected:
  void compile(const std::string& mesh, const std::string& layout, const CompileOptions& options) {
    Session(Mesh::parse(mesh)).compile(g, Layout::parse(layout), options);
  }

  const Dim batch{"batch", 6}, heads{"heads", 4}, width{"width", 8};
  Graph g;
  Tensor x = g.input("x", {batch, heads});
};

TEST_F(PartitionErrors, UpdateThatIsNone) {
  const auto [y, line] = std::pair(exp(x), here());
  EXPECT_USER_ERROR(compile("", "", {.update = {y}}),
                    lines("'exp' was given as an update, but it is not an assignment", "exp at " + line,
                          "give the results of assign(), assign_add(), assign_sub() or an optimizer"));
}

TEST_F(PartitionErrors, VariableAssignedTwice) {
  const Tensor w = g.variable("w", {});
  const auto [one, first] = std::pair(assign(w, w + 1.0), here());
  const auto [two, second] = std::pair(assign(w, w + 2.0), here());
  EXPECT_USER_ERROR(compile("", "", {.update = {one, two}}),
                    lines("variable 'w' is assigned twice in one step", first + " and " + second,
                          "give one update for each variable"));
}

TEST_F(PartitionErrors, FloatsThatBecomeIntegers) {
  EXPECT_USER_ERROR(compile("", "", {.fetch = {x}, .compute_as = DType::kI32}),
                    lines("the floats of a program cannot become i32", "CompileOptions::compute_as",
                          "give a floating-point dtype, such as DType::kF64"));
}

TEST_F(PartitionErrors, UnknownDimOrAxis) {
  EXPECT_USER_ERROR(
      compile("data:2", "bach:data", {.fetch = {x}}),
      lines(
          "the layout names dim 'bach', which no tensor has", "layout \"bach:data\", mesh data:2",
          "did you mean 'batch'? the dims are: batch, heads; end the rule with '?' if the dim or axis may be absent"));
  EXPECT_USER_ERROR(
      compile("data:2", "batch:model", {.fetch = {x}}),
      lines("the layout names axis 'model', which the mesh does not have", "layout \"batch:model\", mesh data:2",
            "the axes are: data; end the rule with '?' if the dim or axis may be absent"));
}

TEST_F(PartitionErrors, SizeThatDoesNotDivide) {
  EXPECT_USER_ERROR(compile("data:4", "batch:data", {.fetch = {exp(x)}}),
                    "tensor 'x' [batch=6 heads=4] cannot be split evenly: dim batch of size 6 over axis 'data' of 4 "
                    "processors",
                    ", layout \"batch:data\", mesh data:4",
                    "give batch a size of 4 or 8, or lay it over 3 or 6 processors");
}

// An intermediate that does not divide, though all inputs do.
TEST_F(PartitionErrors, IntermediateThatDoesNotDivide) {
  const auto [y, line] = std::pair(slice(x, heads, 0, 3).named("first"), here());
  EXPECT_USER_ERROR(compile("model:4", "heads:model", {.fetch = {y}}),
                    lines("tensor 'first' [batch=6 heads=3] cannot be split evenly: dim heads of size 3 over axis "
                          "'model' of 4 processors",
                          "slice at " + line + ", layout \"heads:model\", mesh model:4",
                          "give heads a size of 4, or lay it over 3 processors"));
}

TEST_F(PartitionErrors, TwoDimsOfATensorOnOneAxis) {
  EXPECT_USER_ERROR(compile("data:2 model:2", "batch,heads:model", {.fetch = {exp(x)}}),
                    "input 'x' [batch=6 heads=4] would be split twice over axis 'model': dims batch and heads are both "
                    "laid on it",
                    "layout \"batch,heads:model\", mesh data:2 model:2",
                    "lay one of them on another axis (free: data), or rename one dim with rename()");
}

// Neither tensor is split twice, but the product has both dims at once.
TEST_F(PartitionErrors, TwoDimsOfAnOpOnOneAxis) {
  const Tensor w = g.variable("w", {heads, width});
  const auto [y, line] = std::pair(einsum({reduce_sum(x, {heads}), reduce_sum(w, {heads})}, {batch, width}), here());
  EXPECT_USER_ERROR(compile("model:2", "batch,width:model", {.fetch = {y}}),
                    lines("einsum 'einsum' [batch=6 width=8] would be split twice over axis 'model': dims batch and "
                          "width are both laid on it",
                          "einsum at " + line + ", layout \"batch,width:model\", mesh model:2",
                          "lay one of them on another axis (free: none), or rename one dim with rename()"));
}

TEST_F(PartitionErrors, StorageLayoutThatCannotWork) {
  const auto [w, line] = std::pair(g.variable("w", {batch, width}), here());
  const auto store = [&](const std::string& rules) {
    Session session(Mesh::parse("data:2 model:4"), wire::threads(), device::reference(),
                    {.store = Store::parse(rules, 3)});
    session.compile(g, Layout::parse("width:model"), {.fetch = {w}});
  };
  const std::string place = ", layout \"width:model\", mesh data:2 model:4";
  EXPECT_USER_ERROR(store("batch,width:data"),
                    lines("stored variable 'w' [batch=6 width=8] would be split twice over axis 'data': dims batch and "
                          "width are both laid on it",
                          "variable at " + line + ", storage layout \"batch,width:data\"" + place,
                          "lay one of them on another axis (free: model), or rename one dim with rename()"));
  const auto [v, at] = std::pair(g.variable("v", {{"kind", 3}}), here());
  EXPECT_USER_ERROR(
      Session(Mesh::parse("data:2"), wire::threads(), device::reference(), {.store = Store::parse("kind:data", 3)})
          .compile(g, {}, {.fetch = {v}}),
      lines("stored variable 'v' [kind=3] cannot be split evenly: dim kind of size 3 over axis 'data' of 2 processors",
            "variable at " + at + ", storage layout \"kind:data\", mesh data:2",
            "give kind a size of 2 or 4, or lay it over 3 processors"));
  EXPECT_USER_ERROR(store("widht:data"), lines("the storage layout names dim 'widht', which no tensor has",
                                               "storage layout \"widht:data\", mesh data:2 model:4",
                                               "did you mean 'width'? the dims are: batch, heads, kind, width; end the "
                                               "rule with '?' if the dim or axis may be absent"));
  EXPECT_USER_ERROR(store("*:dta"), "the storage layout names axis 'dta', which the mesh does not have",
                    "did you mean 'data'? the axes are: data, model");
}

TEST_F(PartitionErrors, WithLayoutOfAnUnknownAxis) {
  const auto [y, line] = std::pair(with_layout(x, "batch:modle"), here());
  EXPECT_USER_ERROR(
      compile("data:2 model:2", "", {.fetch = {y}}),
      lines("the layout names axis 'modle', which the mesh does not have",
            "with_layout at " + line + ", layout \"batch:modle\", mesh data:2 model:2",
            "did you mean 'model'? the axes are: data, model; end the rule with '?' if the dim or axis may be absent"));
}

TEST_F(PartitionErrors, WithLayoutThatDoesNotDivide) {
  const auto [y, line] = std::pair(with_layout(x, "batch:model").named("turned"), here());
  EXPECT_USER_ERROR(
      compile("model:4", "", {.fetch = {y}}),
      "tensor 'turned' [batch=6 heads=4] cannot be split evenly: dim batch of size 6 over axis 'model' of "
      "4 processors",
      "with_layout at " + line);
}

}  // namespace
}  // namespace weft::partition_errors_test
