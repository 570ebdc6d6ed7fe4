// Elements by their indices and indices of elements: gather, scatter_add, take_along, put_along, dynamic_slice,
// dynamic_update, sort, top_k.
#include <algorithm>
#include <numeric>

#include "base/index.h"
#include "judge/sums.h"
#include "language/shape_math.h"

namespace weft::judge {

namespace {

using I = std::int64_t;

I stride_of(const Value& x, const std::string& dim) { return dense_strides(x.shape)[x.shape.position(dim)]; }

// x at dim = index; zero outside.
void gather(const Call& call) {
  const Dim dim = call.attr<Dim>("dim");
  const Value &x = call.x(0), &indices = call.x(1);
  Value& y = call.y();
  const I stride = stride_of(x, dim.name);
  Writer out(call.arithmetic, y);
  Walk(y.shape, {&y.shape, &x.shape, &indices.shape}).each([&](const I* p) {
    const I index = indices.i[at(p[2])];
    if (index >= 0 && index < dim.size) out.moved(at(p[0]), x, at(p[1] + index * stride));
    if (!indices.known(at(p[2]))) y.error[at(p[0])] = kUnknown;
  });
}

void add_term(Sums& sums, std::size_t to, const Value& x, std::size_t from) {
  if (x.is_real()) sums.add(to, x.f[from], x.error[from]);
  else sums.add(to, x.i[from], x.known(from));
}

// An index that may be another one makes all of the result unknown.
void forget_unless(bool known, Value& y) {
  if (!known) std::fill(y.error.begin(), y.error.end(), kUnknown);
}

void scatter_add(const Call& call) {
  const Dim dim = call.attr<Dim>("dim");
  const Value &x = call.x(0), &indices = call.x(1);
  Value& y = call.y();
  const I stride = stride_of(y, dim.name);
  Sums sums(call.arithmetic, y);
  bool known = true;
  Walk(x.shape, {&y.shape, &x.shape, &indices.shape}).each([&](const I* p) {
    const I index = indices.i[at(p[2])];
    known = known && indices.known(at(p[2]));
    if (index >= 0 && index < dim.size) add_term(sums, at(p[0] + index * stride), x, at(p[1]));
  });
  sums.finish();
  forget_unless(known, y);
}

void take_along(const Call& call) {
  const Dim dim = call.attr<Dim>("dim");
  const Value &x = call.x(0), &indices = call.x(1);
  Value& y = call.y();
  const I x_step = stride_of(x, dim.name), index_step = stride_of(indices, dim.name), y_step = stride_of(y, dim.name);
  Writer out(call.arithmetic, y);
  Walk(x.shape.minus({dim}), {&y.shape, &x.shape, &indices.shape}).each([&](const I* p) {
    for (I k = 0; k < y.shape.size_of(dim.name); ++k) {
      const std::size_t from = at(p[2] + k * index_step), to = at(p[0] + k * y_step);
      const I index = indices.i[from];
      if (index >= 0 && index < dim.size) out.moved(to, x, at(p[1] + index * x_step));
      if (!indices.known(from)) y.error[to] = kUnknown;
    }
  });
}

void put_along(const Call& call) {
  const Dim dim = call.attr<Dim>("dim");
  const Value &x = call.x(0), &indices = call.x(1);
  Value& y = call.y();
  const I x_step = stride_of(x, dim.name), index_step = stride_of(indices, dim.name), y_step = stride_of(y, dim.name);
  Sums sums(call.arithmetic, y);
  bool known = true;
  Walk(x.shape.minus({dim}), {&y.shape, &x.shape, &indices.shape}).each([&](const I* p) {
    for (I k = 0; k < x.shape.size_of(dim.name); ++k) {
      const I index = indices.i[at(p[2] + k * index_step)];
      known = known && indices.known(at(p[2] + k * index_step));
      if (index >= 0 && index < dim.size) add_term(sums, at(p[0] + index * y_step), x, at(p[1] + k * x_step));
    }
  });
  sums.finish();
  forget_unless(known, y);
}

I clamped(I begin, I most) { return std::clamp<I>(begin, 0, most); }

bool all_known(const Value& x) {
  for (std::size_t k = 0; k < x.size(); ++k)
    if (!x.known(k)) return false;
  return true;
}

void dynamic_slice(const Call& call) {
  const Dim dim = call.attr<Dim>("dim");
  const I size = call.attr<I>("size");
  const Value &x = call.x(), &begins = call.x(1);
  Value& y = call.y();
  const I x_step = stride_of(x, dim.name), y_step = stride_of(y, dim.name);
  Writer out(call.arithmetic, y);
  Walk(x.shape.minus({dim}), {&y.shape, &x.shape, &begins.shape}).each([&](const I* p) {
    const I begin = clamped(begins.i[at(p[2])], dim.size - size);
    for (I k = 0; k < size; ++k) out.moved(at(p[0] + k * y_step), x, at(p[1] + (begin + k) * x_step));
  });
  forget_unless(all_known(begins), y);
}

void dynamic_update(const Call& call) {
  const Dim dim = call.attr<Dim>("dim");
  const Value &x = call.x(0), &piece = call.x(1);
  const Value& begins = call.x(2);
  const I size = piece.shape.size_of(dim.name);
  Value& y = call.y();
  const I step = stride_of(y, dim.name), piece_step = stride_of(piece, dim.name);
  Writer out(call.arithmetic, y);
  for (std::size_t k = 0; k < x.size(); ++k) out.moved(k, x, k);
  Walk(x.shape.minus({dim}), {&y.shape, &piece.shape, &begins.shape}).each([&](const I* p) {
    const I begin = clamped(begins.i[at(p[2])], dim.size - size);
    for (I k = 0; k < size; ++k) out.moved(at(p[0] + (begin + k) * step), piece, at(p[1] + k * piece_step));
  });
  forget_unless(all_known(begins), y);
}

void scatter_update(const Call& call) {
  const Dim dim = call.attr<Dim>("dim");
  const Value &x = call.x(0), &updates = call.x(1), &places = call.x(2);
  Value& y = call.y();
  const I step = stride_of(y, dim.name), update_step = stride_of(updates, dim.name);
  Writer out(call.arithmetic, y);
  for (std::size_t k = 0; k < x.size(); ++k) out.moved(k, x, k);
  for (I i = 0; i < updates.shape.size_of(dim.name); ++i) {
    const I place = places.i[at(i)];
    if (place < 0 || place >= dim.size) continue;
    Walk(updates.shape.minus({updates.shape.dim(dim.name)}), {&y.shape, &updates.shape}).each([&](const I* p) {
      out.moved(at(p[0] + place * step), updates, at(p[1] + i * update_step));
    });
  }
  forget_unless(all_known(places), y);
}

// --- Orders ---

// The places of a line from the first of its order on. Equals go by their place; NaN is the largest.
class Line {
 public:
  Line(const Value& x, I begin, I step, I size, bool ascending) : x_(x), begin_(begin), step_(step), order_(at(size)) {
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&](I p, I q) {
      if (!x.is_real()) return ascending ? x.i[place(p)] < x.i[place(q)] : x.i[place(p)] > x.i[place(q)];
      const double a = x.f[place(p)], b = x.f[place(q)];
      if (std::isnan(a) || std::isnan(b))
        return ascending ? !std::isnan(a) && std::isnan(b) : std::isnan(a) && !std::isnan(b);
      return ascending ? a < b : a > b;
    });
  }
  I index(I rank) const { return order_[at(rank)]; }
  std::size_t place(I index) const { return at(begin_ + index * step_); }

  // Whether the element of this rank cannot be another one.
  bool certain(I rank) const {
    const std::size_t mine = place(index(rank));
    if (!x_.is_real()) {
      for (I k = 0; k < static_cast<I>(order_.size()); ++k)
        if (!x_.known(place(k))) return false;
      return true;
    }
    for (I k = 0; k < static_cast<I>(order_.size()); ++k) {
      const std::size_t other = place(k);
      if (x_.error[other] == kUnknown) return false;
      if (x_.f[other] != x_.f[mine] && std::fabs(x_.f[other] - x_.f[mine]) <= x_.error[other] + x_.error[mine])
        return false;
    }
    return true;
  }
  // The largest error of the line: what the value of any rank may be off by.
  double error() const {
    double most = 0;
    for (I k = 0; k < static_cast<I>(order_.size()); ++k) most = std::max(most, x_.error[place(k)]);
    return most;
  }

 private:
  const Value& x_;
  I begin_, step_;
  std::vector<I> order_;
};

void ranked(const Call& call, const Dim& dim, const std::string& into, I count, bool ascending) {
  const Value& x = call.x();
  Value &values = call.y(0), &indices = call.y(1);
  const I x_step = stride_of(x, dim.name), step = stride_of(values, into);
  Writer numbers(call.arithmetic, values), places(call.arithmetic, indices);
  Walk(x.shape.minus({dim}), {&values.shape, &x.shape}).each([&](const I* p) {
    const Line line(x, p[1], x_step, dim.size, ascending);
    for (I r = 0; r < count; ++r) {
      const std::size_t to = at(p[0] + r * step);
      const bool certain = line.certain(r);
      numbers.moved(to, x, line.place(line.index(r)));
      if (!certain) values.error[to] = values.is_real() ? 2 * line.error() : kUnknown;
      places.whole(to, line.index(r), certain);
    }
  });
}

void sort(const Call& call) {
  const Dim dim = call.attr<Dim>("dim");
  ranked(call, dim, dim.name, dim.size, !call.attr<bool>("descending"));
}

void top_k(const Call& call) {
  const Dim k = call.attr<Dim>("k");
  ranked(call, call.attr<Dim>("dim"), k.name, k.size, call.attr<bool>("smallest"));
}

}  // namespace

Rules index_rules() {
  return {{"gather", gather},
          {"scatter_add", scatter_add},
          {"take_along", take_along},
          {"put_along", put_along},
          {"dynamic_slice", dynamic_slice},
          {"dynamic_update", dynamic_update},
          {"scatter_update", scatter_update},
          {"sort", sort},
          {"top_k", top_k}};
}

}  // namespace weft::judge
