#include "ops/windows.h"

#include <algorithm>

#include "base/str.h"
#include "ops/exchange.h"

namespace weft {

namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 31;  // so that no product of two overflows

std::int64_t floor_div(std::int64_t x, std::int64_t y) { return x / y - (x % y < 0); }
std::int64_t ceil_div(std::int64_t x, std::int64_t y) { return -floor_div(-x, y); }

// An expression of the program text: equal leaves are one node.
class Nodes {
 public:
  int leaf(MapNode node) {
    const auto found = std::find(nodes_.begin(), nodes_.end(), node);
    if (found != nodes_.end()) return static_cast<int>(found - nodes_.begin());
    return add(std::move(node));
  }
  int number(std::int64_t n) { return leaf({.op = "literal", .dtype = DType::kI64, .literal = n}); }
  int input(int i, DType dtype = DType::kI64) { return leaf({.op = "input", .dtype = dtype, .input = i}); }
  int function(const char* op, std::vector<int> args, DType dtype = DType::kI64) {
    return add({.op = op, .args = std::move(args), .dtype = dtype});
  }
  std::vector<MapNode> all() && { return std::move(nodes_); }

 private:
  int add(MapNode node) {
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size()) - 1;
  }
  std::vector<MapNode> nodes_;
};

bool is_countable(const Window& w) {
  const auto positive = [](std::int64_t n) { return n >= 1 && n <= kMost; };
  return positive(w.dim.size) && positive(w.filter.size) && positive(w.stride) && positive(w.dilation) &&
         std::max(w.before, w.after) <= kMost && std::min(w.before, w.after) >= -kMost;
}

}  // namespace

std::int64_t places_of(const Window& w) {
  if (!is_countable(w)) return 0;
  const std::int64_t room = w.dim.size + w.before + w.after - (w.filter.size - 1) * w.dilation - 1;
  return room < 0 ? 0 : room / w.stride + 1;
}

void check_window(const OpCall& call, const Window& w) {
  if (!is_countable(w))
    throw UserError({.code = "window.bad-sizes",
                     .what = str(call.op->name, " along dim ", w.dim, " with ", w.filter.size, " taps, stride ",
                                 w.stride, ", dilation ", w.dilation, ", padding ", w.before, " and ", w.after),
                     .where = call.where(),
                     .fix = str("give sizes, stride and dilation of at least 1, and numbers of at most ", kMost)});
  if (places_of(w) < 1)
    throw UserError({.code = "window.too-long",
                     .what = str(call.op->name, " along dim ", w.dim, ": a window of ", w.filter.size,
                                 " taps with dilation ", w.dilation, " spans ", (w.filter.size - 1) * w.dilation + 1,
                                 " elements, but there are ", w.dim.size + w.before + w.after, " with the padding"),
                     .where = call.where(),
                     .fix = "use a smaller window, or pad, for instance with Padding::kSame"});
}

Shape with_places(Shape shape, const std::vector<Window>& windows) {
  for (const Window& w : windows)
    if (shape.has(w.dim.name)) shape = shape.resized(w.dim.name, std::max<std::int64_t>(1, places_of(w)));
  return shape;
}

Shape with_elements(Shape shape, const std::vector<Window>& windows) {
  for (const Window& w : windows)
    if (shape.has(w.dim.name)) shape = shape.resized(w.dim.name, w.dim.size);
  return shape;
}

WindowDim whole_window(const Window& w) {
  return {w.dim.name, w.filter.name, w.filter.size, w.stride, w.dilation, w.before};
}

SplitWindow::SplitWindow(Lowering& l, const Window& w)
    : b_(l.builder),
      w_(w),
      axes_(l.axes_of(w.dim.name)),
      ranks_(b_.mesh().size(axes_)),
      block_(w.dim.size / ranks_),
      places_block_(places_of(w) / ranks_) {
  for (std::int64_t r = 0; r < ranks_; ++r) lead_ = std::max(lead_, r * block_ % w_.stride);
  first_place_ = ceil_div(w_.before - (w_.filter.size - 1) * w_.dilation, w_.stride);
}

// [start(r), start(r) + length) of a dim of `size` on every rank r, zeros outside.
ValueId SplitWindow::run(ValueId x, std::int64_t size, std::int64_t length,
                         const std::function<std::int64_t(std::int64_t)>& start) const {
  std::vector<Piece> pieces;
  for (std::int64_t r = 0; r < ranks_; ++r) {
    const std::int64_t begin = std::max<std::int64_t>(0, start(r)), end = std::min(size, start(r) + length);
    if (begin < end) pieces.push_back({x, begin, end - begin, r * length + begin - start(r)});
  }
  if (!pieces.empty()) return assemble(b_, dim(), length * ranks_, axes_, pieces);
  ValueType nothing = b_.type(x);
  nothing.shape = nothing.shape.resized(dim(), length);
  return b_.fill(0, std::move(nothing));
}

ValueId SplitWindow::elements(ValueId x) const {
  return run(x, w_.dim.size, reach(), [&](std::int64_t r) { return r * places_block_ * w_.stride - w_.before; });
}

WindowDim SplitWindow::forward() const {
  WindowDim window = whole_window(w_);
  window.before = 0;
  return window;
}

// The element at index i of rank r's range is element i + r * (places' block * stride - reach) - before of the dim,
// with i counted over all ranks.
ValueId SplitWindow::filled(ValueId elements, double outside) const {
  const std::int64_t last = (places_of(w_) - 1) * w_.stride + (w_.filter.size - 1) * w_.dilation - w_.before;
  if (w_.before <= 0 && last < w_.dim.size) return elements;
  const ValueType type = b_.type(elements);
  Nodes n;
  const int first = n.number(0), index = n.leaf({.op = "index", .dtype = DType::kI64, .dim = dim()});
  const int rank = n.input(0), step = n.number(places_block_ * w_.stride - reach());
  const int moved = n.function("add", {index, n.function("multiply", {rank, step})});
  const int before = n.number(w_.before), element = n.function("subtract", {moved, before});
  const int after_begin = n.function("less_equal", {first, element}, DType::kBool), size = n.number(w_.dim.size);
  const int before_end = n.function("less", {element, size}, DType::kBool);
  const int inside = n.function("logical_and", {after_begin, before_end}, DType::kBool);
  const int x = n.input(1, type.dtype);
  const int none = n.leaf({.op = "literal", .dtype = type.dtype, .literal = outside});
  n.function("select", {inside, x, none}, type.dtype);
  return b_.map(std::move(n).all(), {b_.axis_index(axes_), elements}, type);
}

ValueId SplitWindow::places(ValueId y) const {
  const std::int64_t last = floor_div(aligned_size() - 1 + w_.before, w_.stride);
  return run(y, places_of(w_), std::max<std::int64_t>(1, last - first_place_ + 1),
             [&](std::int64_t r) { return r * block_ / w_.stride + first_place_; });
}

ValueId SplitWindow::aligned(ValueId x) const {
  return run(x, w_.dim.size, aligned_size(), [&](std::int64_t r) { return r * block_ / w_.stride * w_.stride; });
}

WindowDim SplitWindow::back() const {
  WindowDim window = whole_window(w_);
  window.before = w_.before - first_place_ * w_.stride;
  return window;
}

ValueId SplitWindow::cut(ValueId x) const {
  if (lead_ == 0) return x;
  Nodes n;
  const int rank = n.input(0), block = n.number(block_), begin = n.function("multiply", {rank, block});
  const int stride = n.number(w_.stride);
  n.function("mod", {begin, stride});
  const ValueId skipped =
      b_.map(std::move(n).all(), {b_.axis_index(axes_)}, {.dtype = DType::kI64, .shape = {}, .sharding = {}});
  ValueType own = b_.type(x);
  own.shape = own.shape.resized(dim(), block_);
  return b_.emit_one(DynamicSlice{dim()}, {x, skipped}, std::move(own));
}

}  // namespace weft
