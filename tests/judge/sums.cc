// Sums of products and other ways of joining elements: einsum, reduce, cumsum.
#include <algorithm>

#include "base/index.h"
#include "base/reduce.h"
#include "judge/sums.h"
#include "language/shape_math.h"

namespace weft::judge {

namespace {

using I = std::int64_t;

// A product of several factors and how far it may be off. Factors are multiplied in any order and number.
struct Product {
  double value = 1, low = 1, high = 1, largest = 1;

  void take(double x, double e) {
    value *= x;
    low *= std::fabs(x);
    high *= std::fabs(x) + e;
    largest *= std::max(1.0, std::fabs(x));
  }
};

void einsum(const Call& call) {
  Value& y = call.y();
  Shape over = y.shape;
  std::vector<const Shape*> shapes = {&y.shape};
  bool unknown = false;
  for (const Value* x : call.in) {
    over = over.plus(x->shape);
    shapes.push_back(&x->shape);
  }
  const std::size_t n = call.in.size();
  const bool joins = n > 1 && over.rank() > y.shape.rank();
  const double most = call.arithmetic.most(y.dtype),
               tiny = call.arithmetic.least(y.dtype) * (call.arithmetic.flushes ? 1 : call.arithmetic.unit(y.dtype));
  Sums sums(call.arithmetic, y);
  Walk(over, shapes).each([&](const I* p) {
    if (y.is_real()) {
      Product product;
      unknown = false;
      for (std::size_t j = 0; j < n; ++j) {
        product.take(call.in[j]->f[at(p[j + 1])], call.in[j]->error[at(p[j + 1])]);
        unknown = unknown || call.in[j]->error[at(p[j + 1])] == kUnknown;
      }
      double e = unknown ? kUnknown : product.high - product.low;
      if (std::isnan(e)) e = 0;
      // A sum of products may be made of sums of factors: with an infinity among them that is another number.
      if (joins && !std::isfinite(product.value)) e = kUnknown;
      if (n > 2 && std::isfinite(product.value))  // on the way they may leave the range on either side
        e += product.largest > most                       ? kUnknown
             : product.value == std::floor(product.value) ? 0
                                                          : tiny * product.largest;
      return sums.add(at(p[0]), product.value, e);
    }
    std::uint64_t product = 1;
    bool known = true;
    for (std::size_t j = 0; j < n; ++j) {
      product *= static_cast<std::uint64_t>(call.in[j]->i[at(p[j + 1])]);
      known = known && call.in[j]->known(at(p[j + 1]));
    }
    sums.add(at(p[0]), static_cast<I>(product), known);
  });
  sums.finish(static_cast<double>(n - 1));
}

// The largest or smallest: within the errors of those that come close to it.
void extremum(const Call& call, bool largest) {
  const Value& x = call.x();
  Value& y = call.y();
  std::vector<bool> seen(y.size(), false);
  Walk(x.shape, {&y.shape, &x.shape}).each([&](const I* p) {
    const std::size_t k = at(p[0]), j = at(p[1]);
    if (!y.is_real()) {
      const bool better = !seen[k] || (largest ? x.i[j] > y.i[k] : x.i[j] < y.i[k]);
      if (better) y.i[k] = x.i[j];
    } else if (!seen[k] || std::isnan(x.f[j]) || (largest ? x.f[j] > y.f[k] : x.f[j] < y.f[k])) {
      if (!(seen[k] && std::isnan(y.f[k]))) y.f[k] = x.f[j];
    }
    y.error[k] = std::max(y.error[k], x.error[j]);
    seen[k] = true;
  });
}

void product(const Call& call) {
  const Value& x = call.x();
  Value& y = call.y();
  std::vector<Product> products(y.size());
  std::vector<double> count(y.size(), 0);
  std::vector<bool> exact(y.size(), true), known(y.size(), true);
  if (!y.is_real()) std::fill(y.i.begin(), y.i.end(), 1);
  Walk(x.shape, {&y.shape, &x.shape}).each([&](const I* p) {
    const std::size_t k = at(p[0]), j = at(p[1]);
    if (!y.is_real()) {
      y.i[k] = static_cast<I>(static_cast<std::uint64_t>(y.i[k]) * static_cast<std::uint64_t>(x.i[j]));
      known[k] = known[k] && x.known(j);
      return;
    }
    products[k].take(x.f[j], x.error[j]);
    count[k] += 1;
    exact[k] = exact[k] && x.error[j] == 0 && x.f[j] == std::floor(x.f[j]);
    known[k] = known[k] && x.error[j] != kUnknown;
  });
  Writer out(call.arithmetic, y);
  const double tiny = call.arithmetic.least(y.dtype);
  for (std::size_t k = 0; k < y.size(); ++k) {
    if (!y.is_real()) {
      out.whole(k, y.i[k], known[k]);
      continue;
    }
    const Product& p = products[k];
    const bool fits = exact[k] && std::fabs(p.value) <= 1 / out.unit();
    const bool over = !known[k] || (p.largest > call.arithmetic.most(y.dtype));
    out.exactly(k, p.value,
                over ? kUnknown
                : fits
                    ? 0
                    : p.high - p.low + (count[k] * out.inner() + 4 * out.own()) * p.high + count[k] * tiny * p.largest);
  }
}

void reduce(const Call& call) {
  const auto how = call.attr<Reduce>("how");
  if (how == Reduce::kMax || how == Reduce::kMin) return extremum(call, how == Reduce::kMax);
  if (how == Reduce::kProduct) return product(call);
  const Value& x = call.x();
  Sums sums(call.arithmetic, call.y());
  Walk(x.shape, {&call.y().shape, &x.shape}).each([&](const I* p) {
    if (x.is_real()) sums.add(at(p[0]), x.f[at(p[1])], x.error[at(p[1])]);
    else sums.add(at(p[0]), x.i[at(p[1])], x.known(at(p[1])));
  });
  sums.finish();
}

// Element k of a line is the sum of those before it, itself included or not; reversed, of those after it.
void cumsum(const Call& call) {
  const Dim dim = call.attr<Dim>("dim");
  const bool exclusive = call.attr<bool>("exclusive"), reverse = call.attr<bool>("reverse");
  const Value& x = call.x();
  const I stride = dense_strides(x.shape)[x.shape.position(dim.name)];
  const Shape lines = x.shape.minus({dim});
  Sums sums(call.arithmetic, call.y());
  Walk(lines, {&x.shape}).each([&](const I* p) {
    for (I k = 0; k < dim.size; ++k)
      for (I j = 0; j < dim.size; ++j) {
        if (j == k ? exclusive : reverse ? j < k : j > k) continue;
        const std::size_t to = at(p[0] + k * stride), from = at(p[0] + j * stride);
        if (x.is_real()) sums.add(to, x.f[from], x.error[from]);
        else sums.add(to, x.i[from], x.known(from));
      }
  });
  sums.finish();
}

// Element k of a line is the largest of those up to it; reversed, from it on. It is as uncertain as the least certain of
// those that may be the largest.
void cummax(const Call& call) {
  const Dim dim = call.attr<Dim>("dim");
  const bool reverse = call.attr<bool>("reverse");
  const Value& x = call.x();
  Value& y = call.y();
  const I stride = dense_strides(x.shape)[x.shape.position(dim.name)];
  Writer out(call.arithmetic, y);
  Walk(x.shape.minus({dim}), {&x.shape}).each([&](const I* p) {
    for (I k = 0; k < dim.size; ++k) {
      const I first = reverse ? k : 0, last = reverse ? dim.size - 1 : k;
      const auto place = [&](I j) { return at(p[0] + j * stride); };
      if (!x.is_real()) {
        I most = x.i[place(first)];
        bool known = true;
        for (I j = first; j <= last; ++j) most = std::max(most, x.i[place(j)]), known = known && x.known(place(j));
        out.whole(place(k), most, known);
        continue;
      }
      double most = x.f[place(first)], error = 0;
      for (I j = first; j <= last; ++j) {
        const double v = x.f[place(j)];
        most = most != most ? most : v != v ? v : std::max(most, v);
        error = std::max(error, x.error[place(j)]);
      }
      out.exactly(place(k), most, error);
    }
  });
}

}  // namespace

Rules sum_rules() { return {{"einsum", einsum}, {"reduce", reduce}, {"cumsum", cumsum}, {"cummax", cummax}}; }

}  // namespace weft::judge
