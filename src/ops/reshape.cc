// reshape: the same elements, row-major, with other dims. Renaming, splitting and merging dims are reshapes.
//
// Old and new dims form groups of equal products. Within a group a split survives only on the leading dim: shards are
// then the same ranges of elements before and after. All other splits are resharded before or after the local reshape,
// in the way that sends less.
#include <algorithm>
#include <limits>
#include <set>

#include "base/str.h"
#include "ops/rules.h"

namespace weft {

namespace {

std::vector<TensorType> reshape_type(const OpCall& call) {
  const Shape& shape = call.attr<Shape>("shape");
  check_size(call, shape);
  if (shape.elements() != call.in().elements())
    throw UserError({.code = "reshape.element-count-mismatch",
                     .what = str("cannot reshape ", call.in(), " with ", call.in().elements(), " elements to ", shape,
                                 " with ", shape.elements()),
                     .where = call.where(),
                     .fix = "give a shape with the same number of elements"});
  return {{shape, call.inputs[0].dtype}};
}

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

// The leading dims (positions of the first dim larger than one) of a group in the old and the new shape.
struct Leaders {
  std::size_t from = kNone, to = kNone;
};

std::vector<Leaders> leaders_of(const Shape& from, const Shape& to) {
  std::vector<Leaders> groups;
  std::size_t i = 0, j = 0;
  while (i < from.rank() || j < to.rank()) {
    std::int64_t old_size = 1, new_size = 1;
    Leaders leaders;
    const auto take_old = [&] {
      if (from[i].size > 1 && leaders.from == kNone) leaders.from = i;
      old_size *= from[i++].size;
    };
    const auto take_new = [&] {
      if (to[j].size > 1 && leaders.to == kNone) leaders.to = j;
      new_size *= to[j++].size;
    };
    do {
      if (old_size <= new_size && i < from.rank()) take_old();
      else take_new();
    } while (old_size != new_size);
    if (leaders.from != kNone) groups.push_back(leaders);
  }
  return groups;
}

// Tries, for every group, its present split, its wanted split and no split; keeps the cheapest legal combination.
class Search {
 public:
  explicit Search(Lowering& l)
      : l_(l),
        from_(l.call.inputs[0]),
        to_(l.call.outputs[0]),
        have_(l.builder.value(l.inputs[0]).sharding),
        groups_(leaders_of(from_.shape, to_.shape)),
        before_(unsplit(from_.shape)),
        after_(unsplit(to_.shape)) {}

  // The sharding to reshard to before the local reshape, and the resulting sharding after it.
  std::pair<Sharding, Sharding> best() {
    visit(0);
    return {best_before_, best_after_};
  }

 private:
  bool divides(const Axes& axes, const Leaders& group) const {
    const int parts = l_.builder.mesh().size(axes);
    return from_.shape[group.from].size % parts == 0 && to_.shape[group.to].size % parts == 0;
  }

  void visit(std::size_t g) {
    if (g == groups_.size()) {
      const std::int64_t bytes = l_.context.bytes(from_, have_, before_) + l_.context.bytes(to_, after_, l_.wanted[0]);
      if (bytes >= least_) return;
      least_ = bytes;
      best_before_ = before_;
      best_after_ = after_;
      return;
    }
    const Leaders& group = groups_[g];
    std::set<Axes> options{have_.dims[group.from], l_.wanted[0].dims[group.to], Axes{}};
    if (have_.dims[group.from] == l_.wanted[0].dims[group.to] && divides(have_.dims[group.from], group))
      options = {have_.dims[group.from]};
    for (const Axes& axes : options) {
      const bool taken = std::any_of(axes.begin(), axes.end(), [&](int axis) { return before_.uses(axis); });
      if (taken || !divides(axes, group)) continue;
      before_.dims[group.from] = after_.dims[group.to] = axes;
      visit(g + 1);
      before_.dims[group.from] = after_.dims[group.to] = {};
    }
  }

  Lowering& l_;
  TensorType from_, to_;
  Sharding have_;
  std::vector<Leaders> groups_;
  Sharding before_, after_, best_before_, best_after_;
  std::int64_t least_ = std::numeric_limits<std::int64_t>::max();
};

std::vector<ValueId> lower_reshape(Lowering& l) {
  const auto [before, after] = Search(l).best();
  const ValueId x = l.context.reshard(l.inputs[0], before);
  return {l.builder.reshape(x, local_shape(l.call.out(), after, l.builder.mesh()), after)};
}

std::vector<Sample> reshape_samples() {
  const Dim a{"a", 4}, b{"b", 6}, c{"c", 8};
  const SampleInput x{{a, c, b}, uniform(-1, 1), DType::kF32};
  const auto to = [&](Shape shape) {
    return Sample{{x}, [shape](Graph&, const Tensors& t) { return Tensors{reshape(t[0], shape)}; }};
  };
  return {to({a, {"c1", 2}, {"c2", 4}, b}),
          to({a, {"cb", 48}}),
          to({{"n", 192}}),
          to({{"ac", 32}, b}),
          to({a, {"x", 12}, {"y", 4}}),
          {{x}, [=](Graph&, const Tensors& t) { return Tensors{rename(t[0], c, "cc")}; }},
          {{x}, [=](Graph&, const Tensors& t) {
             return Tensors{split_dim(t[0], c, {{"c", 4}, {"low", 2}})};
           }}};
}

const OpDef& kReshape = define_op({
    .name = "reshape",
    .doc =
        "The same elements, row-major, under other dims; moves shards only where the layout of the new dims asks it.",
    .shape = reshape_type,
    .sharding = sharding_rule::relayout(),
    .gradient = [](const Grad& g) -> Tensors { return {reshape(g.dy(), g.x().shape(), g.site())}; },
    .lower = lower_reshape,
    .flops = flops_rule::none(),
    .samples = reshape_samples(),
});

void check_has(const Tensor& x, const Dim& dim, const char* function, Site site) {
  if (!x.shape().has(dim))
    throw UserError({.code = "reshape.unknown-dim",
                     .what = str(function, " of dim ", dim, ", which '", x.name(), "' ", x.shape(), " does not have"),
                     .where = str(function, " at ", to_string(site)),
                     .fix = "name a dim of the tensor, with its size"});
}

}  // namespace

Tensor reshape(const Tensor& x, const Shape& shape, Site site) {
  if (x && x.shape() == shape) return x;
  return apply(kReshape, {x}, {{"shape", shape}}, site);
}

Tensor rename(const Tensor& x, const DimRef& dim, const std::string& to, Site site) {
  const Dim from = dim.in(x, site);
  check_has(x, from, "rename", site);
  return reshape(x, x.shape().renamed(from.name, to), site);
}

Tensor split_dim(const Tensor& x, const DimRef& from, const Shape& into, Site site) {
  const Dim dim = from.in(x, site);
  check_has(x, dim, "split_dim", site);
  return reshape(x, x.shape().replaced(dim.name, into), site);
}

Tensor merge_dims(const Tensor& x, const DimRefs& from, const std::string& into, Site site) {
  const Shape dims = from.in(x, site);
  std::vector<Dim> merged;
  std::size_t found = 0;
  for (const Dim& dim : x.shape()) {
    if (found < dims.rank() && dim == dims[found]) {
      if (++found == 1) merged.push_back({into, dims.elements()});
      continue;
    }
    if (found > 0 && found < dims.rank()) break;
    merged.push_back(dim);
  }
  if (found != dims.rank() || dims.empty())
    throw UserError({.code = "merge-dims.not-neighbours",
                     .what = str("merge_dims cannot merge ", dims, ", which do not follow each other in '", x.name(),
                                 "' ", x.shape()),
                     .where = str("merge_dims at ", to_string(site)),
                     .fix = "name neighbouring dims in their order; transpose() the tensor first if need be"});
  return reshape(x, merged, site);
}

}  // namespace weft
