// convolve and pool.
#include <limits>

#include "base/index.h"
#include "base/str.h"
#include "stablehlo/block.h"

namespace weft::stablehlo {

namespace {

// ---- convolve

// The dims without a window: of all three = groups; of x and y = batch; of x and filter = in; of filter and y = out.
struct Roles {
  Shape groups, batch, in, out;
  Roles(const Shape& x, const Shape& y, const Shape& filter, const std::vector<WindowDim>& windows) {
    for (const Dim& dim : x.plus(filter)) {
      bool walked = false;
      for (const WindowDim& window : windows) walked = walked || dim.name == window.dim || dim.name == window.filter;
      if (walked) continue;
      const bool in_x = x.has(dim.name), in_y = y.has(dim.name), in_filter = filter.has(dim.name);
      Shape& role = !in_filter ? batch : !in_x ? out : !in_y ? in : groups;
      role = role.plus({dim});
    }
  }
};

// The operand as [first, second, spatial…].
Term arranged(Writer& w, const Term& x, const Shape& first, const Shape& second, const Shape& spatial) {
  const Term ordered = w.transpose(x, first.plus(second).plus(spatial));
  return w.reshape(ordered, Shape{{"#first", first.elements()}, {"#second", second.elements()}}.plus(spatial));
}

// How the spatial dims of lhs and rhs slide.
struct Slide {
  Sizes strides, lhs_dilation, rhs_dilation;
  std::vector<Padding> padding;
};

std::string slide_text(const Slide& slide, std::int64_t groups, Element element) {
  std::vector<std::string> spatial, padding;
  for (std::size_t i = 0; i < slide.strides.size(); ++i) {
    spatial.push_back(str(i));
    padding.push_back(list_text({slide.padding[i].low, slide.padding[i].high}));
  }
  const std::string places = join(spatial, ", ");
  const std::string precision =
      element == "f32" ? ", precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]" : "";
  return str("{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f, ", places, "]x[i, o, ", places,
             "]->[b, f, ", places, "]>, feature_group_count = ", groups,
             " : i64, window_strides = ", array_text(slide.strides), ", padding = dense<[", join(padding, ", "),
             "]> : tensor<", slide.padding.size(), "x2xi64>, lhs_dilation = ", array_text(slide.lhs_dilation),
             ", rhs_dilation = ", array_text(slide.rhs_dilation), precision, "}");
}

// `size` elements before, between and behind so that exactly `places` fit.
std::int64_t padding_behind(std::int64_t lhs, std::int64_t lhs_dilation, std::int64_t low, std::int64_t taps,
                            std::int64_t rhs_dilation, std::int64_t places, std::int64_t stride) {
  return (places - 1) * stride + (taps - 1) * rhs_dilation + 1 - low - ((lhs - 1) * lhs_dilation + 1);
}

Slide slide_of(const Convolve& operation, const Shape& x, const Shape& y) {
  Slide s;
  for (const WindowDim& v : operation.windows) {
    const std::int64_t elements = x.size_of(v.dim), places = y.size_of(v.dim), span = (v.size - 1) * v.dilation;
    const auto add = [&](std::int64_t stride, std::int64_t lhs, std::int64_t rhs, Padding padding) {
      s.strides.push_back(stride);
      s.lhs_dilation.push_back(lhs);
      s.rhs_dilation.push_back(rhs);
      s.padding.push_back(padding);
    };
    switch (operation.direction) {
      case Direction::kForward:
        add(v.stride, 1, v.dilation,
            {v.before, padding_behind(elements, 1, v.before, v.size, v.dilation, places, v.stride)});
        break;
      case Direction::kToInput: {  // the filter is reversed
        const std::int64_t low = span - v.before;
        add(1, v.stride, v.dilation, {low, padding_behind(places, v.stride, low, v.size, v.dilation, elements, 1)});
        break;
      }
      case Direction::kToFilter:  // y is the kernel, and its places are taps
        add(v.dilation, 1, v.stride,
            {v.before, padding_behind(elements, 1, v.before, places, v.stride, v.size, v.dilation)});
        break;
    }
  }
  return s;
}

// ---- pool

// All combinations of taps.
std::vector<Sizes> taps_of(const std::vector<WindowDim>& windows) {
  std::vector<Sizes> all = {{}};
  for (const WindowDim& window : windows) {
    std::vector<Sizes> more;
    for (const Sizes& taps : all)
      for (std::int64_t k = 0; k < window.size; ++k) {
        more.push_back(taps);
        more.back().push_back(k);
      }
    all = std::move(more);
  }
  return all;
}

constexpr std::int64_t kMostTaps = 1024;

class WinnersWriter {
 public:
  WinnersWriter(Writer& writer, const std::vector<WindowDim>& windows, const Shape& x, const Shape& y)
      : w_(writer), windows_(windows), x_(x), y_(y) {}

  // The elements that a tap meets, in y's shape; `with` where it meets none.
  Term met(const Term& x, const Sizes& taps, const Term& with) {
    std::vector<Padding> dims(x_.rank());
    std::vector<std::int64_t> step(x_.rank(), 1);
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      const WindowDim& v = windows_[i];
      const std::size_t d = x_.position(v.dim);
      const std::int64_t low = v.before - taps[i] * v.dilation, last = (y_.size_of(v.dim) - 1) * v.stride + 1;
      dims[d] = {low, last - low - x_[d].size, 0};
      step[d] = v.stride;
    }
    Term out = w_.pad(x, with, dims);
    for (std::size_t d = 0; d < x_.rank(); ++d) out = w_.slice(out, x_[d].name, 0, out.shape[d].size, step[d]);
    return out;
  }

  // What a tap of every place gives back to its element, in x's shape.
  Term given_back(const Term& at_places, const Sizes& taps, const Term& zero) {
    std::vector<Padding> dims(x_.rank());
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      const WindowDim& v = windows_[i];
      const std::size_t d = x_.position(v.dim);
      const std::int64_t low = taps[i] * v.dilation - v.before;
      dims[d] = {low, x_[d].size - low - ((y_.size_of(v.dim) - 1) * v.stride + 1), v.stride - 1};
    }
    return w_.pad(at_places, zero, dims);
  }

 private:
  Writer& w_;
  const std::vector<WindowDim>& windows_;
  Shape x_, y_;  // in one order
};

// The output's order of dims, with the sizes of `like`.
Shape in_order_of(const Shape& order, const Shape& like) {
  std::vector<Dim> dims;
  for (const Dim& dim : order) dims.push_back(like.dim(dim.name));
  return Shape(std::move(dims));
}

void write_winners(Block& block, const Instr& instr, const Pool& operation) {
  Writer& w = block.w;
  std::int64_t count = 1;
  for (const WindowDim& window : operation.windows) count *= window.size;
  if (count > kMostTaps)
    throw Refused{str("the gradient of a max pool is written out tap by tap, and a window has ", count, " of at most ",
                      kMostTaps, " taps")};
  const Value& out = block.value(instr.outputs[0]);
  const bool forward = operation.direction == Direction::kForward;
  Terms operands;
  for (const ValueId id : instr.inputs) {
    const Term operand = block.term(id);
    operands.push_back(w.transpose(operand, in_order_of(out.shape, operand.shape)));
  }
  const Term &x = operands[0], &y = operands[1];
  const Element element = x.element, wide = wide_of(element);
  WinnersWriter writer(w, operation.windows, x.shape, y.shape);
  const Term nan = w.number(std::numeric_limits<double>::quiet_NaN(), element), zero = w.number(0, wide);
  Term sum = w.number(0, wide, out.shape);
  for (const Sizes& taps : taps_of(operation.windows)) {
    const Term wins = w.compare("EQ", writer.met(x, taps, nan), y);
    Term v = w.number(1, wide, y.shape);
    if (operands.size() == 3 && forward) v = writer.met(w.convert(operands[2], wide), taps, zero);
    if (operands.size() == 3 && !forward) v = w.convert(operands[2], wide);
    const Term won = w.select(wins, v, w.number(0, wide, y.shape));
    sum = w.apply("add", {sum, forward ? won : writer.given_back(won, taps, zero)});
  }
  block.define(instr.outputs[0], w.convert(sum, element));
}

}  // namespace

void write_convolve(Block& block, const Instr& instr, const Convolve& operation) {
  Writer& w = block.w;
  const WindowRoles ids = roles_of(instr);
  const Shape &x = block.value(ids.x).shape, &y = block.value(ids.y).shape, &filter = block.value(ids.filter).shape;
  const Roles roles(x, y, filter, operation.windows);
  Shape x_places, y_places, taps;
  std::vector<std::string> tap_dims;
  for (const WindowDim& window : operation.windows) {
    x_places = x_places.plus({x.dim(window.dim)});
    y_places = y_places.plus({y.dim(window.dim)});
    taps = taps.plus({filter.dim(window.filter)});
    tap_dims.push_back(window.filter);
  }
  Term lhs = block.term(instr.inputs[0]), rhs = block.term(instr.inputs[1]);
  Shape first, second, spatial;  // of the result
  switch (operation.direction) {
    case Direction::kForward:
      lhs = arranged(w, lhs, roles.batch, roles.groups.plus(roles.in), x_places);
      rhs = arranged(w, rhs, roles.in, roles.groups.plus(roles.out), taps);
      first = roles.batch, second = roles.groups.plus(roles.out), spatial = y_places;
      break;
    case Direction::kToInput:
      lhs = arranged(w, lhs, roles.batch, roles.groups.plus(roles.out), y_places);
      rhs = w.reverse(arranged(w, rhs, roles.out, roles.groups.plus(roles.in), taps), tap_dims);
      first = roles.batch, second = roles.groups.plus(roles.in), spatial = x_places;
      break;
    case Direction::kToFilter:
      lhs = arranged(w, lhs, roles.in, roles.groups.plus(roles.batch), x_places);
      rhs = arranged(w, rhs, roles.batch, roles.groups.plus(roles.out), y_places);
      first = roles.in, second = roles.groups.plus(roles.out), spatial = taps;
      break;
  }
  const Value& out = block.value(instr.outputs[0]);
  const Element element = element_of(out.dtype), wide = wide_of(element);
  lhs = w.convert(lhs, wide);
  rhs = w.convert(rhs, wide);
  const Shape flat = Shape{{"#first", first.elements()}, {"#second", second.elements()}}.plus(spatial);
  const Term result = w.generic("convolution", {lhs, rhs},
                                slide_text(slide_of(operation, x, y), roles.groups.elements(), wide), wide, flat);
  const Term whole = w.reshape(result, first.plus(second).plus(spatial));
  block.define(instr.outputs[0], w.convert(w.transpose(whole, out.shape), element));
}

void write_pool(Block& block, const Instr& instr, const Pool& operation) {
  if (operation.kind == PoolKind::kWinners) return write_winners(block, instr, operation);
  Writer& w = block.w;
  const Value& out = block.value(instr.outputs[0]);
  const bool forward = operation.direction == Direction::kForward;
  const Term given = block.term(instr.inputs[0]);
  const Element wide = wide_of(given.element);
  const Term x = w.convert(w.transpose(given, in_order_of(out.shape, given.shape)), wide);
  const std::size_t rank = out.shape.rank();
  Sizes sizes(rank, 1), strides(rank, 1), base(rank, 1), dilations(rank, 1);
  std::vector<std::string> padding(rank, "[0, 0]");
  for (const WindowDim& v : operation.windows) {
    const std::size_t d = out.shape.position(v.dim);
    sizes[d] = v.size;
    dilations[d] = v.dilation;
    (forward ? strides : base)[d] = v.stride;
    const std::int64_t low = forward ? v.before : (v.size - 1) * v.dilation - v.before;
    padding[d] = list_text(
        {low, padding_behind(x.shape[d].size, base[d], low, v.size, v.dilation, out.shape[d].size, strides[d])});
  }
  const Reduce how = operation.kind == PoolKind::kMax ? Reduce::kMax : Reduce::kSum;
  const Term start = w.number(start_of(how, wide), wide);
  const Term joined = w.with_region(
      "reduce_window", {x, start}, {wide, wide}, [&](const Terms& xy) { return w.apply(join_of(how, wide), xy); },
      str("{window_dimensions = ", array_text(sizes), ", window_strides = ", array_text(strides),
          ", base_dilations = ", array_text(base), ", window_dilations = ", array_text(dilations),
          ", padding = dense<[", join(padding, ", "), "]> : tensor<", rank, "x2xi64>}"),
      {{"", wide, out.shape}})[0];
  block.define(instr.outputs[0], w.convert(joined, given.element));
}

}  // namespace weft::stablehlo
