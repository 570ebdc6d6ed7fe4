// Pointwise functions of two operands, and select.
#include "base/str.h"
#include "ops/pointwise.h"

namespace weft {

namespace {

using G = const Grad&;
const Fill kAny = uniform(-2, 2), kPositive = uniform(0.4, 2.5);

const OpDef& kAdd =
    binary({.name = "add", .doc = "x + y.", .fill_x = kAny, .fill_y = kAny, .gradient = [](G g) -> Tensors {
              return {g.dy(), g.dy()};
            }});
const OpDef& kSubtract =
    binary({.name = "subtract", .doc = "x - y.", .fill_x = kAny, .fill_y = kAny, .gradient = [](G g) -> Tensors {
              return {g.dy(), -g.dy()};
            }});
// Summing the product to an operand's shape is one contraction.
const OpDef& kMultiply = binary(
    {.name = "multiply", .doc = "x * y.", .fill_x = kAny, .fill_y = kAny, .gradient = [](G g) -> Tensors {
       return {einsum({g.dy(), g.x(1)}, g.x(0).shape(), g.site()), einsum({g.dy(), g.x(0)}, g.x(1).shape(), g.site())};
     }});
const OpDef& kDivide =
    binary({.name = "divide", .doc = "x / y.", .fill_x = kAny, .fill_y = kPositive, .gradient = [](G g) -> Tensors {
              const Tensor dx = g.dy() / g.x(1);
              return {dx, -(dx * g.y())};
            }});
const OpDef& kPow = binary({.name = "pow",
                            .doc = "x to the y, for x > 0.",
                            .fill_x = kPositive,
                            .fill_y = kAny,
                            .gradient = [](G g) -> Tensors {
                              const Tensor scaled = g.dy() * g.y();
                              return {scaled * g.x(1) / g.x(0), scaled * log(g.x(0))};
                            }});

// dy to the larger (or smaller) operand, half to each on a tie.
Tensors winner_takes(G g, const Tensor& x_wins, const Tensor& y_wins) {
  return {select(x_wins, g.dy(), select(y_wins, 0.0, g.dy() * 0.5)),
          select(y_wins, g.dy(), select(x_wins, 0.0, g.dy() * 0.5))};
}

const OpDef& kMinimum = binary({
    .name = "minimum",
    .doc = "The smaller; a tie shares the derivative evenly.",
    .fill_x = kAny,
    .fill_y = kAny,
    .gradient = [](G g) -> Tensors { return winner_takes(g, less(g.x(0), g.x(1)), less(g.x(1), g.x(0))); },
});
const OpDef& kMaximum = binary({
    .name = "maximum",
    .doc = "The larger; a tie shares the derivative evenly.",
    .fill_x = kAny,
    .fill_y = kAny,
    .gradient = [](G g) -> Tensors { return winner_takes(g, greater(g.x(0), g.x(1)), greater(g.x(1), g.x(0))); },
});
const OpDef& kFloordiv = binary({.name = "floordiv",
                                 .doc = "x / y rounded towards minus infinity; derivative 0.",
                                 .fill_x = uniform(-9, 9),
                                 .fill_y = kPositive,
                                 .gradient = [](G) -> Tensors {
                                   return {Tensor(), Tensor()};
                                 }});
// x - y floor(x / y): the gradient of x is 1, of y is -floor(x / y).
const OpDef& kMod = binary({.name = "mod",
                            .doc = "x - y floor(x / y): the remainder with the sign of y.",
                            .fill_x = uniform(-9, 9),
                            .fill_y = kPositive,
                            .gradient = [](G g) -> Tensors {
                              return {g.dy(), -(g.dy() * floordiv(g.x(0), g.x(1)))};
                            }});

const OpDef& comparison(const std::string& name, const std::string& doc) {
  return binary({.name = name,
                 .doc = doc,
                 .fill_x = whole(-3, 3),
                 .fill_y = whole(-3, 3),
                 .no_gradient = "truth values have no derivative"});
}
const OpDef& kLess = comparison("less", "x < y.");
const OpDef& kLessEqual = comparison("less_equal", "x <= y.");
const OpDef& kGreater = comparison("greater", "x > y.");
const OpDef& kGreaterEqual = comparison("greater_equal", "x >= y.");
const OpDef& kEqual = comparison("equal", "x == y.");
const OpDef& kNotEqual = comparison("not_equal", "x != y.");

const OpDef& logical(const std::string& name, const std::string& doc) {
  return binary({.name = name,
                 .doc = doc,
                 .fill_x = whole(0, 2),
                 .fill_y = whole(0, 2),
                 .no_gradient = "truth values have no derivative"});
}
const OpDef& kLogicalAnd = logical("logical_and", "Both.");
const OpDef& kLogicalOr = logical("logical_or", "Either.");

std::vector<TensorType> select_type(const OpCall& call) {
  shape_rule::expect_dtype(call, 0, DType::kBool);
  shape_rule::expect_dtype(call, 2, call.inputs[1].dtype);
  const Shape both = shape_rule::broadcast_shape(call, call.in(1), call.in(2));
  return {{shape_rule::broadcast_shape(call, both, call.in(0)), call.inputs[1].dtype}};
}

const Shape kShapeAB{{"a", 6}, {"b", 4}}, kShapeB{{"b", 4}};
const OpDef& kSelect = define_op({
    .name = "select",
    .doc = "condition ? x : y; what is not chosen never shows.",
    .shape = select_type,
    .sharding = sharding_rule::pointwise(),
    .gradient = [](G g) -> Tensors {
      return {Tensor(), reduce_sum_to(select(g.x(0), g.dy(), 0.0), g.x(1).shape(), g.site()),
              reduce_sum_to(select(g.x(0), 0.0, g.dy()), g.x(2).shape(), g.site())};
    },
    .lower = lower_rule::map("select"),
    .flops = flops_rule::per_element(1),
    .samples = {{{{kShapeAB, whole(0, 2), DType::kBool}, {kShapeAB, kAny, DType::kF32}, {kShapeAB, kAny, DType::kF32}},
                 {}},
                {{{kShapeB, whole(0, 2), DType::kBool}, {kShapeAB, kAny, DType::kF32}, {kShapeB, kAny, DType::kF32}},
                 {}}},
});

}  // namespace

Tensor add(const Operand& x, const Operand& y, Site site) { return apply_binary(kAdd, x, y, site); }
Tensor subtract(const Operand& x, const Operand& y, Site site) { return apply_binary(kSubtract, x, y, site); }
Tensor multiply(const Operand& x, const Operand& y, Site site) { return apply_binary(kMultiply, x, y, site); }
Tensor divide(const Operand& x, const Operand& y, Site site) { return apply_binary(kDivide, x, y, site); }
Tensor pow(const Operand& x, const Operand& y, Site site) { return apply_binary(kPow, x, y, site); }
Tensor minimum(const Operand& x, const Operand& y, Site site) { return apply_binary(kMinimum, x, y, site); }
Tensor maximum(const Operand& x, const Operand& y, Site site) { return apply_binary(kMaximum, x, y, site); }
Tensor floordiv(const Operand& x, const Operand& y, Site site) { return apply_binary(kFloordiv, x, y, site); }
Tensor mod(const Operand& x, const Operand& y, Site site) { return apply_binary(kMod, x, y, site); }
Tensor less(const Operand& x, const Operand& y, Site site) { return apply_binary(kLess, x, y, site); }
Tensor less_equal(const Operand& x, const Operand& y, Site site) { return apply_binary(kLessEqual, x, y, site); }
Tensor greater(const Operand& x, const Operand& y, Site site) { return apply_binary(kGreater, x, y, site); }
Tensor greater_equal(const Operand& x, const Operand& y, Site site) { return apply_binary(kGreaterEqual, x, y, site); }
Tensor equal(const Operand& x, const Operand& y, Site site) { return apply_binary(kEqual, x, y, site); }
Tensor not_equal(const Operand& x, const Operand& y, Site site) { return apply_binary(kNotEqual, x, y, site); }
Tensor logical_and(const Operand& x, const Operand& y, Site site) { return apply_binary(kLogicalAnd, x, y, site); }
Tensor logical_or(const Operand& x, const Operand& y, Site site) { return apply_binary(kLogicalOr, x, y, site); }

Tensor select(const Tensor& condition, const Operand& x, const Operand& y, Site site) {
  const Tensor& some = x.tensor() ? x.tensor() : y.tensor();
  const auto tensor = [&](const Operand& operand) {
    if (operand.tensor()) return operand.tensor();
    return some ? number_like(some, operand.number(), "select", site)
                : constant(Graph(condition.graph()), operand.number(), {}, DType::kF32, site);
  };
  return apply(kSelect, {condition, tensor(x), tensor(y)}, site);
}

Tensor add_n(const Tensors& xs, Site site) {
  if (xs.empty())
    throw UserError({.code = "add-n.no-operands",
                     .what = "add_n was given no tensors",
                     .where = str("add_n at ", to_string(site)),
                     .fix = "give at least one tensor"});
  Tensor sum = xs[0];
  for (std::size_t i = 1; i < xs.size(); ++i) sum = add(sum, xs[i], site);
  return sum;
}

}  // namespace weft
