// attend: softmax over `memory` of (scale q . k + bias), times v, and attend_back: its derivatives by q, k, v and bias.
//
// Errors: a score may be off by es, so a weight by a factor exp(2 es): that much of everything it multiplies.
#include <algorithm>
#include <optional>

#include "base/index.h"
#include "judge/sums.h"
#include "language/shape_math.h"
#include "program/operation.h"  // AttendRules: the attribute of the two ops

namespace weft::judge {

namespace {

using I = std::int64_t;

// A number and its error.
struct Bounded {
  double v = 0, e = 0;
};

double product_error(Bounded a, Bounded b) {
  return (a.e == 0 ? 0 : std::fabs(b.v) * a.e) + (b.e == 0 ? 0 : std::fabs(a.v) * b.e) +
         (a.e == 0 || b.e == 0 ? 0 : a.e * b.e);
}

// One query at a time.
class Attention {
 public:
  // `masks`: where bias and segments begin among the operands.
  Attention(const Call& call, std::size_t masks)
      : call_(call),
        rules_(call.attr<AttendRules>("rules")),
        q_(call.x(0)),
        k_(call.x(1)),
        v_(call.x(2)),
        bias_(rules_.biased ? call.in[masks] : nullptr),
        query_ids_(rules_.segments ? call.in[masks + (rules_.biased ? 1 : 0)] : nullptr),
        memory_ids_(rules_.segments ? call.in[masks + (rules_.biased ? 2 : 1)] : nullptr),
        end_(rules_.bounded ? call.in[after_segments(rules_, masks)] : nullptr),
        sources_(rules_.sources.empty() ? nullptr : call.in[after_segments(rules_, masks) + (rules_.bounded ? 1 : 0)]),
        rows(q_.shape.minus({q_.shape.dim(rules_.key)})),
        memory(k_.shape.size_of(rules_.memory)),
        keys(q_.shape.size_of(rules_.key)),
        values(v_.shape.size_of(rules_.value)) {}

  // Calls row() with the offsets of a query in these shapes.
  template <class Row>
  void each(std::vector<const Shape*> shapes, const Row& row) {
    const Shape none;
    const auto shape_of = [&](const Value* x) { return x ? &x->shape : &none; };
    const std::size_t own = shapes.size();
    shapes.insert(shapes.end(),
                  {&q_.shape, &k_.shape, &v_.shape, shape_of(bias_), shape_of(query_ids_), shape_of(memory_ids_)});
    const Shape place = rules_.causal ? Shape{rows.dim(rules_.length)} : Shape{};
    const Shape reader = sources_ ? Shape{rows.dim(rules_.sources)} : Shape{};
    shapes.insert(shapes.end(), {&place, shape_of(end_), shape_of(sources_), &reader});
    Walk(rows, shapes).each([&](const I* p) {
      q_at = p[own];
      k_at = p[own + 1];
      v_at = p[own + 2];
      end = end_ ? std::clamp<I>(end_->i[at(p[own + 7])], 0, memory) : memory;
      sources_at = p[own + 8];
      reader_at = p[own + 9];
      make(p[own + 3], p[own + 4], p[own + 5], p[own + 6]);
      row(p);
    });
  }

  I step(const Value& x, const std::string& dim) const { return dense_strides(x.shape)[x.shape.position(dim)]; }
  Bounded q(I d) const { return number(q_, q_at + d * step(q_, rules_.key)); }
  Bounded k(I m, I d) const {
    return number(k_, k_at + moved(k_, m) + m * step(k_, rules_.memory) + d * step(k_, rules_.key));
  }
  Bounded v(I m, I d) const {
    return number(v_, v_at + moved(v_, m) + m * step(v_, rules_.memory) + d * step(v_, rules_.value));
  }
  static Bounded number(const Value& x, I i) { return {x.f[at(i)], x.error[at(i)]}; }
  const AttendRules& rules() const { return rules_; }

 private:
  static std::size_t after_segments(const AttendRules& rules, std::size_t masks) {
    return masks + (rules.biased ? 1 : 0) + (rules.segments ? 2 : 0);
  }

  // From the place of the query's own key to that of its source.
  I moved(const Value& x, I m) const {
    if (!sources_) return 0;
    const I source = sources_->i[at(sources_at + m * step(*sources_, rules_.memory))];
    return (std::clamp<I>(source, 0, x.shape.size_of(rules_.sources) - 1) - reader_at) * step(x, rules_.sources);
  }

  // Weights of one query. All of them share the uncertainty of the sum.
  void make(I bias_at, I query_at, I memory_at, I place) {
    std::vector<Bounded> scores(at(memory));
    visible.assign(at(memory), true);
    most = -kUnknown;
    total = 0;
    double worst = 0;
    const double unit = call_.arithmetic.inner(q_.dtype);
    for (I m = end; m < memory; ++m) visible[at(m)] = false;
    for (I m = 0; m < end; ++m) {
      Value sum({}, call_.arithmetic.inner(q_.dtype) < call_.arithmetic.unit(q_.dtype) ? DType::kF32 : q_.dtype);
      Sums sums(call_.arithmetic, sum);
      for (I d = 0; d < keys; ++d) sums.add(0, q(d).v * k(m, d).v, product_error(q(d), k(m, d)));
      sums.finish(1);
      Bounded& s = scores[at(m)];
      s = {sum.f[0] * rules_.scale, sum.error[0] * std::fabs(rules_.scale)};
      const bool power = std::exp2(std::round(std::log2(std::fabs(rules_.scale)))) == std::fabs(rules_.scale);
      if (!power) s.e += 2 * unit * std::fabs(s.v);
      if (bias_) {
        const I i = bias_at + (bias_->shape.has(rules_.memory) ? m * step(*bias_, rules_.memory) : 0);
        s.v += bias_->f[at(i)];
        s.e += bias_->error[at(i)] + unit * (std::fabs(s.v) + std::fabs(bias_->f[at(i)]));
      }
      visible[at(m)] = !rules_.causal || m <= place;
      if (query_ids_) {
        const I i = memory_at + (memory_ids_->shape.has(rules_.memory) ? m * step(*memory_ids_, rules_.memory) : 0);
        visible[at(m)] = visible[at(m)] && query_ids_->i[at(query_at)] == memory_ids_->i[at(i)];
      }
      if (!visible[at(m)]) continue;
      most = std::max(most, s.v);
      worst = std::max(worst, s.e);
      if (!std::isfinite(s.v) || s.e == kUnknown) worst = kUnknown;
    }
    for (I m = 0; m < memory; ++m)
      if (visible[at(m)]) total += std::exp(scores[at(m)].v - most);
    // Differences of scores round too, where they are large enough to matter.
    const double factor = std::expm1(std::min(700.0, 2 * worst + (static_cast<double>(memory) + 128) * unit));
    weights.assign(at(memory), {});
    unknown = worst == kUnknown;
    for (I m = 0; m < memory && total > 0; ++m) {
      if (!visible[at(m)]) continue;
      const double w = std::exp(scores[at(m)].v - most) / total;
      weights[at(m)] = {w, std::min(1.0, w * factor + call_.arithmetic.least(q_.dtype))};
    }
    spread = worst;
  }

  const Call& call_;
  AttendRules rules_;
  const Value &q_, &k_, &v_;
  const Value *bias_, *query_ids_, *memory_ids_, *end_, *sources_;
  I q_at = 0, k_at = 0, v_at = 0, end = 0, sources_at = 0, reader_at = 0;

 public:
  Shape rows;
  I memory, keys, values;
  std::vector<Bounded> weights;
  std::vector<bool> visible;
  double most = 0, total = 0, spread = 0;
  bool unknown = false;
};

void attend(const Call& call) {
  Attention a(call, 3);
  Value &y = call.y(0), &total = call.y(1);  // total: of e^(score - largest score)
  Sums sums(call.arithmetic, y);
  Writer totals(call.arithmetic, total);
  const I y_step = a.step(y, a.rules().value);
  a.each({&y.shape, &total.shape}, [&](const I* p) {
    for (I m = 0; m < a.memory; ++m)
      for (I d = 0; d < a.values; ++d) {
        const Bounded w = a.weights[at(m)], v = a.v(m, d);
        if (a.visible[at(m)]) sums.add(at(p[0] + d * y_step), w.v * v.v, a.unknown ? kUnknown : product_error(w, v));
      }
    totals.function(at(p[1]), a.total, a.total * std::expm1(std::min(700.0, 2 * a.spread)));
  });
  sums.finish(1);
}

// ds = p (dy . v - dy . y); dq = sum of scale ds k, dk = scale ds q, dv = p dy, and the bias's is ds.
void attend_back(const Call& call) {
  const auto& rules = call.attr<AttendRules>("rules");
  const std::size_t masks =
      call.in.size() - (rules.biased ? 1 : 0) - (rules.segments ? 2 : 0) - (rules.bounded ? 1 : 0);
  Attention a(call, masks);
  const Value& dy = call.x(masks - 1);
  Value &dq = call.y(0), &dk = call.y(1), &dv = call.y(2);
  Sums q_sums(call.arithmetic, dq), k_sums(call.arithmetic, dk), v_sums(call.arithmetic, dv);
  const Shape none;
  const Shape& biased = rules.biased ? call.y(3).shape : none;
  std::optional<Sums> bias_sums;
  if (rules.biased) bias_sums.emplace(call.arithmetic, call.y(3));
  const I bias_memory = biased.has(rules.memory) ? a.step(call.y(3), rules.memory) : 0;
  const double unit = call.arithmetic.inner(dy.dtype), own = call.arithmetic.unit(dy.dtype);
  const I dy_step = a.step(dy, rules.value), dq_step = a.step(dq, rules.key), dk_step = a.step(dk, rules.key),
          dk_memory = a.step(dk, rules.memory), dv_step = a.step(dv, rules.value), dv_memory = a.step(dv, rules.memory);
  std::vector<Bounded> by_weight(at(a.memory));
  a.each({&dq.shape, &dk.shape, &dv.shape, &dy.shape, &biased}, [&](const I* p) {
    Bounded mean;
    double size = 0;  // of the terms of the mean
    for (I m = 0; m < a.memory; ++m) {
      Bounded& dp = by_weight[at(m)];
      dp = {};
      double terms = 0;
      for (I d = 0; d < a.values; ++d) {
        const Bounded g = Attention::number(dy, p[3] + d * dy_step), v = a.v(m, d);
        dp.v += g.v * v.v;
        dp.e += product_error(g, v);
        terms += std::fabs(g.v * v.v);
      }
      dp.e += static_cast<double>(a.values + 2) * unit * terms;
      mean.v += a.weights[at(m)].v * dp.v;
      mean.e += product_error(a.weights[at(m)], dp);
      size += a.weights[at(m)].v * terms;
    }
    mean.e += (static_cast<double>(a.memory + a.values + 4) * unit + own) * size;  // y of dy . y was rounded
    for (I m = 0; m < a.memory; ++m) {
      if (!a.visible[at(m)]) continue;
      const Bounded w = a.weights[at(m)], dp = by_weight[at(m)];
      const Bounded difference{dp.v - mean.v, dp.e + mean.e + unit * (std::fabs(dp.v) + std::fabs(mean.v))};
      const Bounded by_score{w.v * difference.v,
                             product_error(w, difference) + 4 * unit * std::fabs(w.v * difference.v)};
      const Bounded ds{by_score.v * rules.scale, by_score.e * std::fabs(rules.scale)};
      const auto error = [&](double e) { return a.unknown ? kUnknown : e; };
      if (bias_sums) bias_sums->add(at(p[4] + m * bias_memory), by_score.v, error(by_score.e));
      for (I d = 0; d < a.keys; ++d) {
        q_sums.add(at(p[0] + d * dq_step), ds.v * a.k(m, d).v, error(product_error(ds, a.k(m, d))));
        k_sums.add(at(p[1] + m * dk_memory + d * dk_step), ds.v * a.q(d).v, error(product_error(ds, a.q(d))));
      }
      for (I d = 0; d < a.values; ++d) {
        const Bounded g = Attention::number(dy, p[3] + d * dy_step);
        v_sums.add(at(p[2] + m * dv_memory + d * dv_step), w.v * g.v, error(product_error(w, g)));
      }
    }
  });
  for (Sums* sums : {&q_sums, &k_sums, &v_sums}) sums->finish(1);
  if (bias_sums) bias_sums->finish(1);
}

}  // namespace

Rules attend_rules() { return {{"attend", attend}, {"attend_back", attend_back}}; }

}  // namespace weft::judge
