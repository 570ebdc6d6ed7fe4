// Two products and a softmax per block of queries forward, five products back. Operands are packed to f32 rows without
// gaps (padded to whole vectors), keys and values also transposed where a product walks along the memory. A few queries
// read keys and values where they lie: packing would cost more than their products. Items whose keys and values lie side by
// side are computed together, row by row of the memory: long runs of bytes are read at the memory's speed.
#include "runtime/cpu/attend_rows.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "weft/dtype.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/attend_rows.cc"
#include "runtime/cpu/targets.h"
// Above the rest:
#include "hwy/foreach_target.h"
// Below it:
#include "hwy/highway.h"
#include "base/bf16-inl.h"
#include "runtime/cpu/small_product-inl.h"
#include "kernels/highway-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::cpu::HWY_NAMESPACE {

namespace math = vmath::HWY_NAMESPACE;

constexpr std::int64_t kLanes = hn::MaxLanes(F());

HWY_INLINE float number_at(const AttendMatrix& x, std::int64_t offset) {
  if (!x.half) return static_cast<const float*>(x.data)[offset];
  return static_cast<float>(static_cast<const BF16*>(x.data)[offset]);
}

namespace half = bf16::HWY_NAMESPACE;
HWY_INLINE VF load_half(const BF16* from) {
  return half::widen(hn::LoadU(half::Bits(), reinterpret_cast<const std::uint16_t*>(from)));
}
HWY_INLINE void store_half(VF x, BF16* to) {
  hn::StoreU(half::narrow(x), half::Bits(), reinterpret_cast<std::uint16_t*>(to));
}

// Rows lie far apart: the hardware does not see the next one coming. The second cache holds what is fetched this early.
constexpr std::int64_t kRowsAhead = 24;
HWY_INLINE void fetch(const AttendMatrix& x, std::int64_t offset, std::int64_t columns) {
  if (x.column != 1) return;
  const char* row = static_cast<const char*>(x.data) + offset * (x.half ? 2 : 4);
  for (std::int64_t byte = 0; byte < columns * (x.half ? 2 : 4); byte += 64) __builtin_prefetch(row + byte, 0, 2);
}

struct Rows {
  std::int64_t first, count, all;         // of a matrix that has `all`
  const std::int64_t* sources = nullptr;  // of each row; null: all have the first
};

HWY_INLINE std::int64_t start_of(const AttendMatrix& x, const std::int64_t* sources, std::int64_t row) {
  return row * x.row + (sources ? sources[row] * x.source : 0);
}

// Rows of `columns` numbers times `scale`, one every `width` floats, zeros behind its end.
void pack(const AttendMatrix& x, Rows rows, std::int64_t columns, float scale, float* to, std::int64_t width) {
  const F f;
  const VF factor = hn::Set(f, scale);
  for (std::int64_t r = rows.first; r < rows.first + rows.count; ++r, to += width) {
    const std::int64_t start = start_of(x, rows.sources, r);
    if (r + kRowsAhead < rows.all) fetch(x, start_of(x, rows.sources, r + kRowsAhead), columns);
    std::int64_t c = 0;
    if (x.column == 1)
      for (; c + kLanes <= columns; c += kLanes)
        hn::StoreU(hn::Mul(factor, x.half ? load_half(static_cast<const BF16*>(x.data) + start + c)
                                          : hn::LoadU(f, static_cast<const float*>(x.data) + start + c)),
                   f, to + c);
    for (; c < columns; ++c) to[c] = scale * number_at(x, start + c * x.column);
    for (; c < width; ++c) to[c] = 0;
  }
}

// What pack() has packed, turned: columns x `rows` numbers, a row every `width` floats, zeros behind its end.
void transpose(const float* from, std::int64_t from_width, std::int64_t rows, std::int64_t columns, float* to,
               std::int64_t width) {
  const hn::FixedTag<float, 4> f;
  const hn::Repartition<double, decltype(f)> d;
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    std::int64_t c = 0;
    for (; c + 4 <= columns; c += 4) {
      const float* x = from + r * from_width + c;
      const auto r0 = hn::LoadU(f, x), r1 = hn::LoadU(f, x + from_width), r2 = hn::LoadU(f, x + 2 * from_width),
                 r3 = hn::LoadU(f, x + 3 * from_width);
      const auto low01 = hn::BitCast(d, hn::InterleaveLower(f, r0, r1)),
                 low23 = hn::BitCast(d, hn::InterleaveLower(f, r2, r3)),
                 high01 = hn::BitCast(d, hn::InterleaveUpper(f, r0, r1)),
                 high23 = hn::BitCast(d, hn::InterleaveUpper(f, r2, r3));
      float* y = to + c * width + r;
      hn::StoreU(hn::BitCast(f, hn::InterleaveLower(d, low01, low23)), f, y);
      hn::StoreU(hn::BitCast(f, hn::InterleaveUpper(d, low01, low23)), f, y + width);
      hn::StoreU(hn::BitCast(f, hn::InterleaveLower(d, high01, high23)), f, y + 2 * width);
      hn::StoreU(hn::BitCast(f, hn::InterleaveUpper(d, high01, high23)), f, y + 3 * width);
    }
    for (; c < columns; ++c)
      for (std::int64_t i = 0; i < 4; ++i) to[c * width + r + i] = from[(r + i) * from_width + c];
  }
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t i = r; i < rows; ++i) to[c * width + i] = from[i * from_width + c];
    for (std::int64_t i = rows; i < width; ++i) to[c * width + i] = 0;
  }
}

// Row r times scales[r] (null: 1) times `scale`, back to where it belongs.
void unpack(const float* from, std::int64_t width, const float* scales, float scale, const AttendMatrix& x,
            std::int64_t first, std::int64_t rows, std::int64_t columns) {
  const F f;
  for (std::int64_t r = 0; r < rows; ++r, from += width) {
    const std::int64_t start = (first + r) * x.row;
    const float factor = scales ? scales[r] * scale : scale;
    std::int64_t c = 0;
    if (x.column == 1)
      for (; c + kLanes <= columns; c += kLanes) {
        const VF y = hn::Mul(hn::Set(f, factor), hn::LoadU(f, from + c));
        if (x.half) store_half(y, static_cast<BF16*>(x.data) + start + c);
        else hn::StoreU(y, f, static_cast<float*>(x.data) + start + c);
      }
    for (; c < columns; ++c) {
      const std::int64_t at = start + c * x.column;
      if (x.half) static_cast<BF16*>(x.data)[at] = BF16(factor * from[c]);
      else static_cast<float*>(x.data)[at] = factor * from[c];
    }
  }
}

// One worker's scratch, cut up.
struct Cut {
  float* next;
  float* take(std::int64_t floats) { return std::exchange(next, next + AttendSizes::padded(floats)); }
};

// A block of queries and its scores.
struct Block {
  std::int64_t first = 0, queries = 0;
  std::int64_t seen = 0, width = 0;  // the most that one of them sees, and that in whole vectors
};

Block block_at(const AttendSizes& s, std::int64_t first) {
  Block block{first, std::min(s.block(), s.length - first)};
  block.seen = std::max<std::int64_t>(s.seen_by(first + block.queries - 1), 0);
  block.width = AttendSizes::padded(block.seen);
  return block;
}

// Bias and segments on the scores of one query.
void mask(const AttendItem& item, std::int64_t query, std::int64_t seen, float* scores) {
  const AttendMatrix& bias = item.bias;
  if (bias.data) {
    const F f;
    const float* row = static_cast<const float*>(bias.data) + query * bias.row;
    std::int64_t m = 0;
    if (bias.column == 1 && !bias.half)
      for (; m + kLanes <= seen; m += kLanes)
        hn::Store(hn::Add(hn::Load(f, scores + m), hn::LoadU(f, row + m)), f, scores + m);
    for (; m < seen; ++m) scores[m] += number_at(bias, query * bias.row + m * bias.column);
  }
  if (!item.query_ids) return;
  const std::int64_t id = item.query_ids[query];
  for (std::int64_t m = 0; m < seen; ++m)
    if (item.memory_ids[m] != id) scores[m] = -INFINITY;
}

// Lanes of the vector at `m` that are among the first `seen`.
HWY_INLINE hn::Mask<F> first_lanes(std::int64_t seen, std::int64_t m) {
  return hn::FirstN(F(), static_cast<std::size_t>(std::clamp<std::int64_t>(seen - m, 0, kLanes)));
}

// The largest of the first `seen` scores; -inf if nothing is seen.
HWY_INLINE float largest(const float* scores, std::int64_t seen) {
  const F f;
  const VF none = hn::Set(f, -INFINITY);
  VF top = none;
  std::int64_t m = 0;
  for (; m + kLanes <= seen; m += kLanes) top = hn::Max(top, hn::Load(f, scores + m));
  if (m < seen) top = hn::Max(top, hn::IfThenElse(first_lanes(seen, m), hn::Load(f, scores + m), none));
  return hn::GetLane(hn::MaxOfLanes(f, top));
}

// Scores become e^(score - the largest), zeros behind `seen`. Gives their sum; 0 if nothing is seen.
float exponents(float* scores, std::int64_t seen, std::int64_t width) {
  const F f;
  const float most = largest(scores, seen);
  if (most == -INFINITY) {
    std::fill(scores, scores + width, 0.0f);
    return 0;
  }
  VF sum = hn::Zero(f);
  for (std::int64_t m = 0; m < width; m += kLanes) {
    const VF e = math::exp(hn::Sub(hn::Load(f, scores + m), hn::Set(f, most)));
    const VF kept = hn::IfThenElseZero(first_lanes(seen, m), e);
    hn::Store(kept, f, scores + m);
    sum = hn::Add(sum, kept);
  }
  return hn::GetLane(hn::SumOfLanes(f, sum));
}

// The totals of a block of queries are written; in `totals` stay the factors of their results, 0 where nothing is seen.
void finish_totals(float* totals, const AttendMatrix& to, std::int64_t first, std::int64_t queries) {
  const F f;
  for (std::int64_t i = 0; i < queries; ++i) static_cast<float*>(to.data)[(first + i) * to.row] = totals[i];
  for (std::int64_t i = 0; i < queries; i += kLanes) {
    const VF total = hn::Load(f, totals + i);
    hn::Store(hn::IfThenZeroElse(hn::Eq(total, hn::Zero(f)), hn::Div(hn::Set(f, 1), total)), f, totals + i);
  }
}

// --- A few queries ---

// Numbers from `offset` on, zeros behind the last column.
HWY_INLINE VF load_at(const AttendMatrix& x, std::int64_t offset, std::int64_t column, std::int64_t columns) {
  if (x.half) return load_half(static_cast<const BF16*>(x.data) + offset + column);
  const float* from = static_cast<const float*>(x.data) + offset + column;
  if (column + kLanes <= columns) return hn::LoadU(F(), from);
  return hn::MaskedLoad(first_lanes(columns, column), F(), from);
}

// What is computed for the items, by item and query: q and y in whole vectors, scores that become weights, totals.
struct Few {
  Few(const AttendSizes& s, std::int64_t items, float* scratch)
      : key(AttendSizes::padded(s.key)), value(AttendSizes::padded(s.value)), width(AttendSizes::padded(s.end)) {
    Cut cut{scratch};
    q = cut.take(items * s.length * key);
    y = cut.take(items * s.length * value);
    scores = cut.take(items * s.length * width);
    totals = cut.take(items * totals_of_item(s));
  }
  static std::int64_t totals_of_item(const AttendSizes& s) { return AttendSizes::padded(s.length); }

  std::int64_t key, value, width;  // of a row of q, y and scores
  float *q, *y, *scores, *totals;
};

// Brings the row of k or v, of all items, that is read soon.
HWY_INLINE void fetch_ahead(const AttendSizes& s, std::span<const AttendItem> items, AttendMatrix AttendItem::*x,
                            std::int64_t columns, std::int64_t m) {
  if (m + kRowsAhead >= s.end) return;
  const AttendItem& first = items.front();
  const std::int64_t start = start_of(first.*x, first.sources, m + kRowsAhead);
  for (const AttendItem& item : items) fetch(item.*x, start, columns);
}

// scores[item, i, m] = q[item, i] . k[item, m]
void score_few(const AttendSizes& s, std::span<const AttendItem> items, const Few& few) {
  const F f;
  for (std::int64_t m = 0; m < s.end; ++m) {
    fetch_ahead(s, items, &AttendItem::k, s.key, m);
    const std::int64_t start = start_of(items.front().k, items.front().sources, m);
    const float* q = few.q;
    float* score = few.scores + m;
    for (const AttendItem& item : items)
      for (std::int64_t i = 0; i < s.length; ++i, q += few.key, score += few.width) {
        VF sum = hn::Zero(f);
        for (std::int64_t c = 0; c < s.key; c += kLanes)
          sum = hn::MulAdd(hn::Load(f, q + c), load_at(item.k, start, c, s.key), sum);
        *score = hn::GetLane(hn::SumOfLanes(f, sum));
      }
  }
}

constexpr std::int64_t kRowsMixed = 4;  // while sums stay in registers

// Adds rows of v times their weights to y, four vectors of y at a time. `starts`: of `count` rows.
void mix_rows(const AttendSizes& s, const AttendMatrix& v, const std::int64_t* starts, std::int64_t count,
              const float* weights, float* y, std::int64_t width) {
  const F f;
  for (std::int64_t c = 0; c < s.value; c += 4 * kLanes) {
    const auto at = [&](std::int64_t vector) { return c + vector * kLanes; };
    const auto load = [&](std::int64_t vector) {
      return at(vector) < width ? hn::Load(f, y + at(vector)) : hn::Zero(f);
    };
    VF y0 = load(0), y1 = load(1), y2 = load(2), y3 = load(3);
    for (std::int64_t r = 0; r < count; ++r) {
      const VF weight = hn::Set(f, weights[r]);
      const auto add = [&](std::int64_t vector, VF& sum) {
        if (at(vector) < s.value) sum = hn::MulAdd(weight, load_at(v, starts[r], at(vector), s.value), sum);
      };
      add(0, y0);
      add(1, y1);
      add(2, y2);
      add(3, y3);
    }
    const auto keep = [&](std::int64_t vector, const VF& sum) {
      if (at(vector) < width) hn::Store(sum, f, y + at(vector));
    };
    keep(0, y0);
    keep(1, y1);
    keep(2, y2);
    keep(3, y3);
  }
}

// y[item, i] = sum over m of weights[item, i, m] v[item, m]
void mix_few(const AttendSizes& s, std::span<const AttendItem> items, const Few& few) {
  std::fill_n(few.y, static_cast<std::int64_t>(items.size()) * s.length * few.value, 0.0f);
  for (std::int64_t m = 0; m < s.end; m += kRowsMixed) {
    std::int64_t starts[kRowsMixed];
    const std::int64_t count = std::min(kRowsMixed, s.end - m);
    for (std::int64_t r = 0; r < count; ++r) {
      fetch_ahead(s, items, &AttendItem::v, s.value, m + r);
      starts[r] = start_of(items.front().v, items.front().sources, m + r);
    }
    const float* weights = few.scores + m;
    float* y = few.y;
    for (const AttendItem& item : items)
      for (std::int64_t i = 0; i < s.length; ++i, weights += few.width, y += few.value)
        mix_rows(s, item.v, starts, std::clamp<std::int64_t>(s.seen_by(i) - m, 0, count), weights, y, few.value);
  }
}

void ForwardFew(const AttendSizes& s, std::span<const AttendItem> items, float* scratch) {
  const Few few(s, static_cast<std::int64_t>(items.size()), scratch);
  const std::int64_t q = s.length * few.key, y = s.length * few.value;
  float *to_q = few.q, *from_y = few.y, *scores = few.scores, *totals = few.totals;
  for (const AttendItem& item : items) {
    pack(item.q, {0, s.length, s.length}, s.key, s.scale, to_q, few.key);
    to_q += q;
  }
  score_few(s, items, few);
  for (const AttendItem& item : items) {
    for (std::int64_t i = 0; i < s.length; ++i, scores += few.width) {
      const std::int64_t seen = s.seen_by(i);
      mask(item, i, seen, scores);
      totals[i] = exponents(scores, seen, few.width);
    }
    finish_totals(totals, item.total, 0, s.length);
    totals += Few::totals_of_item(s);
  }
  mix_few(s, items, few);
  totals = few.totals;
  for (const AttendItem& item : items) {
    unpack(from_y, few.value, totals, 1, item.y, 0, s.length, s.value);
    from_y += y;
    totals += Few::totals_of_item(s);
  }
}

void Forward(const AttendSizes& s, const AttendItem& item, bool fresh, float* scratch) {
  const std::int64_t key = AttendSizes::padded(s.key), value = AttendSizes::padded(s.value),
                     memory = AttendSizes::padded(s.memory), block_size = s.block();
  Cut cut{scratch};
  float *turned = cut.take(s.key * memory), *v = cut.take(s.memory * value), *q = cut.take(block_size * key),
        *y = cut.take(block_size * value), *scores = cut.take(std::max(block_size * memory, s.memory * key)),
        *totals = cut.take(block_size);
  const std::int64_t turned_width = AttendSizes::padded(s.end);
  if (fresh) {
    pack(item.k, {0, s.end, s.end, item.sources}, s.key, 1, scores, key);
    transpose(scores, key, s.end, s.key, turned, turned_width);
    pack(item.v, {0, s.end, s.end, item.sources}, s.value, 1, v, value);
  }
  for (std::int64_t first = 0; first < s.length; first += block_size) {
    const Block b = block_at(s, first);
    pack(item.q, {first, b.queries, s.length}, s.key, s.scale, q, key);
    small_product({b.queries, b.width, s.key, q, key, 1, turned, turned_width, scores, b.width, false});
    for (std::int64_t i = 0; i < b.queries; ++i) {
      const std::int64_t seen = s.seen_by(first + i);
      mask(item, first + i, seen, scores + i * b.width);
      totals[i] = exponents(scores + i * b.width, seen, b.width);
    }
    finish_totals(totals, item.total, first, b.queries);
    small_product({b.queries, value, b.seen, scores, b.width, 1, v, value, y, value, false});
    unpack(y, value, totals, 1, item.y, first, b.queries, s.value);
  }
}

// One query's scores become its weights p, and what the weights' derivatives dp are those of the scores, p (dp - mean) with
// mean = sum of p dp. The mean is taken of the same dp, so that a weight of 1 leaves exactly 0 however large the keys are.
// What has no weight is left out, whatever its dp is.
void weights_back(float total, std::int64_t seen, std::int64_t width, float* scores, float* dp) {
  const F f;
  const VF most = hn::Set(f, total == 0 ? 0 : largest(scores, seen)), factor = hn::Set(f, total == 0 ? 0 : 1 / total);
  VF sum = hn::Zero(f);
  for (std::int64_t m = 0; m < width; m += kLanes) {
    const VF e = math::exp(hn::Sub(hn::Load(f, scores + m), most));
    const VF p = hn::IfThenElseZero(first_lanes(seen, m), hn::Mul(e, factor));
    const VF d = hn::IfThenElseZero(hn::Ne(p, hn::Zero(f)), hn::Load(f, dp + m));
    hn::Store(p, f, scores + m);
    hn::Store(d, f, dp + m);
    sum = hn::MulAdd(p, d, sum);
  }
  const VF mean = hn::SumOfLanes(f, sum);
  for (std::int64_t m = 0; m < width; m += kLanes)
    hn::Store(hn::Mul(hn::Load(f, scores + m), hn::Sub(hn::Load(f, dp + m), mean)), f, dp + m);
}

// Adds the derivatives by the scores of one query to those by their bias.
void add_to_bias(const float* ds, std::int64_t seen, std::int64_t width, const AttendMatrix& to, std::int64_t query) {
  const F f;
  float* row = static_cast<float*>(to.data) + query * to.row;
  std::int64_t m = 0;
  if (to.column == 0) {
    VF sum = hn::Zero(f);
    for (; m < width; m += kLanes) sum = hn::Add(sum, hn::Load(f, ds + m));
    *row += hn::GetLane(hn::SumOfLanes(f, sum));
    return;
  }
  if (to.column == 1)
    for (; m + kLanes <= seen; m += kLanes) hn::StoreU(hn::Add(hn::LoadU(f, row + m), hn::Load(f, ds + m)), f, row + m);
  for (; m < seen; ++m) row[m * to.column] += ds[m];
}

void Back(const AttendSizes& s, const AttendItem& item, bool fresh, bool last, float* scratch) {
  const std::int64_t key = AttendSizes::padded(s.key), value = AttendSizes::padded(s.value),
                     memory = AttendSizes::padded(s.memory), block_size = s.block();
  Cut cut{scratch};
  float *k = cut.take(s.memory * key), *turned_k = cut.take(s.key * memory), *turned_v = cut.take(s.value * memory),
        *dk = cut.take(s.memory * key), *dv = cut.take(s.memory * value), *q = cut.take(block_size * key),
        *dy = cut.take(block_size * value), *dq = cut.take(block_size * key), *scores = cut.take(block_size * memory),
        *dp = cut.take(block_size * memory);
  if (fresh) {
    pack(item.k, {0, s.memory, s.memory}, s.key, 1, k, key);
    transpose(k, key, s.memory, s.key, turned_k, memory);
    pack(item.v, {0, s.memory, s.memory}, s.value, 1, dv, value);
    transpose(dv, value, s.memory, s.value, turned_v, memory);
    std::fill(dk, dk + s.memory * key, 0.0f);
    std::fill(dv, dv + s.memory * value, 0.0f);
  }
  for (std::int64_t first = 0; first < s.length; first += block_size) {
    const Block b = block_at(s, first);
    pack(item.q, {first, b.queries, s.length}, s.key, s.scale, q, key);
    pack(item.dy, {first, b.queries, s.length}, s.value, 1, dy, value);
    small_product({b.queries, b.width, s.key, q, key, 1, turned_k, memory, scores, b.width, false});
    small_product({b.queries, b.width, s.value, dy, value, 1, turned_v, memory, dp, b.width, false});
    for (std::int64_t i = 0; i < b.queries; ++i) {
      const std::int64_t seen = s.seen_by(first + i);
      mask(item, first + i, seen, scores + i * b.width);
      const float total = static_cast<const float*>(item.total.data)[(first + i) * item.total.row];
      weights_back(total, seen, b.width, scores + i * b.width, dp + i * b.width);
      if (item.dbias.data) add_to_bias(dp + i * b.width, seen, b.width, item.dbias, first + i);
    }
    small_product({b.seen, value, b.queries, scores, 1, b.width, dy, value, dv, value, true});
    small_product({b.seen, key, b.queries, dp, 1, b.width, q, key, dk, key, true});
    small_product({b.queries, key, b.seen, dp, b.width, 1, k, key, dq, key, false});
    unpack(dq, key, nullptr, s.scale, item.dq, first, b.queries, s.key);
  }
  if (!last) return;
  unpack(dk, key, nullptr, 1, item.dk, 0, s.memory, s.key);
  unpack(dv, value, nullptr, 1, item.dv, 0, s.memory, s.value);
}

}  // namespace weft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace weft::cpu {

HWY_EXPORT(Forward);
HWY_EXPORT(ForwardFew);
HWY_EXPORT(Back);

std::int64_t AttendSizes::block() const {
  constexpr std::int64_t kMost = 32, kLeast = 6, kScores = 1 << 15;
  return std::min(length, std::clamp(kScores / padded(memory), kLeast, kMost));
}

std::int64_t AttendSizes::seen_by(std::int64_t query) const {
  return causal ? std::clamp<std::int64_t>(ahead + query + 1, 0, end) : end;
}

bool reads_in_place(const AttendSizes& s, const AttendMatrix& k, const AttendMatrix& v) {
  constexpr std::int64_t kFewQueries = 8, kMostLanes = 16;
  const auto lies_in_rows = [](const AttendMatrix& x, std::int64_t columns) {
    return x.column == 1 && (!x.half || columns % kMostLanes == 0);
  };
  return s.length <= kFewQueries && lies_in_rows(k, s.key) && lies_in_rows(v, s.value);
}

std::int64_t few_scratch(const AttendSizes& s) {
  const std::int64_t rows = AttendSizes::padded(s.key) + AttendSizes::padded(s.value) + AttendSizes::padded(s.memory);
  return s.length * rows + AttendSizes::padded(s.length);
}

std::int64_t forward_scratch(const AttendSizes& s) {
  const std::int64_t key = AttendSizes::padded(s.key), value = AttendSizes::padded(s.value),
                     memory = AttendSizes::padded(s.memory);
  return key * memory + memory * value + s.block() * (key + value) + std::max(s.block() * memory, memory * key) +
         AttendSizes::padded(s.block());
}

std::int64_t back_scratch(const AttendSizes& s) {
  const std::int64_t key = AttendSizes::padded(s.key), value = AttendSizes::padded(s.value),
                     memory = AttendSizes::padded(s.memory);
  return memory * (3 * key + 2 * value) + s.block() * (2 * key + value + 2 * memory) + 16;
}

void attend_rows(const AttendSizes& sizes, const AttendItem& item, bool fresh, float* scratch) {
  HWY_DYNAMIC_DISPATCH(Forward)(sizes, item, fresh, scratch);
}

void attend_few(const AttendSizes& sizes, std::span<const AttendItem> items, float* scratch) {
  HWY_DYNAMIC_DISPATCH(ForwardFew)(sizes, items, scratch);
}

void attend_rows_back(const AttendSizes& sizes, const AttendItem& item, bool fresh, bool last, float* scratch) {
  HWY_DYNAMIC_DISPATCH(Back)(sizes, item, fresh, last, scratch);
}

}  // namespace weft::cpu

#endif  // HWY_ONCE
