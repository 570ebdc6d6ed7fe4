// pooling: the largest element or the sum of each window, and the ops that their gradients need.
//
// The gradient of max uses `winners`, the sum of v where x == y: forward without v it counts the ties of a window; to x
// it gives each winner its share. Both directions are linear in v and each other's gradients.
#include <algorithm>
#include <limits>

#include "base/str.h"
#include "ops/windows.h"

namespace weft {

namespace {

using Windows = std::vector<Window>;

std::vector<TensorType> pooling_type(const OpCall& call) {
  shape_rule::expect_float(call);
  const bool forward = call.attr<Direction>("direction") == Direction::kForward;
  const auto& windows = call.attr<Windows>("windows");
  std::vector<std::string> walked;
  for (const Window& w : windows) {
    check_window(call, w);
    if (std::find(walked.begin(), walked.end(), w.dim.name) != walked.end())
      throw UserError({.code = "pooling.two-windows",
                       .what = str("pooling of ", call.in(), " has two windows along dim '", w.dim.name, "'"),
                       .where = call.where(),
                       .fix = "give each dim one window"});
    walked.push_back(w.dim.name);
    if (forward) shape_rule::expect_dim(call, call.in(), w.dim);
  }
  const bool winners = call.attr<PoolKind>("kind") == PoolKind::kWinners;
  const Shape& from = forward || winners ? call.in() : with_elements(call.in(), windows);
  return {{forward ? with_places(from, windows) : from, call.inputs[0].dtype}};
}

ShardingRule pooling_sharding(const OpCall& call) {
  ShardingRule rule;
  for (const Window& w : call.attr<Windows>("windows")) rule.talk(w.dim.name);
  return rule;
}

// Operands of forward pools are elements, except y; operands of pools to x are places, except x.
std::vector<ValueId> lower_pooling(Lowering& l) {
  Pool operation{l.call.attr<PoolKind>("kind"), l.call.attr<Direction>("direction"), {}};
  const bool forward = operation.direction == Direction::kForward, winners = operation.kind == PoolKind::kWinners;
  const bool counted = winners && l.inputs.size() == 2;
  std::vector<ValueId> operands = l.inputs;
  ValueType out = l.out();
  std::vector<SplitWindow> cut;
  for (const Window& w : l.call.attr<Windows>("windows")) {
    if (l.builder.mesh().size(l.axes_of(w.dim.name)) == 1) {
      operation.windows.push_back(whole_window(w));
    } else {
      const SplitWindow split(l, w);
      operation.windows.push_back(forward ? split.forward() : split.back());
      for (std::size_t i = 0; i < operands.size(); ++i) {
        if (forward && !(winners && i == 1)) operands[i] = split.elements(operands[i]);
        if (!forward) operands[i] = winners && i == 0 ? split.aligned(operands[i]) : split.places(operands[i]);
      }
      if (operation.kind == PoolKind::kMax)
        operands[0] = split.filled(operands[0], -std::numeric_limits<double>::infinity());
      if (counted) operands[0] = split.filled(operands[0], std::numeric_limits<double>::quiet_NaN());  // equals nothing
      if (!forward) out.shape = out.shape.resized(w.dim.name, split.aligned_size());
      if (!forward) cut.push_back(split);
    }
    operation.windows.back().filter.clear();
  }
  ValueId result = l.builder.emit_one(std::move(operation), operands, std::move(out));
  for (const SplitWindow& split : cut) result = split.cut(result);
  return {result};
}

Tensor pool(PoolKind kind, Direction direction, const Tensors& operands, const Windows& windows, Site site);

Tensors pooling_gradient(const Grad& g) {
  const auto& windows = g.attr<Windows>("windows");
  const auto kind = g.attr<PoolKind>("kind");
  const auto other = g.attr<Direction>("direction") == Direction::kForward ? Direction::kToInput : Direction::kForward;
  if (kind == PoolKind::kSum) return {pool(kind, other, {g.dy()}, windows, g.site())};
  if (kind == PoolKind::kWinners && g.xs().size() == 2) return {{}, {}};
  if (kind == PoolKind::kWinners) return {{}, {}, pool(kind, other, {g.x(0), g.x(1), g.dy()}, windows, g.site())};
  const Tensor ties = pool(PoolKind::kWinners, Direction::kForward, {g.x(), g.y()}, windows, g.site());
  return {
      pool(PoolKind::kWinners, Direction::kToInput, {g.x(), g.y(), divide(g.dy(), ties, g.site())}, windows, g.site())};
}

// One per place and tap.
double pooling_flops(const OpCall& call) {
  const auto& windows = call.attr<Windows>("windows");
  double meetings = static_cast<double>(with_places(call.in(), windows).elements());
  for (const Window& w : windows) meetings *= static_cast<double>(w.filter.size);
  return meetings;
}

Sample pooled(Shape shape, Tensor (*function)(const Tensor&, const Windows&, Site), Windows windows) {
  return {{{std::move(shape), uniform(-1, 1), DType::kF32}},
          [=](Graph&, const Tensors& x) { return Tensors{function(x[0], windows, Site::current())}; }};
}

std::vector<Sample> pooling_samples() {
  const Dim batch{"batch", 2}, h{"h", 12}, w{"w", 4}, d{"d", 2}, channels{"channels", 2}, odd{"h", 16};
  const auto same = [](const Dim& dim, std::int64_t taps, std::int64_t stride) {
    return window(dim, taps, Padding::kSame, stride);
  };
  const auto valid = [](const Dim& dim, std::int64_t taps, std::int64_t stride, std::int64_t dilation = 1) {
    return window(dim, taps, Padding::kValid, stride, dilation);
  };
  const Windows two{same(h, 3, 2), valid(w, 2, 2)};
  const Shape image{batch, h, w, channels};
  return {pooled(image, max_pool, two),
          pooled(image, sum_pool, two),
          pooled(image, avg_pool, two),
          pooled(image, min_pool, {same(h, 7, 1)}),  // reaches beyond the neighbour
          pooled({d, odd, w}, max_pool, {valid(odd, 4, 3, 2), valid(d, 2, 1), same(w, 2, 1)}),
          pooled({batch, odd}, sum_pool, {valid(odd, 4, 3, 2)}),
          {{{{batch, h}, uniform(-1, 1), DType::kF32}}, [=](Graph&, const Tensors& x) {
             return gradients({reduce_sum(square(max_pool(x[0], {same(h, 3, 1)})))}, {x[0]});
           }}};
}

const OpDef& kPooling = define_op({
    .name = "pooling",
    .doc = "The largest element or the sum of what windows meet; ties of max share the derivative evenly.",
    .shape = pooling_type,
    .sharding = pooling_sharding,
    .gradient = pooling_gradient,
    .lower = lower_pooling,
    .flops = pooling_flops,
    .samples = pooling_samples(),
});

Tensor pool(PoolKind kind, Direction direction, const Tensors& operands, const Windows& windows, Site site) {
  return apply(kPooling, operands, {{"kind", kind}, {"direction", direction}, {"windows", windows}}, site);
}

// The number of elements of the dim in the window at each place.
std::vector<double> met_elements(const Window& w) {
  std::vector<double> met;
  for (std::int64_t o = 0; o < places_of(w); ++o) {
    std::int64_t count = 0;
    for (std::int64_t k = 0; k < w.filter.size; ++k) {
      const std::int64_t element = o * w.stride + k * w.dilation - w.before;
      count += element >= 0 && element < w.dim.size;
    }
    met.push_back(static_cast<double>(count));
  }
  return met;
}

void check_some_met(const char* name, const Tensor& x, const Windows& windows, Site site) {
  for (const Window& w : windows) {
    const std::vector<double> met = met_elements(w);
    if (std::find(met.begin(), met.end(), 0) != met.end())
      throw UserError({.code = "pooling.window-of-padding",
                       .what = str(name, " of ", x.shape(), ": a window of ", w.filter.size, " taps along dim ", w.dim,
                                   " covers only padding"),
                       .where = str(name, " at ", to_string(site)),
                       .fix = "use less padding than the window is long"});
  }
}

}  // namespace

Tensor max_pool(const Tensor& x, const Windows& windows, Site site) {
  const Tensor y = pool(PoolKind::kMax, Direction::kForward, {x}, windows, site);
  check_some_met("max_pool", x, windows, site);
  return y;
}

Tensor min_pool(const Tensor& x, const Windows& windows, Site site) {
  return negative(max_pool(negative(x, site), windows, site), site);
}

Tensor sum_pool(const Tensor& x, const Windows& windows, Site site) {
  return pool(PoolKind::kSum, Direction::kForward, {x}, windows, site);
}

Tensor avg_pool(const Tensor& x, const Windows& windows, Site site) {
  Tensor y = sum_pool(x, windows, site);
  check_some_met("avg_pool", x, windows, site);
  double all = 1;
  for (const Window& w : windows) {
    std::vector<double> met = met_elements(w);
    if (std::count(met.begin(), met.end(), met[0]) == static_cast<std::ptrdiff_t>(met.size())) {
      all *= met[0];
      continue;
    }
    Array shares(Shape{{w.dim.name, places_of(w)}}, DType::kF64);
    for (std::size_t i = 0; i < met.size(); ++i) shares.set(static_cast<std::int64_t>(i), 1 / met[i]);
    y = multiply(y, cast(constant(Graph(x.graph()), shares, site), x.dtype(), site), site);
  }
  return all == 1 ? y : multiply(y, 1 / all, site);
}

}  // namespace weft
