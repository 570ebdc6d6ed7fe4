// random: Philox4x32-10 in integer operations, so that words agree with every other engine to the bit, and numbers of a
// distribution made from them. f32 and 16-bit floats are computed in f32, all others in f64.
#include <array>
#include <cmath>

#include "base/below.h"
#include "base/dispatch.h"
#include "base/index.h"
#include "base/philox.h"
#include "base/str.h"
#include "kernels/vmath.h"
#include "stablehlo/block.h"

namespace weft::stablehlo {

namespace {

// Formulas over unsigned integers of one shape.
class Words {
 public:
  explicit Words(Writer& writer) : w(writer) {}

  // Of 64 bits; written by its bits, since a literal is signed.
  Term wide(std::uint64_t number, const Shape& shape) const {
    const auto part = [&](std::uint64_t bits) { return w.number(static_cast<std::int64_t>(bits), "ui64", shape); };
    if (number >> 63 == 0) return part(number);
    return w.apply("or", {w.apply("shift_left", {part(number >> 32), part(32)}), part(number & 0xFFFFFFFF)});
  }
  Term exclusive_or(const Term& x, const Term& y) const { return w.apply("xor", {x, y}); }
  Term low(const Term& x) const { return w.convert(x, "ui32"); }
  Term high(const Term& x) const { return low(w.apply("shift_right_logical", {x, w.number(32, "ui64", x.shape)})); }

  // base/philox.h has these in C++.
  Term mix64(Term x) const {
    const auto folded = [&](const Term& y, int places) {
      return exclusive_or(y, w.apply("shift_right_logical", {y, w.number(places, "ui64", y.shape)}));
    };
    x = w.apply("add", {x, wide(0x9E3779B97F4A7C15, x.shape)});
    x = w.apply("multiply", {folded(x, 30), wide(0xBF58476D1CE4E5B9, x.shape)});
    x = w.apply("multiply", {folded(x, 27), wide(0x94D049BB133111EB, x.shape)});
    return folded(x, 31);
  }

  // `key` is a ui64 scalar; the counters have one shape.
  std::array<Term, 4> philox(std::array<Term, 4> counter, const Term& key) const {
    const Shape shape = counter[0].shape;
    Term k0 = low(key), k1 = high(key);
    for (int round = 0; round < 10; ++round) {
      const auto product = [&](const Term& x, std::uint32_t factor) {
        return w.apply("multiply", {w.convert(x, "ui64"), wide(factor, shape)});
      };
      const Term a = product(counter[0], 0xD2511F53), b = product(counter[2], 0xCD9E8D57);
      counter = {exclusive_or(exclusive_or(high(b), counter[1]), w.broadcast(k0, shape)), low(b),
                 exclusive_or(exclusive_or(high(a), counter[3]), w.broadcast(k1, shape)), low(a)};
      k0 = w.apply("add", {k0, w.number(std::int64_t{0x9E3779B9}, "ui32")});
      k1 = w.apply("add", {k1, w.number(std::int64_t{0xBB67AE85}, "ui32")});
    }
    return counter;
  }

  Writer& w;
};

class RandomWriter {
 public:
  RandomWriter(Block& block, const Instr& instr, const Random& operation)
      : block_(block),
        w_(block.w),
        words_(block.w),
        operation_(operation),
        id_(instr.outputs[0]),
        out_(block.value(id_)),
        iteration_(instr.inputs.empty() ? w_.number(0, "ui32") : w_.convert(block.term(instr.inputs[0]), "ui32")) {}

  void write() {
    const Element element = element_of(out_.dtype);
    const Term words = all_words();
    if (operation_.distribution == Distribution::kBits) return block_.define(id_, words);
    const Term bits = w_.apply("shift_right_logical", {words, w_.number(8, "ui32", words.shape)});
    if (operation_.distribution == Distribution::kBernoulli) {
      const auto most = static_cast<std::int64_t>(std::clamp(std::nearbyint(operation_.a * 0x1p24), 0.0, 0x1p24));
      return block_.define(id_, w_.convert(w_.compare("LT", bits, w_.number(most, "ui32", bits.shape)), element));
    }
    const Term number = deviates(bits, is_float(element) ? wide_of(element) : "f64");
    block_.define(id_, below_end(w_.convert(number, element)));
  }

 private:
  // One word per element. Four elements in a row share a call of Philox if rows begin at multiples of four.
  Term all_words() {
    const Shape& shape = out_.shape;
    const bool by_fours = !shape.empty() && shape[shape.rank() - 1].size % 4 == 0;
    Shape blocks = shape;
    if (by_fours) blocks = shape.resized(shape[shape.rank() - 1].name, shape[shape.rank() - 1].size / 4);
    const Term element = global_index(blocks, by_fours ? 4 : 1);
    const Term number = w_.apply("shift_right_logical", {element, w_.number(2, "ui64", blocks)});
    const std::array<Term, 4> words = words_.philox(
        {words_.low(number), words_.high(number), w_.broadcast(block_.step, blocks), w_.broadcast(iteration_, blocks)},
        key());
    if (by_fours) {
      const Shape apart = blocks.plus({{"#word", 1}});
      Terms parts;
      for (const Term& word : words) parts.push_back(w_.reshape(word, apart));
      return w_.reshape(w_.concatenate(parts, "#word"), shape);
    }
    const Term which = w_.apply("and", {words_.low(element), w_.number(3, "ui32", blocks)});
    const auto is = [&](int i) { return w_.compare("EQ", which, w_.number(i, "ui32", blocks)); };
    return w_.select(is(0), words[0], w_.select(is(1), words[1], w_.select(is(2), words[2], words[3])));
  }

  // The row-major index in the whole tensor of the first of every `apart` elements along the last dim.
  Term global_index(const Shape& blocks, std::int64_t apart) {
    const Shape whole = global_shape(out_.shape, out_.sharding, block_.program.mesh);
    Term sum = w_.number(0, "ui64", blocks);
    std::int64_t stride = 1;
    for (std::size_t d = blocks.rank(); d-- > 0; stride *= whole[d].size) {
      const std::int64_t step = d + 1 == blocks.rank() ? apart : 1;
      const Shape line = {blocks[d]};
      Term index = w_.apply("multiply", {w_.iota(line, blocks[d].name, "ui64"), w_.number(step, "ui64", line)});
      if (const auto begin = block_.shard_begin(id_, blocks[d].name))
        index = w_.apply("add", {index, w_.broadcast(w_.convert(*begin, "ui64"), line)});
      index = w_.apply("multiply", {index, w_.number(stride, "ui64", line)});
      sum = w_.apply("add", {sum, w_.broadcast(index, blocks)});
    }
    return sum;
  }

  // The op's key under the seed.
  Term key() {
    const Term parts = w_.convert(block_.seed, "ui64");
    const auto word = [&](std::int64_t i) { return w_.reshape(w_.slice(parts, "word", i, i + 1), {}); };
    const Term seed = w_.apply("or", {word(0), w_.apply("shift_left", {word(1), w_.number(32, "ui64")})});
    return words_.mix64(words_.exclusive_or(words_.wide(operation_.key, {}), words_.mix64(seed)));
  }

  Term deviates(const Term& bits, Element element) {
    const auto set = [&](double number) { return w_.number(number, element, bits.shape); };
    const auto mul = [&](const Term& x, const Term& y) { return w_.apply("multiply", {x, y}); };
    const double a = operation_.a, b = operation_.b;
    if (operation_.distribution == Distribution::kUniform) {
      const Term share = mul(w_.convert(bits, element), set(0x1p-24));
      return w_.apply("add", {set(a), mul(set(b - a), share)});
    }
    // p = (bits + 1/2) / 2^24 lies around 1/2 by a whole number of 2^-25, which f32 holds.
    const Term twice = w_.apply("shift_left", {w_.convert(bits, "i32"), w_.number(1, "i32", bits.shape)});
    const Term away = w_.convert(w_.apply("subtract", {twice, w_.number((1 << 24) - 1, "i32", bits.shape)}), element);
    const double kept = operation_.distribution == Distribution::kTruncatedNormal
                            ? vmath::normal_below(2) - vmath::normal_below(-2)
                            : 1;
    const Term q = mul(away, set(0x1p-25 * kept));
    return w_.apply("add", {set(a), mul(set(b), inverse_normal(q, element))});
  }

  // Wichura's AS 241 of p = 1/2 + q, in which 1/2 - |q| is exact.
  Term inverse_normal(const Term& q, Element element) {
    const auto set = [&](double number) { return w_.number(number, element, q.shape); };
    const auto polynomial = [&](const Term& x, const std::array<double, 8>& c) {
      Term sum = set(c[7]);
      for (std::size_t i = 7; i-- > 0;) sum = w_.apply("add", {w_.apply("multiply", {sum, x}), set(c[i])});
      return sum;
    };
    const auto sub = [&](const Term& x, const Term& y) { return w_.apply("subtract", {x, y}); };
    const auto ratio = [&](const Term& x, const std::array<double, 8>& above, const std::array<double, 8>& below) {
      return w_.apply("divide", {polynomial(x, above), polynomial(x, below)});
    };
    const Term near_x = sub(set(0.180625), w_.apply("multiply", {q, q}));
    const Term near = w_.apply("multiply", {q, ratio(near_x, kNearAbove, kNearBelow)});
    const Term size = w_.apply("abs", {q}), tail = sub(set(0.5), size);
    const Term far_x = sub(w_.apply("sqrt", {w_.apply("negate", {w_.apply("log", {tail})})}), set(1.6));
    const Term far = ratio(far_x, kFarAbove, kFarBelow);
    const Term sided = w_.select(w_.compare("LT", q, set(0)), w_.apply("negate", {far}), far);
    return w_.select(w_.compare("LT", size, set(0.425)), near, sided);
  }

  // Rounding may reach b, which is outside of [a, b).
  Term below_end(const Term& x) {
    if (operation_.distribution != Distribution::kUniform || operation_.a >= operation_.b || !is_float(x.element))
      return x;
    const double most = visit_dtype(out_.dtype, [&]<class T>() { return below<T>(operation_.b); });
    return w_.apply("minimum", {x, w_.number(most, x.element, x.shape)});
  }

  static constexpr std::array<double, 8> kNearAbove = {
      3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3, 1.3731693765509461125e+4,
      4.5921953931549871457e+4, 6.7265770927008700853e+4, 3.3430575583588128105e+4, 2.5090809287301226727e+3};
  static constexpr std::array<double, 8> kNearBelow = {1.0,
                                                       4.2313330701600911252e+1,
                                                       6.8718700749205790830e+2,
                                                       5.3941960214247511077e+3,
                                                       2.1213794301586595867e+4,
                                                       3.9307895800092710610e+4,
                                                       2.8729085735721942674e+4,
                                                       5.2264952788528545610e+3};
  static constexpr std::array<double, 8> kFarAbove = {
      1.42343711074968357734e0, 4.63033784615654529590e0,  5.76949722146069140550e0,  3.64784832476320460504e0,
      1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr std::array<double, 8> kFarBelow = {1.0,
                                                      2.05319162663775882187e0,
                                                      1.67638483018380384940e0,
                                                      6.89767334985100004550e-1,
                                                      1.48103976427480074590e-1,
                                                      1.51986665636164571966e-2,
                                                      5.47593808499534494600e-4,
                                                      1.05075007164441684324e-9};

  Block& block_;
  Writer& w_;
  Words words_;
  const Random& operation_;
  ValueId id_;
  const Value& out_;
  Term iteration_;
};

}  // namespace

void write_random(Block& block, const Instr& instr, const Random& operation) {
  RandomWriter(block, instr, operation).write();
}

}  // namespace weft::stablehlo
