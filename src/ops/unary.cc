// Pointwise functions of one operand.
#include <functional>
#include <numbers>

#include "ops/pointwise.h"

namespace weft {

namespace {

using G = const Grad&;

const OpDef& kIdentity = unary("identity", "x itself.", uniform(-2, 2), [](G g) { return g.dy(); });
const OpDef& kNegative = unary("negative", "-x.", uniform(-2, 2), [](G g) { return -g.dy(); });
const OpDef& kAbs = unary("abs", "The absolute value; the derivative at 0 is 0.", uniform(-2, 2),
                          [](G g) { return g.dy() * sign(g.x()); });
const OpDef& kSign = unary("sign", "-1, 0 or 1; derivative 0.", uniform(-2, 2), [](G) { return Tensor(); });
const OpDef& kFloor =
    unary("floor", "The largest whole number <= x; derivative 0.", uniform(-3, 3), [](G) { return Tensor(); });
const OpDef& kSquare = unary("square", "x * x.", uniform(-2, 2), [](G g) { return g.dy() * (g.x() * 2.0); });
const OpDef& kSqrt = unary("sqrt", "The square root.", uniform(0.2, 4), [](G g) { return g.dy() * 0.5 / g.y(); });
const OpDef& kRsqrt =
    unary("rsqrt", "1 / sqrt(x).", uniform(0.2, 4), [](G g) { return g.dy() * -0.5 * g.y() / g.x(); });
const OpDef& kReciprocal =
    unary("reciprocal", "1 / x.", uniform(0.3, 3), [](G g) { return -(g.dy() * square(g.y())); });
const OpDef& kExp = unary("exp", "e to the x.", uniform(-3, 3), [](G g) { return g.dy() * g.y(); });
const OpDef& kExpm1 =
    unary("expm1", "exp(x) - 1, exact near 0.", uniform(-3, 3), [](G g) { return g.dy() * (g.y() + 1.0); });
const OpDef& kLog = unary("log", "The natural logarithm.", uniform(0.2, 4), [](G g) { return g.dy() / g.x(); });
const OpDef& kLog1p =
    unary("log1p", "log(1 + x), exact near 0.", uniform(-0.5, 3), [](G g) { return g.dy() / (g.x() + 1.0); });
const OpDef& kSin = unary("sin", "The sine.", uniform(-4, 4), [](G g) { return g.dy() * cos(g.x()); });
const OpDef& kCos = unary("cos", "The cosine.", uniform(-4, 4), [](G g) { return -(g.dy() * sin(g.x())); });
const OpDef& kAsinh = unary("asinh", "The inverse hyperbolic sine.", uniform(-3, 3),
                            [](G g) { return g.dy() * rsqrt(square(g.x()) + 1.0); });
const OpDef& kTanh =
    unary("tanh", "The hyperbolic tangent.", uniform(-3, 3), [](G g) { return g.dy() * (1.0 - square(g.y())); });
const OpDef& kErf = unary("erf", "The error function.", uniform(-2, 2),
                          [](G g) { return g.dy() * exp(-square(g.x())) * (2 / std::sqrt(std::numbers::pi)); });
const OpDef& kSigmoid =
    unary("sigmoid", "1 / (1 + exp(-x)).", uniform(-4, 4), [](G g) { return g.dy() * g.y() * (1.0 - g.y()); });
const OpDef& kSoftplus =
    unary("softplus", "log(1 + exp(x)).", uniform(-4, 4), [](G g) { return g.dy() * sigmoid(g.x()); });
const OpDef& kRelu = unary("relu", "max(x, 0); the derivative at 0 is 0.", uniform(-2, 2),
                           [](G g) { return select(greater(g.y(), 0.0), g.dy(), 0.0); });  // of y: x need not be kept
const OpDef& kElu = unary("elu", "x for x > 0, else exp(x) - 1.", uniform(-3, 3),
                          [](G g) { return select(greater(g.x(), 0.0), g.dy(), g.dy() * (g.y() + 1.0)); });
constexpr double kSeluScale = 1.0507009873554804934, kSeluAlpha = 1.6732632423543772848;
const OpDef& kSelu = unary("selu", "The self-normalising elu.", uniform(-3, 3), [](G g) {
  return select(greater(g.x(), 0.0), g.dy() * kSeluScale, g.dy() * (g.y() + kSeluScale * kSeluAlpha));
});

const OpDef& kLogicalNot = define_op({
    .name = "logical_not",
    .doc = "The opposite truth value.",
    .shape =
        [](const OpCall& call) {
          shape_rule::expect_dtype(call, 0, DType::kBool);
          return std::vector<TensorType>{call.inputs[0]};
        },
    .sharding = sharding_rule::pointwise(),
    .no_gradient = "truth values have no derivative",
    .lower = lower_rule::map("logical_not"),
    .flops = flops_rule::per_element(1),
    .samples = {{{{{{"a", 6}, {"b", 4}}, whole(0, 2), DType::kBool}}, {}}},
});

const OpDef& kCast = define_op({
    .name = "cast",
    .doc = "The same numbers in another dtype; to integers: towards zero; to bool: not zero.",
    .shape =
        [](const OpCall& call) {
          return std::vector<TensorType>{{call.in(), call.attr<DType>("dtype")}};
        },
    .sharding = sharding_rule::pointwise(),
    .gradient = [](G g) -> Tensors {
      if (!is_float(g.x().dtype())) return {Tensor()};
      return {cast(g.dy(), g.x().dtype(), g.site())};
    },
    .lower = lower_rule::map("cast"),
    .flops = flops_rule::none(),
    .samples = {{{{{{"a", 6}, {"b", 4}}, uniform(-3, 3), DType::kF32}},
                 [](Graph&, const Tensors& x) { return Tensors{cast(x[0], DType::kI32)}; }},
                {{{{{"a", 6}, {"b", 4}}, whole(-3, 3), DType::kI32}},
                 [](Graph&, const Tensors& x) { return Tensors{cast(x[0], DType::kF32)}; }},
                {{{{{"a", 6}}, uniform(-3, 3), DType::kF32}},
                 [](Graph&, const Tensors& x) { return Tensors{cast(x[0], DType::kF64)}; }}},
});

}  // namespace

Tensor identity(const Tensor& x, Site site) { return apply(kIdentity, {x}, site); }
Tensor negative(const Tensor& x, Site site) { return apply(kNegative, {x}, site); }
Tensor abs(const Tensor& x, Site site) { return apply(kAbs, {x}, site); }
Tensor sign(const Tensor& x, Site site) { return apply(kSign, {x}, site); }
Tensor floor(const Tensor& x, Site site) { return apply(kFloor, {x}, site); }
Tensor square(const Tensor& x, Site site) { return apply(kSquare, {x}, site); }
Tensor sqrt(const Tensor& x, Site site) { return apply(kSqrt, {x}, site); }
Tensor rsqrt(const Tensor& x, Site site) { return apply(kRsqrt, {x}, site); }
Tensor reciprocal(const Tensor& x, Site site) { return apply(kReciprocal, {x}, site); }
Tensor exp(const Tensor& x, Site site) { return apply(kExp, {x}, site); }
Tensor expm1(const Tensor& x, Site site) { return apply(kExpm1, {x}, site); }
Tensor log(const Tensor& x, Site site) { return apply(kLog, {x}, site); }
Tensor log1p(const Tensor& x, Site site) { return apply(kLog1p, {x}, site); }
Tensor sin(const Tensor& x, Site site) { return apply(kSin, {x}, site); }
Tensor cos(const Tensor& x, Site site) { return apply(kCos, {x}, site); }
Tensor asinh(const Tensor& x, Site site) { return apply(kAsinh, {x}, site); }
Tensor tanh(const Tensor& x, Site site) { return apply(kTanh, {x}, site); }
Tensor erf(const Tensor& x, Site site) { return apply(kErf, {x}, site); }
Tensor sigmoid(const Tensor& x, Site site) { return apply(kSigmoid, {x}, site); }
Tensor softplus(const Tensor& x, Site site) { return apply(kSoftplus, {x}, site); }
Tensor relu(const Tensor& x, Site site) { return apply(kRelu, {x}, site); }
Tensor elu(const Tensor& x, Site site) { return apply(kElu, {x}, site); }
Tensor selu(const Tensor& x, Site site) { return apply(kSelu, {x}, site); }
Tensor logical_not(const Tensor& x, Site site) { return apply(kLogicalNot, {x}, site); }

Tensor cast(const Tensor& x, DType dtype, Site site) {
  return x.dtype() == dtype ? x : apply(kCast, {x}, {{"dtype", dtype}}, site);
}

Tensor leaky_relu(const Tensor& x, double alpha, Site site) {
  return select(greater(x, 0.0, site), x, multiply(x, alpha, site), site);
}

namespace {

// Computed in f32 if x is narrower. The backward pass needs x alone: it computes the terms of `value` again, so that they
// are not kept.
Tensor kept_as_x(const Tensor& x, const std::function<Tensor(const Tensor&)>& value,
                 const std::function<Tensor(const Tensor&)>& derivative, Site site) {
  const DType dtype = x.dtype();
  const auto wide = [site](const Tensor& t) {
    return t.dtype() == DType::kBF16 || t.dtype() == DType::kF16 ? cast(t, DType::kF32, site) : t;
  };
  const auto forward = [&](const Tensors& in) { return Tensors{cast(value(wide(in[0])), dtype, site)}; };
  const auto backward = [=](const Tensors& in, const Tensors&, const Tensors& dys) {
    return Tensors{cast(multiply(wide(dys[0]), derivative(wide(in[0])), site), dtype, site)};
  };
  return custom_gradient({x}, forward, backward, site)[0];
}

}  // namespace

Tensor swish(const Tensor& x, Site site) {
  const auto derivative = [site](const Tensor& t) {
    const Tensor s = sigmoid(t, site);
    return add(s, multiply(multiply(t, s, site), subtract(1.0, s, site), site), site);
  };
  return kept_as_x(
      x, [site](const Tensor& t) { return multiply(t, sigmoid(t, site), site); }, derivative, site);
}

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
Tensor gelu(const Tensor& x, Site site) {
  constexpr double kCubic = 0.044715;
  static const double kScale = std::sqrt(2 / std::numbers::pi);
  const auto tangent = [site](const Tensor& t) {
    const Tensor cubic = multiply(multiply(square(t, site), t, site), kCubic, site);
    return tanh(multiply(add(t, cubic, site), kScale, site), site);
  };
  const auto value = [=](const Tensor& t) {
    return multiply(multiply(t, 0.5, site), add(tangent(t), 1.0, site), site);
  };
  const auto derivative = [=](const Tensor& t) {
    const Tensor y = tangent(t);
    const Tensor inner = multiply(add(multiply(square(t, site), 3 * kCubic, site), 1.0, site), kScale, site);
    const Tensor curve = multiply(multiply(t, subtract(1.0, square(y, site), site), site), inner, site);
    return multiply(add(add(y, 1.0, site), curve, site), 0.5, site);
  };
  return kept_as_x(x, value, derivative, site);
}

}  // namespace weft
