#include "kernels/pointwise.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/str.h"
#include "kernels/vmath.h"
#include "weft/detail/words.h"

namespace weft {

namespace {

using namespace pointwise;
using enum Gives;

namespace bodies {

namespace math = vmath;
#define WEFT_FN inline
#include "kernels/bodies-inl.h"
#include "kernels/pointwise-inl.h"
#undef WEFT_FN

}  // namespace bodies

using I = std::int64_t;
using Whole = vmath::Wrapped<long long>;

I number(Whole x) { return x.v; }
I number(bool x) { return x; }

template <class F>
double of_double(double x) {
  return static_cast<double>(F()(x));
}
template <class F>
double of_doubles(double x, double y) {
  return static_cast<double>(F()(x, y));
}
template <class F>
I of_integer(I x) {
  return number(F()(Whole(x)));
}
template <class F>
I of_integers(I x, I y) {
  return number(F()(Whole(x), Whole(y)));
}

template <class F, unsigned kTakes>
constexpr Pointwise with_bodies(Pointwise facts) {
  if constexpr ((kTakes & kFloats) != 0) {
    if constexpr (requires(double x) { F()(x); }) facts.f1 = of_double<F>;
    else facts.f2 = of_doubles<F>;
  }
  if constexpr ((kTakes & (kIntegers | kBools)) != 0) {
    if constexpr (requires(Whole x) { F()(x); }) facts.i1 = of_integer<F>;
    else facts.i2 = of_integers<F>;
  }
  return facts;
}

#define WEFT_UNARY(name, takes, gives, flops, algebra, ...) \
  with_bodies<bodies::name, takes>({#name, 1, takes, gives, flops, algebra}),
#define WEFT_BINARY(name, takes, gives, flops, algebra, ...) \
  with_bodies<bodies::name, takes>({#name, 2, takes, gives, flops, algebra}),
constexpr auto kTable = std::to_array<Pointwise>({
#include "kernels/pointwise-inl.h"
});

}  // namespace

std::span<const Pointwise> pointwise_functions() { return kTable; }

const Pointwise* find_pointwise(std::string_view name) {
  static const std::unordered_map<std::string_view, const Pointwise*> by_name = [] {
    std::unordered_map<std::string_view, const Pointwise*> all;
    for (const Pointwise& one : kTable) all.emplace(one.name, &one);
    return all;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

std::string pointwise_misuse(std::string_view name, const std::vector<DType>& operands, DType result) {
  const Pointwise* function = find_pointwise(name);
  if (!function) {
    std::vector<std::string> known = {"select", "cast"};
    for (const Pointwise& one : kTable) known.emplace_back(one.name);
    const std::string near = nearest_word(name, known);
    return str("there is no pointwise function '", name, "'", near.empty() ? "" : str(": did you mean '", near, "'?"));
  }
  if (operands.size() != static_cast<std::size_t>(function->arity))
    return str("'", name, "' takes ", function->arity, function->arity == 1 ? " operand" : " operands", ", not ",
               operands.size());
  for (const DType dtype : operands) {
    if (dtype != operands[0]) return str("'", name, "' takes operands of one dtype, not ", operands[0], " and ", dtype);
    if (!function->takes_dtype(dtype)) return str("'", name, "' takes no ", dtype);
  }
  if (result != function->result(operands[0]))
    return str("'", name, "' of ", operands[0], " gives ", function->result(operands[0]), ", not ", result);
  return {};
}

}  // namespace weft
