// Facts that Mesh-TensorFlow's own tests state about the language, with our answer where we differ on purpose.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/str.h"
#include "layout/resolve.h"
#include "support/expect_error.h"
#include "weft/nn.h"
#include "weft/session.h"

namespace weft::test::facts_test {
namespace {

// --- Dims, strings, names ---

TEST(Facts, DimsOfOneShapeAreUnlike) {
  EXPECT_USER_ERROR(Shape({{"x", 4}, {"x", 4}}), "dim 'x' occurs twice");
  EXPECT_USER_ERROR(Shape({{"x", 4}, {"x", 5}}), "dim 'x' occurs twice");  // Mesh-TensorFlow lets this pass
  EXPECT_USER_ERROR(Shape({{"x", 0}}), "dim 'x' has size 0");
  EXPECT_EQ(Shape({{"x", 4}, {"y", 8}}).elements(), 32);
}

TEST(Facts, MeshStrings) {
  const Mesh mesh({{"x", 4}, {"y", 8}});
  for (const char* text : {"x:4;y:8", "x:4 y:8", "x:4,y:8", "x:4, y:8"}) EXPECT_EQ(Mesh::parse(text), mesh) << text;
  EXPECT_THROW(Mesh::parse("x;4"), UserError);
  EXPECT_THROW(Mesh::parse("x:4.y:8"), UserError);  // to Mesh-TensorFlow '.' is a separator, to us a letter
}

TEST(Facts, LayoutStrings) {
  const std::vector<LayoutRule> rules{{"d_ff", {"model"}}, {"heads", {"model"}}};
  for (const char* text : {"d_ff:model;heads:model", "d_ff:model heads:model", "d_ff:model,heads:model",
                           "d_ff:model, heads:model", "d_ff,heads:model"})
    EXPECT_EQ(Layout::parse(text).rules(), rules) << text;
  EXPECT_THROW(Layout::parse("d_ff;model"), UserError);
  EXPECT_THROW(Layout::parse("d_ff:model:heads"), UserError);
  EXPECT_THROW(Layout::parse("d_ff:model d_ff:data"), UserError);
}

TEST(Facts, ATensorLiesByTheNamesOfItsDims) {
  const Mesh mesh = Mesh::parse("batch:4,model:8");
  const DimAxes axes = resolve(Layout::parse("batch:batch,d_ff:model"), mesh, {"batch", "length", "d_ff"});
  const Shape shape{{"batch", 128}, {"length", 500}, {"d_ff", 2048}};
  const Sharding sharding = sharding_of(axes, shape, mesh, [] { return Subject{"tensor 'x'"}; });
  EXPECT_EQ(sharding.dims, (std::vector<Axes>{{0}, {}, {1}}));
}

TEST(Facts, ASecondVariableOfOneNameIsAnError) {  // Mesh-TensorFlow makes a, a_1, a_2
  Graph g;
  const Dim x{"x", 4};
  g.variable("a", {x});
  EXPECT_USER_ERROR(g.variable("a", {x}), "there is a variable 'a' already");
  EXPECT_EQ(variable_name(g.variable("A", {x})), "A");
  EXPECT_EQ(variable_name(g.variable("a_1", {x})), "a_1");
  const Graph::Scope scope = g.scope("s");
  EXPECT_EQ(variable_name(g.variable("a", {x})), "s/a");
}

TEST(Facts, AGraphKnowsItsVariables) {
  Graph g;
  const Tensor w = g.variable("w", {{"x", 4}});
  const Tensor step = g.variable("step", {}, init::zeros(), {.stored = DType::kI32, .trainable = false});
  EXPECT_EQ(g.variables(), Tensors{w});
  EXPECT_EQ(g.all_variables(), (Tensors{w, step}));
}

TEST(Facts, LayoutsThatCannotWorkAreRefused) {
  Graph g;
  const Tensor x = g.input("x", {{"a", 4}, {"b", 6}, {"c", 5}});
  Session session(Mesh::parse("rows:2,cols:2"));
  const auto compile = [&](const char* layout) { session.compile(g, Layout::parse(layout), {.fetch = {x}}); };
  EXPECT_USER_ERROR(compile("a:rows,b:rows"), "would be split twice over axis 'rows'", "dims a and b");
  EXPECT_USER_ERROR(compile("c:rows"), "cannot be split evenly", "dim c of size 5", "give c a size of 4 or 6");
  // Mesh-TensorFlow ignores it.
  EXPECT_USER_ERROR(compile("a:row"), "the layout names axis 'row'", "did you mean 'rows'?");
  compile("a:row? d:rows? b:cols");
}

// --- Pooling and striding by reshape and reduce ---

Array ramp(const Shape& shape) {
  Array x(shape, DType::kF32);
  for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, std::sin(1.7 * static_cast<double>(i)));
  return x;
}

// The elements of x [n, m, k, l] at k in steps of `stride` from `first` on.
Array every(const Array& x, std::int64_t stride, std::int64_t first) {
  const Shape& s = x.shape();
  Array y(s.resized("k", s.size_of("k") / stride), DType::kF32);
  const std::int64_t l = s.size_of("l"), rows = y.elements() / l;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < l; ++i) y.set(row * l + i, x.at((row * stride + first) * l + i));
  return y;
}

Array joined(const Array& a, const Array& b, double (*how)(double, double)) {
  Array y(a.shape(), a.dtype());
  for (std::int64_t i = 0; i < y.elements(); ++i) y.set(i, how(a.at(i), b.at(i)));
  return y;
}

TEST(Facts, PoolingIsAReductionOfWindows) {
  Graph g;
  const Dim k{"k", 4}, low{"low", 2};
  const Tensor x = g.input("x", {{"n", 2}, {"m", 3}, k, {"l", 5}});
  const Tensor windows = split_dim(x, k, {{"k", 2}, low});
  const Array values = ramp(x.shape()), even = every(values, 2, 0), odd = every(values, 2, 1);
  const Feeds feeds{{x, values}};
  const auto half_sum = [](double a, double b) { return (a + b) / 2; };
  EXPECT_LE(relative_difference(eval(mean(windows, {low}), feeds), joined(even, odd, half_sum)), 1e-6);
  const auto larger = [](double a, double b) { return std::max(a, b); };
  EXPECT_EQ(eval(reduce_max(windows, {low}), feeds).values(), joined(even, odd, larger).values());
  const auto smaller = [](double a, double b) { return std::min(a, b); };
  EXPECT_EQ(eval(reduce_min(windows, {low}), feeds).values(), joined(even, odd, smaller).values());
}

TEST(Facts, StridingIsTheFirstOfEveryWindow) {
  for (std::int64_t stride : {2, 3, 6}) {  // 6: the first of the whole dim
    Graph g;
    const Dim k{"k", 6}, low{"low", stride};
    const Tensor x = g.input("x", {{"n", 2}, {"m", 3}, k, {"l", 5}});
    const Tensor first = unstack(split_dim(x, k, {{"k", 6 / stride}, low}), low)[0];
    EXPECT_EQ(eval(first, {{x, ramp(x.shape())}}).values(), every(ramp(x.shape()), stride, 0).values());
  }
}

// --- The extra logit: Mesh-TensorFlow gives no derivative by it, ours is the exact one ---

TEST(Facts, TheExtraLogitIsOneMoreClass) {
  Graph g;
  const Dim a{"a", 3}, b{"b", 4};
  const Tensor x = g.input("x", {a, b}), extra = g.input("extra", {a});
  const Tensor dy = g.input("dy", {a, b}), dz = g.input("dz", {a});
  const Tensor y = softmax(x, b, extra), z = reduce_logsumexp(x, b, extra);
  const Tensor share = exp(extra - z);  // the probability of the extra class
  const Feeds feeds{{x, ramp({a, b})}, {extra, ramp({a})}, {dy, ramp({a, b})}, {dz, ramp({a})}};
  EXPECT_LE(relative_difference(eval(reduce_sum(y, {b}) + share, feeds), eval(ones_like(share), feeds)), 1e-6);
  const Tensor by_y = gradients({y}, {extra}, {dy})[0], by_z = gradients({z}, {extra}, {dz})[0];
  EXPECT_LE(relative_difference(eval(by_y, feeds), eval(-(share * reduce_sum(dy * y, {b})), feeds)), 1e-6);
  EXPECT_LE(relative_difference(eval(by_z, feeds), eval(dz * share, feeds)), 1e-6);
}

// --- The largest, on a split dim ---

struct Numbers {
  Dim a{"a", 6}, b{"b", 2};
  Array array{{a, b}, std::vector<float>{1, 10, 2, 9, 3, 8, 4, 7, 5, 6, 6, 5}};
};

TEST(Facts, TheSecondLargestAndTheSmallest) {
  const Numbers n;
  Graph g;
  const Tensor x = g.input("x", {n.a, n.b});
  const Tensor second = nth_largest(x, 1, n.a), least = nth_smallest(x, 0, n.b);
  Session session(Mesh::parse("all:2"));
  const Values got = session.compile(g, Layout::parse("a:all"), {.fetch = {second, least}}).run({{x, n.array}});
  EXPECT_EQ(got[second].values(), (std::vector<double>{5, 9}));
  EXPECT_EQ(got[least].values(), (std::vector<double>{1, 2, 3, 4, 5, 5}));
}

TEST(Facts, TopKOnATwoDimMesh) {
  const Numbers n;
  Graph g;
  const Dim k{"k", 2};
  const Tensor x = g.input("x", {n.a, n.b}), dy = g.input("dy", {n.b, k});
  const TopKResult best = top_k(x, n.a, k);
  const Tensor dx = gradients({best.values}, {x}, {dy})[0];
  Session session(Mesh::parse("rows:2,cols:2"));
  const CompileOptions options{.fetch = {best.values, best.indices, dx}};
  const Values got = session.compile(g, Layout::parse("a:rows,b:cols"), options)
                         .run({{x, n.array}, {dy, Array({n.b, k}, std::vector<float>{11, 12, 13, 14})}});
  EXPECT_EQ(got[best.values].shape(), Shape({n.b, k}));
  EXPECT_EQ(got[best.values].values(), (std::vector<double>{6, 5, 10, 9}));
  EXPECT_EQ(got[best.indices].values(), (std::vector<double>{5, 4, 0, 1}));
  EXPECT_EQ(got[dx].values(), (std::vector<double>{0, 13, 0, 14, 0, 0, 0, 0, 12, 0, 11, 0}));
}

// --- Layers: tests/nn checks them against loops; here is what Mesh-TensorFlow's tests ask of them ---

TEST(Facts, DenseMayMakeADimOfTheNameItSums) {
  for (const auto& [units, bias, name] : {std::tuple{4, true, "channels"}, std::tuple{8, false, "hidden"}}) {
    Graph g;
    const Dim hidden{"hidden", 8};
    const Tensor x = g.input("x", {{"batch", 5}, hidden});
    const Tensor y = nn::dense(x, {{name, units}}, {.bias = bias, .kernel_init = init::ones()});
    EXPECT_EQ(y.shape(), Shape({{"batch", 5}, {name, units}}));
    EXPECT_EQ(g.variables().size(), bias ? 2u : 1u);
    const Array values = ramp(x.shape()), got = eval(y, {{x, values}});
    for (std::int64_t i = 0; i < 5; ++i) {
      double sum = 0;
      for (std::int64_t j = 0; j < hidden.size; ++j) sum += values.at(i * hidden.size + j);
      for (std::int64_t j = 0; j < units; ++j) EXPECT_NEAR(got.at(i * units + j), sum, 1e-5);
    }
  }
}

TEST(Facts, WeightsOfWhatIsNotPadding) {
  Graph g;
  const Dim length{"length", 6};
  const Tensor ids = g.input("ids", {length}, DType::kI32);
  const Array values({length}, std::vector<std::int32_t>{7, 1, 0, 3, 0, 0});
  const Array got = eval(cast(not_equal(ids, 0), DType::kF32), {{ids, values}});
  EXPECT_EQ(got.values(), (std::vector<double>{1, 1, 0, 1, 0, 0}));
}

TEST(Facts, AttentionGivesTheDimsOfTheQueriesAndTheDepthOfTheValues) {
  Graph g;
  const Dim batch{"batch", 2}, heads{"heads", 3}, length{"length_q", 5}, memory{"length_kv", 7};
  const Dim d_k{"depth_k", 4}, d_v{"depth_v", 6};
  const Tensor q = g.input("q", {batch, heads, length, d_k}), k = g.input("k", {batch, heads, memory, d_k});
  const Tensor v = g.input("v", {batch, heads, memory, d_v});
  EXPECT_EQ(attend(q, k, v, memory, d_k).shape(), Shape({batch, heads, length, d_v}));
}

}  // namespace
}  // namespace weft::test::facts_test
