// convolution: products summed over windows, in three directions that are each other's gradients.
//
// One trilinear form, T(x, filter, y) = sum of x[o * stride + k * dilation - before] * filter[k] * y[o] over places o,
// taps k and all other dims, and its derivative with respect to each of the three. Other dims are matched by name like
// in einsum.
#include <algorithm>
#include <set>

#include "base/str.h"
#include "language/shape_math.h"
#include "ops/windows.h"

namespace weft {

namespace {

using Windows = std::vector<Window>;

// Operands and result by their roles.
struct Roles {
  const Shape &x, &y, &filter;
};

Roles roles_of(const OpCall& call) {
  const Shape& out = call.attr<Shape>("output");
  switch (call.attr<Direction>("direction")) {
    case Direction::kForward: return {call.in(0), out, call.in(1)};
    case Direction::kToInput: return {out, call.in(0), call.in(1)};
    default: return {call.in(0), call.in(1), out};
  }
}

void check_names(const OpCall& call, const Windows& windows, const Roles& roles) {
  std::set<std::string> walked;
  for (const Window& w : windows)
    if (!walked.insert(w.dim.name).second || !walked.insert(w.filter.name).second || roles.filter.has(w.dim.name) ||
        roles.x.has(w.filter.name) || roles.y.has(w.filter.name))
      throw UserError(
          {.code = "convolution.dim-occurs-elsewhere",
           .what = str("convolution of ", call.in(0), " and ", call.in(1), " along dim '", w.dim.name, "' with taps '",
                       w.filter.name, "': the two occur elsewhere too"),
           .where = call.where(),
           .fix = "give the taps a name that no other dim has, and each dim one window: rename() the filter's dim"});
}

std::vector<TensorType> convolution_type(const OpCall& call) {
  const auto& windows = call.attr<Windows>("windows");
  const Roles roles = roles_of(call);
  shape_rule::expect_float(call);
  shape_rule::expect_same_dtypes(call);
  if (windows.empty())
    throw UserError({.code = "convolution.no-window",
                     .what = str("convolution of ", call.in(0), " and ", call.in(1), " has no window"),
                     .where = call.where(),
                     .fix = "name the dims of the windows, or use einsum()"});
  check_names(call, windows, roles);
  for (const Window& w : windows) {
    check_window(call, w);
    shape_rule::expect_dim(call, roles.x, w.dim);
    shape_rule::expect_dim(call, roles.filter, w.filter);
    if (!roles.y.has(Dim{w.dim.name, places_of(w)}))
      throw UserError(
          {.code = "convolution-transpose.place-count-mismatch",
           .what = str("convolution_transpose to dim ", w.dim, ", which has ", places_of(w), " places, from ", roles.y),
           .where = call.where(),
           .fix = "give a tensor that has this dim with one element per place of the result's windows"});
  }
  Shape rest = roles.filter;
  for (const Window& w : windows) rest = rest.minus({w.filter});
  shape_rule::broadcast_shape(call, call.attr<Direction>("direction") == Direction::kToInput ? roles.y : roles.x, rest);
  return {{call.attr<Shape>("output"), call.inputs[0].dtype}};
}

ShardingRule convolution_sharding(const OpCall& call) {
  ShardingRule rule;
  const bool to_filter = call.attr<Direction>("direction") == Direction::kToFilter;
  for (const Dim& dim : call.in(0).plus(call.in(1)))
    if (!call.out().has(dim.name)) rule.reduce(dim.name, Reduce::kSum);
  for (const Window& w : call.attr<Windows>("windows")) {
    if (!to_filter) rule.talk(w.dim.name);
    rule.talk(w.filter.name);
  }
  return rule;
}

// Taps are few: if they are split, each processor gathers all of them.
ValueId with_all_taps(Lowering& l, ValueId filter, const std::string& dim) {
  Sharding whole = l.builder.value(filter).sharding;
  whole.dims[l.builder.value(filter).shape.position(dim)].clear();
  return l.context.reshard(filter, whole);
}

std::vector<ValueId> lower_convolution(Lowering& l) {
  const auto direction = l.call.attr<Direction>("direction");
  ValueId first = l.inputs[0], second = l.inputs[1];
  ValueType out = l.out();
  Convolve operation{direction, {}};
  std::vector<SplitWindow> cut;
  for (const Window& w : l.call.attr<Windows>("windows")) {
    if (direction != Direction::kToFilter) {
      second = with_all_taps(l, second, w.filter.name);
    } else {
      out.shape = out.shape.resized(w.filter.name, w.filter.size);
      out.sharding.dims[out.shape.position(w.filter.name)].clear();
    }
    if (l.builder.mesh().size(l.axes_of(w.dim.name)) == 1) {
      operation.windows.push_back(whole_window(w));
      continue;
    }
    const SplitWindow split(l, w);
    if (direction == Direction::kToInput) {
      first = split.places(first);
      out.shape = out.shape.resized(w.dim.name, split.aligned_size());
      operation.windows.push_back(split.back());
      cut.push_back(split);
    } else {
      first = split.elements(first);
      operation.windows.push_back(split.forward());
    }
  }
  ValueId result = l.builder.emit_one(std::move(operation), {first, second}, std::move(out));
  for (const SplitWindow& split : cut) result = split.cut(result);
  return {result};
}

Tensor convolve(Direction direction, const Tensor& a, const Tensor& b, const Windows& windows, const Shape& output,
                Site site);

Tensors convolution_gradient(const Grad& g) {
  const auto& windows = g.attr<Windows>("windows");
  const auto by = [&](Direction direction, const Tensor& a, const Tensor& b, std::size_t operand) {
    return convolve(direction, a, b, windows, g.x(operand).shape(), g.site());
  };
  switch (g.attr<Direction>("direction")) {
    case Direction::kForward:
      return {by(Direction::kToInput, g.dy(), g.x(1), 0), by(Direction::kToFilter, g.x(0), g.dy(), 1)};
    case Direction::kToInput:
      return {by(Direction::kForward, g.dy(), g.x(1), 0), by(Direction::kToFilter, g.dy(), g.x(0), 1)};
    default: return {by(Direction::kToInput, g.x(1), g.dy(), 0), by(Direction::kForward, g.x(0), g.dy(), 1)};
  }
}

// 2 per place, tap and other dim.
double convolution_flops(const OpCall& call) {
  const Roles roles = roles_of(call);
  return 2 * volume(roles.y.plus(roles.filter));
}

// --- Samples ---

const Dim kImages{"batch", 2}, kIn{"in", 2}, kOut{"out", 4}, kTaps{"taps", 3};

// x [batch, space, in] and filter [taps, in, out] with one window.
Sample along_one_dim(const Window& w) {
  return {{uniform_input({kImages, w.dim, kIn}), uniform_input({w.filter, kIn, kOut})},
          [w](Graph&, const Tensors& t) { return Tensors{convolution(t[0], t[1], {w})}; }};
}

Sample back_along_one_dim(const Window& w) {
  return {{uniform_input({kImages, {w.dim.name, places_of(w)}, kIn}), uniform_input({w.filter, kOut, kIn})},
          [w](Graph&, const Tensors& t) { return Tensors{convolution_transpose(t[0], t[1], {w})}; }};
}

std::vector<Sample> samples_of_windows() {
  const auto space = [](std::int64_t size) { return Dim{"space", size}; };
  const auto taps = [](std::int64_t size) { return Dim{"taps", size}; };
  return {
      along_one_dim(window(space(12), taps(3), Padding::kSame)),
      along_one_dim(window(space(12), taps(3), Padding::kSame, 1, 5)),  // reaches beyond the neighbour
      along_one_dim(window(space(24), taps(4), Padding::kSame, 2)),
      along_one_dim(window(space(16), taps(4), Padding::kValid, 3, 2)),  // the stride does not divide the blocks
      along_one_dim({.dim = space(9), .filter = taps(2), .stride = 2, .before = 4, .after = -1}),
      along_one_dim({.dim = space(4), .filter = taps(2), .stride = 1, .dilation = 1, .before = 7, .after = 8}),
      back_along_one_dim(window(space(12), taps(2), Padding::kSame, 2)),
      back_along_one_dim(window(space(12), taps(1), Padding::kSame, 3)),  // gaps
      back_along_one_dim({.dim = space(10), .filter = taps(5), .stride = 2, .dilation = 2, .before = 4, .after = 4})};
}

std::vector<Sample> samples_of_convolved_dims() {
  const Dim h{"h", 4}, w{"w", 6}, d{"d", 2}, th{"th", 3}, tw{"tw", 2}, td{"td", 2}, in4{"in", 4}, groups{"groups", 2};
  return {
      {{uniform_input({kImages, h, w, kIn}), uniform_input({th, tw, kIn, kOut})},
       [=](Graph&, const Tensors& t) {
         return Tensors{conv2d(t[0], t[1], {.strides = {1, 3}})};
       }},
      {{uniform_input({d, h, w, kIn}), uniform_input({td, tw, th, kIn, kOut})},
       [=](Graph&, const Tensors& t) {
         return Tensors{conv3d(t[0], t[1], {.dilations = {1, 2, 1}})};
       }},
      {{uniform_input({kImages, h, in4}), uniform_input({th, kIn, kOut})},
       [=](Graph&, const Tensors& t) { return Tensors{conv1d(t[0], t[1], {.groups = 2})}; }},
      {{uniform_input({w, groups, kIn, kImages}), uniform_input({groups, kOut, th, kIn})},  // any order; groups by name
       [=](Graph&, const Tensors& t) {
         return Tensors{convolution(t[0], t[1], {window(w, th, Padding::kSame, 3)}, {groups})};
       }},
      {{uniform_input({kImages, h, w, kIn}), uniform_input({th, tw, kIn})},
       [=](Graph&, const Tensors& t) { return Tensors{depthwise_conv(t[0], t[1])}; }},
      {{uniform_input({kImages, h, w, kIn}), uniform_input({th, tw, kOut, kIn})}, [=](Graph&, const Tensors& t) {
         return Tensors{conv2d_transpose(t[0], t[1], {.strides = {2, 1}})};
       }}};
}

// Gradients that are differentiated once more.
Sample sample_of_second_order() {
  const Dim space{"space", 6};
  return {{uniform_input({kImages, space, kIn}), uniform_input({kTaps, kIn, kOut})}, [=](Graph&, const Tensors& t) {
            const Tensor y = convolution(t[0], t[1], {window(space, kTaps, Padding::kSame)});
            return gradients({reduce_sum(square(y))}, {t[0], t[1]});
          }};
}

std::vector<Sample> convolution_samples() {
  std::vector<Sample> all = samples_of_windows();
  for (Sample& sample : samples_of_convolved_dims()) all.push_back(std::move(sample));
  all.push_back(sample_of_second_order());
  return all;
}

const OpDef& kConvolution = define_op({
    .name = "convolution",
    .doc = "The sum of products over what windows meet, to places, to elements (transposed) or to the filter.",
    .shape = convolution_type,
    .sharding = convolution_sharding,
    .gradient = convolution_gradient,
    .lower = lower_convolution,
    .flops = convolution_flops,
    .samples = convolution_samples(),
});

Tensor convolve(Direction direction, const Tensor& a, const Tensor& b, const Windows& windows, const Shape& output,
                Site site) {
  return apply(kConvolution, {a, b}, {{"direction", direction}, {"windows", windows}, {"output", output}}, site);
}

// The dims of x that the filter lacks, then the dims that only the filter has.
Shape joined_dims(const Shape& x, const Shape& filter, const Windows& windows, const Shape& kept) {
  Shape taps;
  for (const Window& w : windows) taps = taps.plus({w.filter});
  std::vector<Dim> dims;
  for (const Dim& dim : x)
    if (!filter.has(dim.name) || kept.has(dim.name)) dims.push_back(dim);
  return Shape(std::move(dims)).plus(filter.minus(taps).minus(x));
}

}  // namespace

Tensor convolution(const Tensor& x, const Tensor& filter, const Windows& windows, const DimRefs& kept, Site site) {
  const Shape dims = joined_dims(x.shape(), filter.shape(), windows, kept.in(x, site));
  return convolve(Direction::kForward, x, filter, windows, with_places(dims, windows), site);
}

Tensor convolution_transpose(const Tensor& y, const Tensor& filter, const Windows& windows, const DimRefs& kept,
                             Site site) {
  const Shape dims = joined_dims(y.shape(), filter.shape(), windows, kept.in(y, site));
  return convolve(Direction::kToInput, y, filter, windows, with_elements(dims, windows), site);
}

}  // namespace weft
