// random. A chunk of numbers is made in passes over memory of the first cache: words of Philox to draws, then draws to
// numbers of the distribution. Normal deviates far from the middle are few; a third pass makes them. Every operation is
// that of the scalar formula.
#include "runtime/cpu/random_run.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "base/dispatch.h"
#include "runtime/cpu/kernels.h"
#include "runtime/random.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/random_run.cc"
#include "runtime/cpu/targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/highway-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace math = vmath::HWY_NAMESPACE;

using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;
using DU = hn::RebindToUnsigned<D>;
using VU = hn::Vec<DU>;

// A product of the low 32 bits of every lane, in 64.
HWY_INLINE VU product(VU x, VU y) {
  const hn::Repartition<std::uint32_t, DU> d32;
  return hn::MulEven(hn::BitCast(d32, x), hn::BitCast(d32, y));
}

// As many blocks of four words as there are lanes. What is above a word's 32 bits means nothing: products do not see it.
struct Words {
  VU w[4];
};
HWY_INLINE Words philox_blocks(const RandomRun& run, std::uint64_t block) {
  const DU d;
  const VU number = hn::Add(hn::Set(d, block), hn::Iota(d, 0));
  Words c{{number, hn::ShiftRight<32>(number), hn::Set(d, run.step), hn::Set(d, run.iteration)}};
  auto k0 = static_cast<std::uint32_t>(run.key), k1 = static_cast<std::uint32_t>(run.key >> 32);
  const VU m0 = hn::Set(d, 0xD2511F53), m1 = hn::Set(d, 0xCD9E8D57);
  for (int round = 0; round < 10; ++round) {
    const VU a = product(c.w[0], m0), b = product(c.w[2], m1);
    c = {{hn::Xor3(hn::ShiftRight<32>(b), c.w[1], hn::Set(d, k0)), b,
          hn::Xor3(hn::ShiftRight<32>(a), c.w[3], hn::Set(d, k1)), a}};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

// draw24 of a word, as a number.
HWY_INLINE V draws(VU word) {
  const D d;
  const DU du;
  const VU bits = hn::And(hn::ShiftRight<8>(word), hn::Set(du, 0xFFFFFF));
  const V shift = hn::Set(d, 0x1p52);  // its last place is 1
  return hn::Sub(hn::BitCast(d, hn::Or(bits, hn::BitCast(du, shift))), shift);
}

constexpr std::size_t kLanes = hn::MaxLanes(D());
constexpr std::size_t kRoom = std::extent_v<decltype(RandomRoom::numbers)>;
static_assert(kLanes <= 8 && kRoom >= kRandomChunk + 3 + 4 * kLanes);

// numbers[i] = a + b vmath::inverse_normal(numbers[i]); `count` whole vectors.
void normals(double* numbers, std::size_t count, double a, double b) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  const auto scaled = [&](V x) { return hn::Add(hn::Set(d, a), hn::Mul(hn::Set(d, b), x)); };
  HWY_ALIGN double far[kRoom + kLanes];
  std::size_t place[kRoom];
  std::size_t many = 0;
  for (std::size_t i = 0; i < count; i += lanes) {
    const V p = hn::Load(d, numbers + i), q = hn::Sub(p, hn::Set(d, 0.5));
    const auto is_far = hn::Ge(hn::Abs(q), hn::Set(d, 0.425));
    std::uint8_t bits[8] = {};
    hn::StoreMaskBits(d, is_far, bits);
    for (std::uint32_t left = bits[0]; left != 0; left &= left - 1) {
      place[many] = i + static_cast<std::size_t>(std::countr_zero(left));
      far[many] = numbers[place[many]];
      ++many;
    }
    hn::Store(scaled(math::inverse_normal_near(p)), d, numbers + i);
  }
  for (std::size_t i = many; i < many + lanes; ++i) far[i] = 0.01;  // the last vector is full
  for (std::size_t i = 0; i < many; i += lanes)
    hn::Store(scaled(math::inverse_normal_far(hn::Load(d, far + i))), d, far + i);
  for (std::size_t i = 0; i < many; ++i) numbers[place[i]] = far[i];
}

// Applies f to `count` numbers, whole vectors.
template <class F>
HWY_INLINE void each(double* numbers, std::size_t count, F f) {
  const D d;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) hn::Store(f(hn::Load(d, numbers + i)), d, numbers + i);
}

void finish(const RandomRun& run, double* numbers, std::size_t count) {
  const D d;
  const V a = hn::Set(d, run.a);
  const bool cut = run.distribution == Distribution::kTruncatedNormal;
  static const double kBelow = vmath::normal_below(-2), kRange = vmath::normal_below(2) - kBelow;
  switch (run.distribution) {
    case Distribution::kUniform: {
      const V range = hn::Set(d, run.b - run.a);
      return each(numbers, count, [&](V x) { return hn::Add(a, hn::Mul(range, hn::Mul(x, hn::Set(d, 0x1p-24)))); });
    }
    case Distribution::kNormal:
    case Distribution::kTruncatedNormal:
      each(numbers, count, [&](V x) {
        const V p = hn::Mul(hn::Add(x, hn::Set(d, 0.5)), hn::Set(d, 0x1p-24));
        return cut ? hn::Add(hn::Set(d, kBelow), hn::Mul(hn::Set(d, kRange), p)) : p;
      });
      return normals(numbers, count, run.a, run.b);
    case Distribution::kBernoulli: {
      const V most = hn::Set(d, std::nearbyint(run.a * 0x1p24));
      return each(numbers, count, [&](V x) { return hn::IfThenElseZero(hn::Lt(x, most), hn::Set(d, 1.0)); });
    }
    case Distribution::kBits: return;
  }
}

// `room` begins with the block of the first element.
const double* run_chunk(const RandomRun& run, std::uint64_t first, std::size_t count, double* room) {
  const D d;
  const DU du;
  const std::size_t lanes = hn::Lanes(d), skipped = first % 4;
  const bool bits = run.distribution == Distribution::kBits;
  std::size_t made = 0;
  for (; made < skipped + count; made += 4 * lanes) {
    const Words words = philox_blocks(run, (first + made) / 4);
    V x[4];
    for (int k = 0; k < 4; ++k) {
      const VU low = hn::And(words.w[k], hn::Set(du, 0xFFFFFFFF));
      const V shift = hn::Set(d, 0x1p52);
      x[k] = bits ? hn::Sub(hn::BitCast(d, hn::Or(low, hn::BitCast(du, shift))), shift) : draws(words.w[k]);
    }
    hn::StoreInterleaved4(x[0], x[1], x[2], x[3], d, room + made);
  }
  finish(run, room, made);
  return room + skipped;
}

using Chunk = const double* (*)(const RandomRun&, std::uint64_t, std::size_t, double*);
Chunk find_chunk() { return run_chunk; }

void to_floats(const double* from, float* to, std::size_t count) {
  const D d;
  const hn::Rebind<float, D> df;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) hn::StoreU(hn::DemoteTo(df, hn::LoadU(d, from + i)), df, to + i);
  for (; i < count; ++i) to[i] = static_cast<float>(from[i]);
}
using ToFloats = void (*)(const double*, float*, std::size_t);
ToFloats find_to_floats() { return to_floats; }

}  // namespace weft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::cpu {

HWY_EXPORT(find_chunk);
HWY_EXPORT(find_to_floats);

namespace {

constexpr std::int64_t kDrawnAlone = 1 << 12;  // elements that are not worth waking the others for

}  // namespace

const double* random_run(const RandomRun& run, std::uint64_t first, std::size_t count, RandomRoom& room) {
  static const auto kChunk = HWY_DYNAMIC_DISPATCH(find_chunk)();
  return kChunk(run, first, count, room.numbers);
}

RandomFill::RandomFill(const TensorView& out) : data_(out.data), dtype_(out.dtype) {
  std::int64_t whole = 1;
  for (std::size_t d = out.shape.rank(); d-- > 0; whole *= out.whole[d]) {
    const Loop loop{out.shape[d].size, whole, out.strides[d]};
    elements_ *= loop.size;
    begin_ += out.begin[d] * whole;
    Loop& last = outer_.empty() ? inner_ : outer_.front();
    const bool joins = last.size * last.whole == loop.whole && last.size * last.out == loop.out;
    if (loop.size == 1) continue;
    if (inner_.size == 1) inner_ = loop;
    else if (joins) last.size *= loop.size;
    else outer_.insert(outer_.begin(), loop);
  }
}

template <class T>
void RandomFill::fill_as(const RandomRun& run, Share share, bool stays_below) const {
  static const auto kToFloats = HWY_DYNAMIC_DISPATCH(find_to_floats)();
  RandomRoom memory;
  const double most = stays_below ? below<T>(run.b) : 0;
  for (std::int64_t at = share.begin; at < share.end;) {
    const std::int64_t inner = at % inner_.size;
    std::int64_t from = begin_ + inner * inner_.whole, to = inner * inner_.out, rest = at / inner_.size;
    for (std::size_t d = outer_.size(); d-- > 0; rest /= outer_[d].size) {
      from += rest % outer_[d].size * outer_[d].whole;
      to += rest % outer_[d].size * outer_[d].out;
    }
    const bool one_run = inner_.whole == 1 || inner_.size == 1;
    const std::int64_t room = one_run ? std::min<std::int64_t>(kRandomChunk, inner_.size - inner) : 1;
    const auto count = static_cast<std::size_t>(std::min(room, share.end - at));
    const double* numbers = random_run(run, static_cast<std::uint64_t>(from), count, memory);
    const auto number = [&](std::size_t i) { return stays_below ? std::min(numbers[i], most) : numbers[i]; };
    T* target = static_cast<T*>(data_) + to;
    const bool plain = std::is_same_v<T, float> && inner_.out == 1 && !stays_below;
    if constexpr (std::is_same_v<T, float>)
      if (plain) kToFloats(numbers, target, count);
    for (std::size_t i = 0; !plain && i < count; ++i)
      target[static_cast<std::int64_t>(i) * inner_.out] = from_double<T>(number(i));
    at += static_cast<std::int64_t>(count);
  }
}

void RandomFill::fill(const RandomRun& run, bool stays_below, Workers& workers) const {
  const auto fill_part = [&](const Share& share) {
    visit_dtype(dtype_, [&]<class T>() { fill_as<T>(run, share, stays_below); });
  };
  if (elements_ < kDrawnAlone) return fill_part({0, elements_});
  workers.run([&](int worker) { fill_part(share_of(elements_, worker, workers.size(), kRandomChunk)); });
}

namespace {

Kernel random(const KernelArgs& args) {
  const Random& operation = *args.instr.as<Random>();
  const auto* iteration = args.inputs.empty() ? nullptr : static_cast<const std::int64_t*>(args.inputs[0].data);
  // Rounding may reach b, which is outside of [a, b).
  const bool stays_below =
      operation.distribution == Distribution::kUniform && operation.a < operation.b && is_float(args.outputs[0].dtype);
  return [=, fill = RandomFill(args.outputs[0]), workers = args.workers](const StepState& state) {
    fill.fill({.key = seeded(operation.key, state.seed),
               .step = state.step,
               .iteration = static_cast<std::uint32_t>(iteration ? *iteration : 0),
               .distribution = operation.distribution,
               .a = operation.a,
               .b = operation.b},
              stays_below, *workers);
  };
}

const AddKernel kRandomKernel(kernels(), Random::kName, random);

}  // namespace

}  // namespace weft::cpu
#endif
