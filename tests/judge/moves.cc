// Elements under other dims, in other places: broadcast, reshape, slice, pad, concat, shift, split, and ops that pass their
// operands on.
#include "base/index.h"
#include "judge/judge.h"
#include "language/shape_math.h"

namespace weft::judge {

namespace {

using I = std::int64_t;

void broadcast(const Call& call) {
  Value& y = call.y();
  Writer out(call.arithmetic, y);
  Walk(y.shape, {&y.shape, &call.x().shape}).each([&](const I* p) { out.moved(at(p[0]), call.x(), at(p[1])); });
}

void reshape(const Call& call) {
  Writer out(call.arithmetic, call.y());
  for (std::size_t k = 0; k < call.x().size(); ++k) out.moved(k, call.x(), k);
}

// The elements [begin, begin + size) of x along a dim go to [to, to + size) of y; both have the same dims in any order.
void run_of(const Call& call, const Value& x, I begin, I size, Value& y, I to, const std::string& dim) {
  const I from_stride = dense_strides(x.shape)[x.shape.position(dim)],
          to_stride = dense_strides(y.shape)[y.shape.position(dim)];
  Writer out(call.arithmetic, y);
  Walk(y.shape.minus({y.shape.dim(dim)}), {&y.shape, &x.shape}).each([&](const I* p) {
    for (I k = 0; k < size; ++k) out.moved(at(p[0] + (to + k) * to_stride), x, at(p[1] + (begin + k) * from_stride));
  });
}

void slice(const Call& call) {
  run_of(call, call.x(), call.attr<I>("begin"), call.attr<I>("size"), call.y(), 0, call.attr<Dim>("dim").name);
}

void pad(const Call& call) {
  const Dim dim = call.attr<Dim>("dim");
  run_of(call, call.x(), 0, dim.size, call.y(), call.attr<I>("before"), dim.name);
}

void concat(const Call& call) {
  const std::string dim = call.attr<Dim>("dim").name;
  I to = 0;
  for (const Value* x : call.in) {
    const I size = x->shape.size_of(dim);
    run_of(call, *x, 0, size, call.y(), to, dim);
    to += size;
  }
}

void split(const Call& call) {
  const Dim dim = call.attr<Dim>("dim");
  const I size = dim.size / call.attr<I>("parts");
  for (std::size_t i = 0; i < call.out.size(); ++i)
    run_of(call, call.x(), static_cast<I>(i) * size, size, call.y(i), 0, dim.name);
}

void shift(const Call& call) {
  const Dim dim = call.attr<Dim>("dim");
  const I offset = call.attr<I>("offset");
  for (I k = 0; k < dim.size; ++k) {
    I to = k + offset;
    if (call.attr<bool>("wrap")) to = ((to % dim.size) + dim.size) % dim.size;
    if (to >= 0 && to < dim.size) run_of(call, call.x(), k, 1, call.y(), to, dim.name);
  }
}

// The first operands are the results.
void passes(const Call& call) {
  for (std::size_t i = 0; i < call.out.size(); ++i) {
    Writer out(call.arithmetic, call.y(i));
    Walk(call.y(i).shape, {&call.y(i).shape, &call.x(i).shape}).each([&](const I* p) {
      out.moved(at(p[0]), call.x(i), at(p[1]));
    });
  }
}

// The value that is assigned, in the variable's order of dims.
void assign(const Call& call) {
  Writer out(call.arithmetic, call.y());
  Walk(call.y().shape, {&call.y().shape, &call.x(1).shape}).each([&](const I* p) {
    out.moved(at(p[0]), call.x(1), at(p[1]));
  });
}

}  // namespace

Rules move_rules() {
  return {{"broadcast", broadcast}, {"reshape", reshape},  {"slice", slice},       {"pad", pad},
          {"concat", concat},       {"split", split},      {"shift", shift},       {"host", passes},
          {"with_layout", passes},  {"recompute", passes}, {"reversible", passes}, {"custom_gradient", passes},
          {"assign", assign}};
}

}  // namespace weft::judge
