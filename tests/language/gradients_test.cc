// gradients(): accumulation, reachability, given dys, second order, ties, and the derivatives that are the user's.
#include <gtest/gtest.h>

#include <cmath>

#include "weft/weft.h"

namespace weft::gradients_test {
namespace {

const Dim kA{"a", 3};

class Gradients : public ::testing::Test {
 protected:
  using V = std::vector<double>;

  V values(const Tensor& y, const V& at) const { return eval(y, {{x, Array({kA}, at, DType::kF32)}}).values(); }
  // The derivative of the sum of y by x, at these numbers.
  V derivative(const Tensor& y, const V& at) const { return values(gradients({y}, {x})[0], at); }

  Graph g;
  Tensor x = g.input("x", {kA});
};

TEST_F(Gradients, AddUpOverSeveralUses) {
  EXPECT_EQ(derivative(x * x + x * 3.0, {1, 2, -4}), (V{5, 7, -5}));
  const Tensor y = x * 2.0;
  EXPECT_EQ(derivative(add_n({y, y, y, x}), {0, 0, 0}), (V{7, 7, 7}));
}

TEST_F(Gradients, OfSeveralYsAddUp) {
  const Tensors d = gradients({x * 2.0, reduce_sum(x * x)}, {x});
  EXPECT_EQ(values(d[0], {1, 2, 3}), (V{4, 6, 8}));
}

TEST_F(Gradients, ComeWithTheValue) {
  const auto [value, grads] = value_and_grad([](const Tensors& xs) { return reduce_sum(xs[0] * xs[0]); }, {x});
  EXPECT_EQ(values(value, {1, 2, 3}), (V{14}));
  EXPECT_EQ(values(grads[0], {1, 2, 3}), (V{2, 4, 6}));
}

TEST_F(Gradients, OfAYByItself) {
  const Tensor y = exp(x);
  EXPECT_EQ(values(gradients({y}, {y})[0], {1, 2, 3}), (V{1, 1, 1}));
}

TEST_F(Gradients, ByIntermediates) {
  const Tensor h = x * 2.0, y = h * h;
  const Tensors d = gradients({y}, {h, x});
  EXPECT_EQ(values(d[0], {1, 2, 3}), (V{4, 8, 12}));
  EXPECT_EQ(values(d[1], {1, 2, 3}), (V{8, 16, 24}));
}

TEST_F(Gradients, OfTheUnreachableAreEmpty) {
  const Tensor other = g.input("other", {kA}), w = g.variable("w", {kA});
  const Tensors d = gradients({exp(x) + stop_gradient(w)}, {other, x, w, floor(x)});
  EXPECT_FALSE(d[0]);
  EXPECT_TRUE(d[1]);
  EXPECT_FALSE(d[2]);
  EXPECT_FALSE(d[3]);
}

TEST_F(Gradients, AreWeighedByDys) {
  const Tensor y = x * x, dy = g.input("dy", {kA});
  const Tensor d = gradients({y}, {x}, {dy})[0];
  const Array at({kA}, {1, 2, 3}, DType::kF32), weights({kA}, {10, 0, -1}, DType::kF32);
  EXPECT_EQ(eval(d, {{x, at}, {dy, weights}}).values(), (V{20, 0, -6}));
}

TEST_F(Gradients, HaveTheOrderOfTheirX) {
  const Dim b{"b", 2};
  const Tensor z = g.input("z", {kA, b}), y = transpose(z, {b, kA}) * 2.0;
  EXPECT_EQ(gradients({y}, {z})[0].shape(), (Shape{kA, b}));
  // A dy in another order than its y is put in order too.
  const Tensor d = gradients({y}, {z}, {g.input("dy", {kA, b})})[0];
  EXPECT_EQ(d.shape(), (Shape{kA, b}));
}

TEST_F(Gradients, OfGradients) {
  const Tensor y = x * x * x, first = gradients({y}, {x})[0];
  EXPECT_EQ(derivative(first, {1, 2, -1}), (V{6, 12, -6}));
  const Tensor second = gradients({first}, {x})[0];
  EXPECT_EQ(derivative(second, {1, 2, -1}), (V{6, 6, 6}));
}

TEST_F(Gradients, OfTiesAreSharedEvenly) {
  EXPECT_EQ(derivative(maximum(x, 2.0), {1, 2, 3}), (V{0, 0.5, 1}));
  EXPECT_EQ(derivative(minimum(x, 2.0), {1, 2, 3}), (V{1, 0.5, 0}));
  EXPECT_EQ(derivative(maximum(x, x), {1, 2, 3}), (V{1, 1, 1}));
  EXPECT_EQ(derivative(reduce_max(x), {5, 1, 5}), (V{0.5, 0, 0.5}));
  EXPECT_EQ(derivative(reduce_min(x), {1, 1, 1}), (V{1.0f / 3, 1.0f / 3, 1.0f / 3}));
}

TEST_F(Gradients, AtCorners) {
  EXPECT_EQ(derivative(relu(x), {-1, 0, 1}), (V{0, 0, 1}));
  EXPECT_EQ(derivative(abs(x), {-1, 0, 1}), (V{-1, 0, 1}));
}

// What select does not choose has no derivative, not even 0 * infinity.
TEST_F(Gradients, SelectLeaksNoNaN) {
  const Tensor safe = select(greater(x, 0.0), log(select(greater(x, 0.0), x, 1.0)), 0.0);
  EXPECT_EQ(derivative(safe, {-1, 0, 2}), (V{0, 0, 0.5}));
  const Tensor chosen = select(greater(x, 0.0), x, x / 0.0);  // infinite where not chosen
  EXPECT_EQ(values(chosen, {1, 2, 3}), (V{1, 2, 3}));
  EXPECT_EQ(derivative(select(greater(x, 0.0), x * 2.0, stop_gradient(x / 0.0)), {1, 2, 3}), (V{2, 2, 2}));
}

// A derivative that comes in where nothing was chosen goes nowhere, be it infinite.
TEST_F(Gradients, SelectDropsWhatItDidNotChoose) {
  const Tensor y = select(greater(x, 2.0), x, 0.0), dy = g.input("dy", {kA});
  const Array at({kA}, {0, 1, 3}, DType::kF32), incoming({kA}, {NAN, INFINITY, 5}, DType::kF32);
  EXPECT_EQ(eval(gradients({y}, {x}, {dy})[0], {{x, at}, {dy, incoming}}).values(), (V{0, 0, 5}));
}

TEST_F(Gradients, OfProductsWithZeros) {
  EXPECT_EQ(derivative(reduce_product(x), {2, 3, 4}), (V{12, 8, 6}));
  EXPECT_EQ(derivative(reduce_product(x), {2, 0, 4}), (V{0, 8, 0}));
  EXPECT_EQ(derivative(reduce_product(x), {0, 0, 4}), (V{0, 0, 0}));
}

TEST_F(Gradients, StopGradient) {
  EXPECT_EQ(derivative(x * stop_gradient(x), {1, 2, 3}), (V{1, 2, 3}));
  EXPECT_EQ(values(stop_gradient(x), {1, 2, 3}), (V{1, 2, 3}));
}

TEST_F(Gradients, CustomGradientReplacesTheOwn) {
  const auto forward = [](const Tensors& in) { return Tensors{square(in[0]), in[0] * 3.0}; };
  const auto backward = [](const Tensors& in, const Tensors& out, const Tensors& dy) {
    return Tensors{dy[0] * in[0] * 100.0 + dy[1] + out[1] * 0.0};
  };
  const Tensors y = custom_gradient({x}, forward, backward);
  EXPECT_EQ(values(y[0], {1, 2, 3}), (V{1, 4, 9}));
  EXPECT_EQ(values(y[1], {1, 2, 3}), (V{3, 6, 9}));
  EXPECT_EQ(derivative(y[0], {1, 2, 3}), (V{100, 200, 300}));
  EXPECT_EQ(derivative(y[0] + y[1], {1, 2, 3}), (V{101, 201, 301}));
}

TEST_F(Gradients, CustomGradientMayGiveNone) {
  const auto forward = [](const Tensors& in) { return Tensors{in[0] * in[1]}; };
  const auto backward = [](const Tensors&, const Tensors&, const Tensors& dy) { return Tensors{dy[0], Tensor()}; };
  const Tensor y = g.input("y", {kA});
  const Tensors d = gradients({custom_gradient({x, y}, forward, backward)[0]}, {x, y});
  EXPECT_TRUE(d[0]);
  EXPECT_FALSE(d[1]);
}

// Casts carry derivatives between floats and stop them at integers.
TEST_F(Gradients, ThroughCasts) {
  const Tensor wide = cast(x, DType::kF64) * 2.0, d = gradients({wide}, {x})[0];
  EXPECT_EQ(d.dtype(), DType::kF32);
  EXPECT_EQ(values(d, {1, 2, 3}), (V{2, 2, 2}));
  const Tensor n = g.input("n", {kA}, DType::kI32);
  EXPECT_FALSE(gradients({cast(n, DType::kF32) + x}, {n})[0]);
}

}  // namespace
}  // namespace weft::gradients_test
