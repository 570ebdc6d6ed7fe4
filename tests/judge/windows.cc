// Windows that walk along dims: convolution and pooling. Tap t of place o meets element o * stride + t * dilation - before.
#include <algorithm>

#include "base/index.h"
#include "judge/sums.h"
#include "program/windows.h"  // Direction and PoolKind: attributes of the two ops
#include "language/shape_math.h"
#include "weft/convolution.h"

namespace weft::judge {

namespace {

using I = std::int64_t;
using Windows = std::vector<Window>;

// Calls visit(element, place, tap) for all meetings of all windows together: offsets that these shapes add for the
// windows' dims. Shapes without a dim of a window (a pool's filter) add 0.
struct Meetings {
  const Windows& windows;
  const Shape &elements, &places, &filter;

  template <class Visit>
  void each(const Visit& visit, std::size_t w = 0, I element = 0, I place = 0, I tap = 0) const {
    if (w == windows.size()) return visit(element, place, tap);
    const Window& window = windows[w];
    const I of_element = dense_strides(elements)[elements.position(window.dim.name)],
            of_place = dense_strides(places)[places.position(window.dim.name)];
    const auto taps = filter.find(window.filter.name);
    const I of_tap = taps ? dense_strides(filter)[*taps] : 0;
    for (I o = 0; o < places.size_of(window.dim.name); ++o)
      for (I t = 0; t < window.filter.size; ++t) {
        const I e = o * window.stride + t * window.dilation - window.before;
        if (e < 0 || e >= window.dim.size) continue;
        each(visit, w + 1, element + e * of_element, place + o * of_place, tap + t * of_tap);
      }
  }
};

// Dims that are neither walked along nor taps.
Shape other_dims(Shape all, const Windows& windows) {
  for (const Window& w : windows)
    for (const std::string& name : {w.dim.name, w.filter.name})
      if (all.has(name)) all = all.minus({all.dim(name)});
  return all;
}

// T(x, filter, y) = sum of x * filter * y over all meetings and all other dims, by its derivative in one of the three.
void convolution(const Call& call) {
  const auto direction = call.attr<Direction>("direction");
  const auto& windows = call.attr<Windows>("windows");
  const bool forward = direction == Direction::kForward, to_input = direction == Direction::kToInput;
  const Value &a = call.x(0), &b = call.x(1);
  Value& c = call.y();
  const Shape &elements = to_input ? c.shape : a.shape,
              &places = forward    ? c.shape
                        : to_input ? a.shape
                                   : b.shape,
              &filter = forward || to_input ? b.shape : c.shape;
  const Shape rest = other_dims(elements.plus(places).plus(filter), windows);
  Sums sums(call.arithmetic, c);
  Walk walk(rest, {&c.shape, &a.shape, &b.shape});
  Meetings{windows, elements, places, filter}.each([&](I element, I place, I tap) {
    const I from_a = to_input ? place : element, from_b = forward || to_input ? tap : place,
            to = forward    ? place
                 : to_input ? element
                            : tap;
    walk.each([&](const I* p) {
      const std::size_t i = at(p[1] + from_a), j = at(p[2] + from_b);
      const double x = a.f[i], y = b.f[j], ex = a.error[i], ey = b.error[j];
      const double e =
          (ex == 0 ? 0 : std::fabs(y) * ex) + (ey == 0 ? 0 : std::fabs(x) * ey) + (ex == 0 || ey == 0 ? 0 : ex * ey);
      sums.add(at(p[0] + to), x * y, ex == kUnknown || ey == kUnknown ? kUnknown : e);
    });
  });
  sums.finish(1);
}

// The largest of each window.
void pool_max(const Call& call, const Meetings& meetings, const Shape& rest) {
  const Value& x = call.x();
  Value& y = call.y();
  std::fill(y.f.begin(), y.f.end(), -kUnknown);
  meetings.each([&](I element, I place, I) {
    Walk(rest, {&y.shape, &x.shape}).each([&](const I* p) {
      const std::size_t k = at(p[0] + place), j = at(p[1] + element);
      if (std::isnan(x.f[j]) || x.f[j] > y.f[k]) y.f[k] = x.f[j];
      y.error[k] = std::max(y.error[k], x.error[j]);
    });
  });
}

// The sum of v (or the number) of the elements of x that equal their window's y.
void pool_winners(const Call& call, const Meetings& meetings, const Shape& rest, bool forward) {
  const Value &x = call.x(0), &y = call.x(1);
  const bool counts = call.in.size() == 2;
  const Value& v = counts ? x : call.x(2);
  Value& out = call.y();
  Sums sums(call.arithmetic, out);
  meetings.each([&](I element, I place, I) {
    Walk(rest, {&out.shape, &x.shape, &y.shape, &v.shape}).each([&](const I* p) {
      const std::size_t i = at(p[1] + element), j = at(p[2] + place), from = at(p[3] + (forward ? element : place));
      const std::size_t to = at(p[0] + (forward ? place : element));
      const bool wins = x.f[i] == y.f[j];
      const bool sure = wins || !(std::fabs(x.f[i] - y.f[j]) <= x.error[i] + y.error[j]);
      if (!sure || x.error[i] == kUnknown) sums.add(to, 0.0, kUnknown);
      else if (wins) sums.add(to, counts ? 1 : v.f[from], counts ? 0 : v.error[from]);
    });
  });
  sums.finish();
}

void pooling(const Call& call) {
  const auto kind = call.attr<PoolKind>("kind");
  const auto& windows = call.attr<Windows>("windows");
  const bool forward = call.attr<Direction>("direction") == Direction::kForward, winners = kind == PoolKind::kWinners;
  const Shape &first = call.x(0).shape, &second = winners ? call.x(1).shape : call.y().shape;
  const Shape &elements = winners || forward ? first : second, &places = winners || forward ? second : first;
  Shape rest = elements;
  for (const Window& w : windows) rest = rest.minus({w.dim});
  const Shape none;
  const Meetings all{windows, elements, places, none};
  if (kind == PoolKind::kMax) return pool_max(call, all, rest);
  if (winners) return pool_winners(call, all, rest, forward);
  const Value& x = call.x();
  Sums sums(call.arithmetic, call.y());
  all.each([&](I element, I place, I) {
    Walk(rest, {&call.y().shape, &x.shape}).each([&](const I* p) {
      const std::size_t from = at(p[1] + (forward ? element : place));
      sums.add(at(p[0] + (forward ? place : element)), x.f[from], x.error[from]);
    });
  });
  sums.finish();
}

}  // namespace

Rules window_rules() { return {{"convolution", convolution}, {"pooling", pooling}}; }

}  // namespace weft::judge
