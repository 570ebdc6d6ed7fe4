// map, and the pointwise functions of kernels/pointwise-inl.h as StableHLO operations. 16-bit floats are computed in f32
// and rounded after each function.
#include <cmath>
#include <functional>
#include <limits>
#include <unordered_map>

#include "base/index.h"
#include "base/str.h"
#include "stablehlo/block.h"

namespace weft::stablehlo {

namespace {

// Formulas over terms of one element type and shape.
class Formula {
 public:
  Formula(Writer& writer, const Term& like) : w(writer), like_(like) {}

  Term set(const Number& number) const { return w.number(number, like_.element, like_.shape); }
  bool floats() const { return is_float(like_.element); }
  bool wholes() const { return !is_float(like_.element); }

  Term add(const Term& x, const Term& y) const { return w.apply("add", {x, y}); }
  Term sub(const Term& x, const Term& y) const { return w.apply("subtract", {x, y}); }
  Term mul(const Term& x, const Term& y) const { return w.apply("multiply", {x, y}); }
  Term div(const Term& x, const Term& y) const { return w.apply("divide", {x, y}); }
  Term of(std::string_view op, const Term& x) const { return w.apply(op, {x}); }
  Term minus(const Term& x) const { return is_unsigned(x.element) ? sub(set(0), x) : of("negate", x); }
  // c0 + c1 x + c2 x^2 + …
  Term polynomial(const Term& x, const std::vector<double>& c) const {
    Term sum = set(c.back());
    for (std::size_t i = c.size() - 1; i-- > 0;) sum = add(mul(sum, x), set(c[i]));
    return sum;
  }
  // |x| with the sign of y.
  Term with_sign(const Term& x, const Term& y) const {
    return w.select(w.compare("LT", y, set(0)), minus(of("abs", x)), of("abs", x));
  }

  Writer& w;

 private:
  Term like_;
};

Term asinh(const Formula& f, const Term& x) {
  Writer& w = f.w;
  const Term one = f.set(1), a = f.of("abs", x), z = f.mul(a, a);
  const Term near = f.of("log_plus_one", f.add(a, f.div(z, f.add(one, f.of("sqrt", f.add(one, z))))));
  const Term far = f.add(f.of("log", a), f.set(0.693147180559945309417));
  return f.with_sign(w.select(w.compare("LT", a, f.set(x.element == "f64" ? 0x1p28 : 0x1p14)), near, far), x);
}

// As vmath: a polynomial near 0, 1 - exp(-t (1 + g(t))) elsewhere. Coefficients of f64 serve f32 too where only the
// number of terms differs.
Term erf(const Formula& f, const Term& x) {
  Writer& w = f.w;
  const bool wide = x.element == "f64";
  const Term a = f.of("abs", x), z = f.mul(x, x), t = w.apply("minimum", {f.set(wide ? 6.0 : 4.0), a});
  const Term p = f.polynomial(
      z, wide ? std::vector<double>{1.28379167095512586e-01, -3.76126389031837538e-01, 1.12837916709550734e-01,
                                    -2.68661706451177491e-02, 5.22397762526331886e-03, -8.54832700933842791e-04,
                                    1.20553322663231578e-04, -1.49256260159144355e-05, 1.64615461733317705e-06,
                                    -1.63567043929697508e-07, 1.47072297790493293e-08, -1.15751895629882922e-09,
                                    6.33460346885253456e-11}
              : std::vector<double>{1.283791666e-01, -3.761263352e-01, 1.128369123e-01, -2.685912006e-02,
                                    5.200260771e-03, -8.133216086e-04, 8.327489748e-05});
  const Term g = f.polynomial(
      wide ? f.sub(t, f.set(2)) : t,
      wide ? std::vector<double>{1.68247063230831873e+00,  8.67845086843049840e-01,  2.79528774903713244e-02,
                                 -5.74387967676921827e-03, 1.08656166557847579e-03,  -1.77081139539343887e-04,
                                 2.08859000572678834e-05,  -8.97366281934135863e-08, -9.31220430517733822e-07,
                                 3.63797795967787192e-07,  -9.53111301916165683e-08, 1.87440987779401658e-08,
                                 -2.38112108561494211e-09, -6.98115525714416286e-11, 1.61798800597493034e-10,
                                 -6.20172343633759604e-11, 1.62027569441973310e-11,  -3.22863667564413173e-12,
                                 4.93158605844930294e-13,  -5.57980551325325664e-14, 4.35912648357739047e-15,
                                 -2.03573169486485983e-16, 3.59822494230949264e-18,  5.50167321384097795e-20}
           : std::vector<double>{1.285517475e-01, 6.356252726e-01, 1.052627002e-01, -2.267413883e-02, 2.930157847e-03,
                                 -4.958682550e-05, -4.558117328e-05, 4.938213410e-06});
  const Term near = f.add(f.mul(x, p), x);
  const Term far = f.sub(f.set(1), f.of("exponential", f.minus(f.add(f.mul(t, g), t))));
  return w.select(w.compare("LT", a, f.set(0.93)), near, f.with_sign(far, x));
}

// Whether the remainder must be moved by y to have y's sign.
Term opposed(const Formula& f, const Term& remainder, const Term& y) {
  Writer& w = f.w;
  const Term other = w.compare("NE", w.compare("LT", remainder, f.set(0)), w.compare("LT", y, f.set(0)));
  return w.apply("and", {w.compare("NE", remainder, f.set(0)), other});
}

// The remainder is exact, so a rounded quotient never has the wrong floor.
Term mod(const Formula& f, const Term& x, const Term& y) {
  Writer& w = f.w;
  const Term divisor = f.wholes() ? w.select(w.compare("EQ", y, f.set(0)), f.set(1), y) : y;
  const Term rest = w.apply("remainder", {x, divisor});
  return is_unsigned(x.element) ? rest : w.select(opposed(f, rest, y), f.add(rest, divisor), rest);
}

Term floordiv(const Formula& f, const Term& x, const Term& y) {
  Writer& w = f.w;
  if (f.floats()) {
    const Term quotient = f.div(f.sub(x, mod(f, x, y)), y);
    return f.of("round_nearest_even", quotient);
  }
  const Term none = w.compare("EQ", y, f.set(0)), divisor = w.select(none, f.set(1), y);
  Term quotient = f.div(x, divisor);
  if (!is_unsigned(x.element)) {
    const Term less = w.convert(opposed(f, w.apply("remainder", {x, divisor}), divisor), x.element);
    quotient = f.sub(quotient, less);
  }
  return w.select(none, f.set(0), quotient);
}

Term sign(const Formula& f, const Term& x) {
  return is_unsigned(x.element) ? f.w.apply("minimum", {x, f.set(1)}) : f.of("sign", x);
}

// As vmath.
Term gelu_gate(const Formula& f, const Term& x) {
  const Term cubic = f.add(f.mul(f.mul(x, x), f.set(0.0713548162726002526)), f.set(1.59576912160573071));
  return f.of("logistic", f.mul(x, cubic));
}

Term gelu(const Formula& f, const Term& x) {
  const Term far = f.w.compare("LT", x, f.set(-40));
  return f.w.select(far, f.minus(f.set(0)), f.mul(x, gelu_gate(f, x)));
}

Term gelu_slope(const Formula& f, const Term& x) {
  const Term gate = gelu_gate(f, x);
  const Term near = f.w.apply("maximum", {f.set(-40), f.w.apply("minimum", {f.set(40), x})});
  const Term inner = f.add(f.mul(f.mul(near, near), f.set(0.214064448817800758)), f.set(1.59576912160573071));
  return f.add(f.mul(f.mul(f.mul(near, gate), f.sub(f.set(1), gate)), inner), gate);
}

using Unary = std::function<Term(const Formula&, const Term&)>;
using Binary = std::function<Term(const Formula&, const Term&, const Term&)>;

Unary named(std::string_view op) {
  return [op](const Formula& f, const Term& x) { return f.of(op, x); };
}
Binary named_pair(std::string_view op) {
  return [op](const Formula& f, const Term& x, const Term& y) { return f.w.apply(op, {x, y}); };
}
Binary compared(std::string_view direction) {
  return [direction](const Formula& f, const Term& x, const Term& y) { return f.w.compare(direction, x, y); };
}

const std::unordered_map<std::string_view, Unary>& unary_functions() {
  static const std::unordered_map<std::string_view, Unary> all = {
      {"identity", [](const Formula&, const Term& x) { return x; }},
      {"negative", [](const Formula& f, const Term& x) { return f.minus(x); }},
      {"abs", [](const Formula& f, const Term& x) { return is_unsigned(x.element) ? x : f.of("abs", x); }},
      {"sign", sign},
      {"floor", [](const Formula& f, const Term& x) { return f.floats() ? f.of("floor", x) : x; }},
      {"square", [](const Formula& f, const Term& x) { return f.mul(x, x); }},
      {"sqrt", named("sqrt")},
      {"rsqrt", named("rsqrt")},
      {"reciprocal", [](const Formula& f, const Term& x) { return f.div(f.set(1), x); }},
      {"exp", named("exponential")},
      {"expm1", named("exponential_minus_one")},
      {"log", named("log")},
      {"log1p", named("log_plus_one")},
      {"sin", named("sine")},
      {"cos", named("cosine")},
      {"asinh", asinh},
      {"tanh", named("tanh")},
      {"erf", erf},
      {"sigmoid", named("logistic")},
      {"softplus",
       [](const Formula& f, const Term& x) {
         const Term e = f.of("exponential", f.minus(f.of("abs", x)));
         return f.add(f.w.apply("maximum", {x, f.set(0)}), f.of("log_plus_one", e));
       }},
      {"relu",
       [](const Formula& f, const Term& x) {
         return f.w.apply("maximum", {x, f.set(0)});
       }},
      {"elu",
       [](const Formula& f, const Term& x) {
         return f.w.select(f.w.compare("GT", x, f.set(0)), x, f.of("exponential_minus_one", x));
       }},
      {"selu",
       [](const Formula& f, const Term& x) {
         constexpr double kScale = 1.0507009873554804934, kAlpha = 1.6732632423543772848;
         const Term below = f.mul(f.set(kScale * kAlpha), f.of("exponential_minus_one", x));
         return f.w.select(f.w.compare("GT", x, f.set(0)), f.mul(f.set(kScale), x), below);
       }},
      {"gelu", gelu},
      {"gelu_slope", gelu_slope},
      {"logical_not", named("not")},
  };
  return all;
}

const std::unordered_map<std::string_view, Binary>& binary_functions() {
  static const std::unordered_map<std::string_view, Binary> all = {
      {"add", named_pair("add")},
      {"subtract", named_pair("subtract")},
      {"multiply", named_pair("multiply")},
      {"divide", named_pair("divide")},
      {"pow", named_pair("power")},
      {"minimum", named_pair("minimum")},
      {"maximum", named_pair("maximum")},
      {"floordiv", floordiv},
      {"mod", mod},
      {"logical_and", named_pair("and")},
      {"logical_or", named_pair("or")},
      {"less", compared("LT")},
      {"less_equal", compared("LE")},
      {"greater", compared("GT")},
      {"greater_equal", compared("GE")},
      {"equal", compared("EQ")},
      {"not_equal", compared("NE")},
  };
  return all;
}

// The global index along a dim.
Term index_term(Block& block, ValueId out, const MapNode& node) {
  Writer& w = block.w;
  const Shape& shape = block.value(out).shape;
  const Shape line = {shape.dim(node.dim)};
  Term index = w.iota(line, node.dim, "i64");
  if (const auto begin = block.shard_begin(out, node.dim)) index = w.apply("add", {index, w.broadcast(*begin, line)});
  return w.broadcast(w.convert(index, element_of(node.dtype)), shape);
}

}  // namespace

Term pointwise_term(Writer& w, std::string_view function, const Terms& given) {
  const Element element = given[0].element;
  const Element wide = is_float(element) ? wide_of(element) : element;
  Terms operands;
  for (const Term& operand : given) operands.push_back(w.convert(operand, wide));
  const Formula formula(w, operands[0]);
  Term result;
  if (const auto one = unary_functions().find(function); one != unary_functions().end())
    result = one->second(formula, operands[0]);
  else if (const auto two = binary_functions().find(function); two != binary_functions().end())
    result = two->second(formula, operands[0], operands[1]);
  else throw Refused{str("the function '", function, "' has no StableHLO form")};
  return result.element == wide ? w.convert(result, element) : result;
}

void write_map(Block& block, const Instr& instr, const Map& operation) {
  Writer& w = block.w;
  const Value& out = block.value(instr.outputs[0]);
  Terms terms;
  for (const MapNode& node : operation.nodes) {
    const auto arg = [&](std::size_t i) -> const Term& { return terms[at(node.args[i])]; };
    const Element element = element_of(node.dtype);
    if (node.op == "input") terms.push_back(w.broadcast(block.term(instr.inputs[at(node.input)]), out.shape));
    else if (node.op == "literal") terms.push_back(w.number(node.literal, element, out.shape));
    else if (node.op == "index") terms.push_back(index_term(block, instr.outputs[0], node));
    else if (node.op == "select") terms.push_back(w.select(arg(0), arg(1), arg(2)));
    else if (node.op == "cast") terms.push_back(w.convert(arg(0), element));
    else {
      Terms operands;
      for (std::size_t i = 0; i < node.args.size(); ++i) operands.push_back(arg(i));
      terms.push_back(pointwise_term(w, node.op, operands));
    }
  }
  block.define(instr.outputs[0], terms.back());
}

}  // namespace weft::stablehlo
