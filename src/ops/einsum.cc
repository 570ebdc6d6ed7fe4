// einsum: the sum, over the dims absent from the output, of the product of the inputs (paper, section 4).
//
// The names classify the dims: in two inputs and the output = batch; in one input and the output = free; absent from
// the output = contracted. A split contracted dim leaves a partial sum.
#include <algorithm>
#include <limits>

#include "base/str.h"
#include "language/shape_math.h"
#include "ops/rules.h"

namespace weft {

namespace {

Shape union_of(const std::vector<TensorType>& inputs) {
  Shape all;
  for (const TensorType& input : inputs) all = all.plus(input.shape);
  return all;
}

// Products of i8 are summed in i32, in which they are exact up to 2^17 terms.
DType sum_dtype(DType dtype) { return dtype == DType::kI8 ? DType::kI32 : dtype; }

std::vector<TensorType> einsum_type(const OpCall& call) {
  shape_rule::expect_same_dtypes(call);
  Shape all = call.attr<Shape>("output");
  for (const TensorType& input : call.inputs) {
    shape_rule::broadcast_shape(call, all, input.shape);
    all = all.plus(input.shape);
  }
  return {{call.attr<Shape>("output"), sum_dtype(call.inputs[0].dtype)}};
}

ShardingRule contraction(const OpCall& call) {
  ShardingRule rule;
  for (const Dim& dim : union_of(call.inputs))
    if (!call.out().has(dim)) rule.reduce(dim.name, Reduce::kSum);
  return rule;
}

// Contracts the inputs pair by pair, always the pair whose product has the fewest multiply-adds.
class PairByPair {
 public:
  explicit PairByPair(Lowering& l) : l_(l), open_(l.inputs), output_(l.out().shape) {}

  ValueId run() {
    if (!is_one_product()) widen();
    for (std::size_t i = 0; i < open_.size(); ++i) open_[i] = without_lonely_dims(i);
    while (open_.size() > 1) {
      const auto [i, j] = cheapest_pair();
      const ValueId product = multiply(i, j);
      open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(j));
      open_[i] = product;
    }
    const ValueType out = l_.out();
    return shape(open_[0]) == out.shape ? open_[0] : l_.builder.map("identity", {open_[0]}, out);
  }

 private:
  const Shape& shape(ValueId x) const { return l_.builder.value(x).shape; }

  // Whether the inputs are two factors of one contraction, which needs no step before it.
  bool is_one_product() const {
    if (open_.size() != 2) return false;
    const Shape x = shape(open_[0]), y = shape(open_[1]);
    bool contracts = false;
    for (const Dim& dim : x.plus(y)) {
      if (output_.has(dim.name)) continue;
      if (!x.has(dim.name) || !y.has(dim.name)) return false;
      contracts = true;
    }
    return contracts && output_.minus(x.plus(y)).empty();
  }

  // Casts the inputs to the dtype of the sum.
  void widen() {
    for (ValueId& x : open_) {
      const Value& value = l_.builder.value(x);
      const DType dtype = sum_dtype(value.dtype);
      if (dtype != value.dtype) x = l_.builder.map("cast", {x}, {dtype, value.shape, value.sharding});
    }
  }

  // By position: one tensor may be several factors.
  bool needed_beside(const std::string& dim, std::size_t i, std::size_t j) const {
    for (std::size_t k = 0; k < open_.size(); ++k)
      if (k != i && k != j && shape(open_[k]).has(dim)) return true;
    return output_.has(dim);
  }

  // The type of a product of x and y (or of x alone) that keeps these dims; a contracted split dim leaves a partial.
  ValueType type(ValueId x, ValueId y, const Shape& dims) const {
    ValueType type{sum_dtype(l_.builder.value(x).dtype), dims, unsplit(dims)};
    for (std::size_t i = 0; i < dims.rank(); ++i) type.sharding.dims[i] = l_.axes_of(dims[i].name);
    Axes& partial = type.sharding.partial;
    const auto pend = [&](const Axes& axes) { partial.insert(partial.end(), axes.begin(), axes.end()); };
    for (const Dim& dim : shape(x).plus(shape(y)))
      if (!dims.has(dim.name)) pend(l_.axes_of(dim.name));
    pend(l_.builder.value(x).sharding.partial);
    if (x != y) pend(l_.builder.value(y).sharding.partial);
    std::sort(partial.begin(), partial.end());
    return type;
  }

  // A contracted dim that only one input has is summed beforehand.
  ValueId without_lonely_dims(std::size_t i) {
    const ValueId x = open_[i];
    std::vector<Dim> kept;
    for (const Dim& dim : shape(x))
      if (needed_beside(dim.name, i, i)) kept.push_back(dim);
    if (open_.size() == 1) kept = in_output_order(kept).dims();
    const Shape dims(kept);
    return dims.rank() == shape(x).rank() ? x : l_.builder.reduce(Reduce::kSum, x, type(x, x, dims));
  }

  std::pair<std::size_t, std::size_t> cheapest_pair() const {
    std::pair<std::size_t, std::size_t> best{0, 1};
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < open_.size(); ++i)
      for (std::size_t j = i + 1; j < open_.size(); ++j) {
        const double operation = volume(shape(open_[i]).plus(shape(open_[j])));
        if (operation < least) {
          least = operation;
          best = {i, j};
        }
      }
    return best;
  }

  Shape in_output_order(const std::vector<Dim>& dims) const {
    std::vector<Dim> ordered;
    for (const Dim& dim : output_)
      if (std::find(dims.begin(), dims.end(), dim) != dims.end()) ordered.push_back(dim);
    for (const Dim& dim : dims)
      if (!output_.has(dim.name)) ordered.push_back(dim);
    return ordered;
  }

  ValueId multiply(std::size_t i, std::size_t j) {
    const ValueId x = open_[i], y = open_[j];
    std::vector<Dim> kept;
    bool contracts = false;
    const bool last = open_.size() == 2;
    for (const Dim& dim : shape(x).plus(shape(y))) {
      const bool keep = last ? output_.has(dim.name) : needed_beside(dim.name, i, j);
      if (keep) kept.push_back(dim);
      else contracts = true;
    }
    // The last product can add new dims of the output directly only as a map.
    const Shape dims = last && !contracts ? output_ : in_output_order(kept);
    const ValueType out = type(x, y, dims);
    return contracts ? l_.builder.contract(x, y, out) : l_.builder.map("multiply", {x, y}, out);
  }

  Lowering& l_;
  std::vector<ValueId> open_;
  Shape output_;  // local
};

Tensor contracted(const Tensors& xs, const Shape& output, Site site);

// The gradient of one input is the einsum of dy and the remaining inputs to that input's shape. Summed dims that only
// this input has are broadcast.
Tensors einsum_gradient(const Grad& g) {
  Tensors dxs;
  for (std::size_t i = 0; i < g.xs().size(); ++i) {
    Tensors factors{g.dy()};
    for (std::size_t j = 0; j < g.xs().size(); ++j)
      if (j != i) factors.push_back(g.x(j));
    dxs.push_back(contracted(factors, g.x(i).shape(), g.site()));
  }
  return dxs;
}

double einsum_flops(const OpCall& call) {
  const double products = volume(union_of(call.inputs));
  return call.inputs.size() == 1 ? products : 2 * products * static_cast<double>(call.inputs.size() - 1);
}

std::vector<Sample> einsum_samples() {
  const Dim a{"a", 6}, b{"b", 4}, c{"c", 8}, d{"d", 2}, e{"e", 12};
  const auto in = [](Shape shape) { return SampleInput{std::move(shape), uniform(-1, 1), DType::kF32}; };
  const auto to = [](Shape shape) { return [shape](Graph&, const Tensors& x) { return Tensors{einsum(x, shape)}; }; };
  return {{{in({a, b}), in({b, c})}, to({a, c})},
          {{in({a, b}), in({b, c})}, to({c, a})},
          {{in({a, b}), in({b, c}), in({c, d})}, to({d, a})},
          {{in({a, b}), in({b})}, to({d, a})},              // d is new: broadcast
          {{in({a, b, c}), in({d, c, a})}, to({b, a, d})},  // a is a batch dim
          {{in({a, b, c})}, to({c, a})},
          {{in({a, b}), in({c})}, to({a})},  // b and c are each in one input only
          {{in({a}), in({b})}, to({b, a})},
          {{in({a, b}), in({a, b}), in({a, b})}, to({a})},
          {{{{a, b}, whole(-5, 5), DType::kI32}, {{b, e}, whole(-5, 5), DType::kI32}}, to({a, e})},
          {{{{a, b}, whole(-127, 127), DType::kI8}, {{b, e}, whole(-127, 127), DType::kI8}}, to({a, e})},
          {{{{a, b}, whole(-127, 127), DType::kI8}, {{c}, whole(-127, 127), DType::kI8}}, to({c, a})}};
}

const OpDef& kEinsum = define_op({
    .name = "einsum",
    .doc = "The sum, over the dims absent from the output, of the product of the inputs.",
    .shape = einsum_type,
    .sharding = contraction,
    .gradient = einsum_gradient,
    .lower = [](Lowering& l) -> std::vector<ValueId> { return {PairByPair(l).run()}; },
    .flops = einsum_flops,
    .samples = einsum_samples(),
});

Tensor contracted(const Tensors& xs, const Shape& output, Site site) {
  return apply(kEinsum, xs, {{"output", output}}, site);
}

void check_some(const Tensors& xs, Site site) {
  if (xs.empty())
    throw UserError({.code = "einsum.no-operands",
                     .what = "einsum was given no tensors",
                     .where = str("einsum at ", to_string(site)),
                     .fix = "give at least one tensor"});
}

// Whether one name may be the other misspelt: the names differ in one letter, longer names in two neighbouring letters,
// or one begins with the other.
bool look_alike(const std::string& a, const std::string& b) {
  constexpr std::size_t kShort = 3, kLong = 5;  // below kShort any two names count as similar
  const std::size_t shorter = std::min(a.size(), b.size()), longer = std::max(a.size(), b.size());
  if (shorter < kShort) return false;
  std::size_t front = 0, back = 0;  // letters that are the same
  while (front < shorter && a[front] == b[front]) ++front;
  while (front + back < shorter && a[a.size() - 1 - back] == b[b.size() - 1 - back]) ++back;
  return front == shorter || longer - front - back <= (shorter < kLong ? 1u : 2u);
}

// A misspelt dim of the output would sum the intended dim and broadcast the sum.
void check_spelling(const Tensors& xs, const Shape& output, Site site) {
  Shape all;
  for (const Tensor& x : xs)
    if (x) all = all.plus(x.shape());
  for (const Dim& made : output) {
    if (all.has(made.name)) continue;
    for (const Dim& summed : all)
      if (!output.has(summed.name) && summed.size == made.size && look_alike(made.name, summed.name))
        throw UserError({.code = "einsum.sum-and-broadcast",
                         .what = str("einsum sums dim ", summed, " of its inputs and broadcasts along dim ", made,
                                     " of its output ", output, ", which no input has"),
                         .where = str("einsum at ", to_string(site)),
                         .fix = str("write '", summed.name, "' in the output if you mean that dim; otherwise leave '",
                                    made.name, "' out of the output and add it with broadcast()")});
  }
}

}  // namespace

Tensor einsum(const Tensors& xs, const Shape& output, Site site) {
  check_some(xs, site);
  check_spelling(xs, output, site);
  return contracted(xs, output, site);
}

Tensor einsum(const Tensors& xs, Site site) {
  check_some(xs, site);
  Shape all, repeated;
  for (const Tensor& x : xs)
    for (const Dim& dim : x.shape()) {
      if (all.has(dim.name)) repeated = repeated.plus({dim});
      all = all.plus({dim});
    }
  return einsum(xs, all.minus(repeated), site);
}

Tensor einsum_over(const Tensors& xs, const DimRefs& dims, Site site) {
  check_some(xs, site);
  const Shape reduced = dims.in(xs, site);
  Shape all;
  for (const Tensor& x : xs) all = all.plus(x.shape());
  for (const Dim& dim : reduced)
    if (!all.has(dim))
      throw UserError({.code = "einsum.unknown-dim",
                       .what = str("einsum_over sums dim ", dim, ", which no input has"),
                       .where = str("einsum_over at ", to_string(site)),
                       .fix = str("name dims of the inputs: ", join(all, ", "))});
  return einsum(xs, all.minus(reduced), site);
}

}  // namespace weft
