// sort, for the few best f32 of long lines: a vector of elements is compared with the worst of the best so far, and most
// often none of them is better. Reads 4 B per element, 1 comparison: bound by memory.
#include "runtime/cpu/top_k.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/top_k.cc"
#include "runtime/cpu/targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weft::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The best so far, in order. Elements come by rising place, so an element goes behind its equals.
template <bool kAscending>
class Best {
 public:
  Best(std::size_t k, float* values, std::int32_t* places) : k_(k), values_(values), places_(places) {}

  float worst() const { return values_[k_ - 1]; }

  void add(float x, std::size_t place) {
    if (count_ == k_ && !is_before(x, worst())) return;
    std::size_t at = count_ < k_ ? count_++ : k_ - 1;
    for (; at > 0 && is_before(x, values_[at - 1]); --at) {
      values_[at] = values_[at - 1];
      places_[at] = places_[at - 1];
    }
    values_[at] = x;
    places_[at] = static_cast<std::int32_t>(place);
  }

 private:
  // NaN counts as the largest.
  static bool is_before(float a, float b) {
    if (kAscending) return a == a && (b != b || a < b);
    return b == b && (a != a || a > b);
  }

  std::size_t k_, count_ = 0;
  float* values_;
  std::int32_t* places_;
};

template <bool kAscending>
HWY_INLINE void find(const float* x, std::size_t length, std::size_t k, float* values, std::int32_t* places) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const std::size_t lanes = hn::Lanes(d), block = 4 * lanes;
  Best<kAscending> best(k, values, places);
  std::size_t i = 0;
  for (; i < k; ++i) best.add(x[i], i);
  V worst = hn::Set(d, best.worst());
  // False for a NaN, here or there: add() then decides.
  const auto no_better = [&](std::size_t at) HWY_ATTR {
    const V v = hn::LoadU(d, x + at);
    return kAscending ? hn::Ge(v, worst) : hn::Le(v, worst);
  };
  for (; i + block <= length; i += block) {
    const auto low = hn::And(no_better(i), no_better(i + lanes));
    const auto high = hn::And(no_better(i + 2 * lanes), no_better(i + 3 * lanes));
    if (HWY_LIKELY(hn::AllTrue(d, hn::And(low, high)))) continue;
    for (std::size_t at = i; at < i + block; at += lanes) {
      if (hn::AllTrue(d, no_better(at))) continue;
      for (std::size_t j = at; j < at + lanes; ++j) best.add(x[j], j);
      worst = hn::Set(d, best.worst());
    }
  }
  for (; i < length; ++i) best.add(x[i], i);
}

void find_best(const BestArgs& args) {
  if (args.ascending) find<true>(args.x, args.length, args.k, args.values, args.places);
  else find<false>(args.x, args.length, args.k, args.values, args.places);
}

}  // namespace weft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::cpu {

HWY_EXPORT(find_best);

void find_best(const BestArgs& args) { HWY_DYNAMIC_DISPATCH(find_best)(args); }

}  // namespace weft::cpu
#endif
