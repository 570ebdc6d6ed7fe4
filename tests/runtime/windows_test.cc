// convolve and pool on one processor against loops: dims in any order, strided operands, every float dtype.
#include <gtest/gtest.h>

#include <limits>

#include "support/run_program.h"
#include "support/sampling.h"

namespace weft::test::windows_test {
namespace {

ValueType type(const Shape& shape, DType dtype) { return {dtype, shape, unsplit(shape)}; }

// Small whole numbers: sums of their products are exact in every dtype.
Array numbers(const Shape& shape, DType dtype, std::uint64_t stream) {
  const Array wide = test::filled(shape, whole(-2, 3), DType::kF32, stream);
  return wide.cast(dtype);
}

class EachFloat : public ::testing::TestWithParam<DType> {
 protected:
  Array run(Builder&& b, ValueId out, const std::map<std::string, Array>& inputs) const {
    b.output("out", out);
    NamedShards shards;
    for (const auto& [name, array] : inputs) shards[name] = {array};
    return run_on_mesh(std::move(b).finish(), shards, {.steps = 2}).at("out").front();
  }
};
INSTANTIATE_TEST_SUITE_P(Floats, EachFloat, ::testing::Values(DType::kF32, DType::kBF16, DType::kF16, DType::kF64),
                         [](const auto& info) { return std::string(name_of(info.param)); });

const Dim kN{"n", 2}, kH{"h", 5}, kW{"w", 4}, kG{"g", 2}, kI{"i", 3}, kO{"o", 2}, kKh{"kh", 3}, kKw{"kw", 2};
const Dim kPh{"h", 3}, kPw{"w", 3};  // places
const std::vector<WindowDim> kWindows{{"w", "kw", 2, 1, 1, 0}, {"h", "kh", 3, 2, 1, 1}};

// Calls for all that meets, with row-major places in x [h i n g w], filter [o kw g kh i], y [g w n o h].
template <class Meet>
void each_meeting(const Meet& meet) {
  for (std::int64_t ph = 0; ph < 3; ++ph)
    for (std::int64_t pw = 0; pw < 3; ++pw)
      for (std::int64_t kh = 0; kh < 3; ++kh)
        for (std::int64_t kw = 0; kw < 2; ++kw) {
          const std::int64_t h = ph * 2 + kh - 1, w = pw + kw;
          if (h < 0 || h >= 5 || w >= 4) continue;
          for (std::int64_t n = 0; n < 2; ++n)
            for (std::int64_t g = 0; g < 2; ++g)
              for (std::int64_t i = 0; i < 3; ++i)
                for (std::int64_t o = 0; o < 2; ++o)
                  meet((((h * 3 + i) * 2 + n) * 2 + g) * 4 + w, (((o * 2 + kw) * 2 + g) * 3 + kh) * 3 + i,
                       (((g * 3 + pw) * 2 + n) * 2 + o) * 3 + ph);
        }
}

const Shape kX{kH, kI, kN, kG, kW}, kFilter{kO, kKw, kG, kKh, kI}, kY{kG, kPw, kN, kO, kPh};

TEST_P(EachFloat, ConvolveInThreeDirections) {
  const Array x = numbers(kX, GetParam(), 1), f = numbers(kFilter, GetParam(), 2), y = numbers(kY, GetParam(), 3);
  Array want_x(kX, DType::kF64), want_f(kFilter, DType::kF64), want_y(kY, DType::kF64);
  each_meeting([&](std::int64_t i, std::int64_t k, std::int64_t o) {
    want_y.set(o, want_y.at(o) + x.at(i) * f.at(k));
    want_x.set(i, want_x.at(i) + y.at(o) * f.at(k));
    want_f.set(k, want_f.at(k) + x.at(i) * y.at(o));
  });
  const auto solve = [&](Direction direction, const Array& a, const Array& b, const Shape& out) {
    Builder builder{Mesh()};
    const ValueId first = builder.input("a", type(a.shape(), GetParam()));
    const ValueId second = builder.input("b", type(b.shape(), GetParam()));
    const ValueId result = builder.emit_one(Convolve{direction, kWindows}, {first, second}, type(out, GetParam()));
    return run(std::move(builder), result, {{"a", a}, {"b", b}}).values();
  };
  EXPECT_EQ(solve(Direction::kForward, x, f, kY), want_y.values());
  EXPECT_EQ(solve(Direction::kToInput, y, f, kX), want_x.values());
  EXPECT_EQ(solve(Direction::kToFilter, x, y, kFilter), want_f.values());
}

TEST_P(EachFloat, ConvolveReadsViews) {
  const Shape sx{kN, kH, kI}, sf{kKh, kI};
  const Array x = numbers(sx, GetParam(), 4), f = numbers(sf, GetParam(), 5);
  Builder b{Mesh()};
  const ValueId part = b.slice(b.input("x", type(sx, GetParam())), "h", 1, 3);
  const ValueId taps = b.slice(b.input("f", type(sf, GetParam())), "kh", 1, 2);
  const WindowDim w{"h", "kh", 2, 1, 1, 0};
  const Shape out{{"h", 2}, kN};
  const ValueId result = b.emit_one(Convolve{Direction::kForward, {w}}, {part, taps}, type(out, GetParam()));
  const Array got = run(std::move(b), result, {{"x", x}, {"f", f}});
  for (std::int64_t o = 0; o < 2; ++o)
    for (std::int64_t n = 0; n < 2; ++n) {
      double sum = 0;
      for (std::int64_t k = 0; k < 2; ++k)
        for (std::int64_t i = 0; i < 3; ++i) sum += x.at((n * 5 + 1 + o + k) * 3 + i) * f.at((1 + k) * 3 + i);
      EXPECT_EQ(got.at(o * 2 + n), sum);
    }
}

// x [h n] in windows of 2 with stride 2 and one element of padding before: (_ 0), (1 2), (3 4).
TEST_P(EachFloat, PoolsOfEveryKind) {
  const Dim n{"n", 2};
  const Shape sx{kH, n}, sy{n, kPh};
  const Array x(sx, {1, -1, 2, -2, 2, -3, 0, -4, 4, -4}, GetParam());
  const WindowDim w{"h", "", 2, 2, 1, 1};
  const auto pooled = [&](PoolKind kind, Direction direction, const std::vector<Array>& operands, const Shape& out) {
    Builder b{Mesh()};
    std::vector<ValueId> ids;
    std::map<std::string, Array> inputs;
    for (const Array& operand : operands) {
      const std::string name(1, static_cast<char>('a' + ids.size()));
      ids.push_back(b.input(name, type(operand.shape(), GetParam())));
      inputs[name] = operand;
    }
    const ValueId result = b.emit_one(Pool{kind, direction, {w}}, ids, type(out, GetParam()));
    return run(std::move(b), result, inputs);
  };
  using Numbers = std::vector<double>;
  const Array y = pooled(PoolKind::kMax, Direction::kForward, {x}, sy);
  EXPECT_EQ(y.values(), (Numbers{1, 2, 4, -1, -2, -4}));
  EXPECT_EQ(pooled(PoolKind::kSum, Direction::kForward, {x}, sy).values(), (Numbers{1, 4, 4, -1, -5, -8}));
  EXPECT_EQ(pooled(PoolKind::kSum, Direction::kToInput, {y}, sx).values(),
            (Numbers{1, -1, 2, -2, 2, -2, 4, -4, 4, -4}));
  EXPECT_EQ(pooled(PoolKind::kWinners, Direction::kForward, {x, y}, sy).values(), (Numbers{1, 2, 1, 1, 1, 2}));
  const Array tens(sx, Numbers(10, 10), GetParam());
  EXPECT_EQ(pooled(PoolKind::kWinners, Direction::kForward, {x, y, tens}, sy).values(),
            (Numbers{10, 20, 10, 10, 10, 20}));
  const Array dy(sy, {1, 2, 3, 4, 5, 6}, GetParam());
  EXPECT_EQ(pooled(PoolKind::kWinners, Direction::kToInput, {x, y, dy}, sx).values(),
            (Numbers{1, 4, 2, 5, 2, 0, 0, 6, 3, 6}));
}

}  // namespace
}  // namespace weft::test::windows_test
