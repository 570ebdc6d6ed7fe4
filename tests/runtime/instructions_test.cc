// Every instruction on one processor against a naive loop: strided operands, several dtypes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/philox.h"
#include "support/expect_error.h"
#include "support/run_program.h"

namespace weft::test::instructions_test {
namespace {

const Dim kA{"a", 3}, kB{"b", 4}, kC{"c", 5}, kD{"d", 2};
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

ValueType type(const Shape& shape, DType dtype = DType::kF32) { return {dtype, shape, unsplit(shape)}; }

// Small integers of both signs: exact in every dtype but the unsigned ones, where they are made positive.
Array numbers(const Shape& shape, DType dtype = DType::kF32, int salt = 0) {
  Array x(shape, dtype);
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const auto word = philox_word(static_cast<std::uint64_t>(salt) + 1, static_cast<std::uint64_t>(i), 0);
    const double small = static_cast<double>(word % 13) - 6;
    x.set(i, dtype == DType::kU8 || dtype == DType::kU32 ? std::fabs(small)
             : dtype == DType::kBool                     ? small > 0
                                                         : small);
  }
  return x;
}

Array run(Builder&& b, ValueId out, const std::map<std::string, Array>& inputs, RunOptions options = {}) {
  b.output("out", out);
  NamedShards shards;
  for (const auto& [name, array] : inputs) shards[name] = {array};
  return run_on_mesh(std::move(b).finish(), shards, options).at("out").front();
}

void expect_each(const Array& got, const std::function<double(const std::vector<std::int64_t>&)>& want) {
  each_index(got.shape(), [&](const std::vector<std::int64_t>& index) {
    const double g = got.at(row_major(got.shape(), index)), w = want(index);
    if (std::isnan(w)) EXPECT_TRUE(std::isnan(g));
    else EXPECT_EQ(g, w) << "element " << row_major(got.shape(), index) << " of " << got.shape();
  });
}

class EachDtype : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Dtypes, EachDtype,
                         testing::Values(DType::kF32, DType::kBF16, DType::kF16, DType::kF64, DType::kI32, DType::kI64,
                                         DType::kU32, DType::kU8, DType::kI8),
                         [](const auto& param) { return std::string(name_of(param.param)); });

TEST_P(EachDtype, ContractWithBatchAndTransposedOperands) {
  const Shape sx{kC, kA, kB}, sy{kA, kD, kC}, so{kD, kA, kB};  // a: batch, c: summed
  const Array x = numbers(sx, GetParam()), y = numbers(sy, GetParam(), 1);
  Builder b{Mesh()};
  const ValueId out =
      b.contract(b.input("x", type(sx, GetParam())), b.input("y", type(sy, GetParam())), type(so, GetParam()));
  expect_each(run(std::move(b), out, {{"x", x}, {"y", y}}), [&](const auto& o) {
    double sum = 0;
    for (std::int64_t c = 0; c < kC.size; ++c)
      sum += x.at(row_major(sx, {c, o[1], o[2]})) * y.at(row_major(sy, {o[1], o[0], c}));
    return sum;
  });
}

TEST_P(EachDtype, ReduceOverOuterMiddleAndAllDims) {
  const Shape s{kA, kB, kC};
  const Array x = numbers(s, GetParam());
  for (const Reduce how : {Reduce::kSum, Reduce::kMax, Reduce::kMin})
    for (const Shape& so : {Shape{kB, kC}, Shape{kC, kA}, Shape{kB}, Shape{}, s}) {
      Builder b{Mesh()};
      const ValueId out = b.reduce(how, b.input("x", type(s, GetParam())), type(so, GetParam()));
      const Array got = run(std::move(b), out, {{"x", x}});
      Array want(so, DType::kF64);
      std::vector<bool> begun(static_cast<std::size_t>(so.elements()));
      each_index(s, [&](const auto& index) {
        std::vector<std::int64_t> o;
        for (const Dim& dim : so) o.push_back(index[s.position(dim.name)]);
        const std::int64_t at = row_major(so, o);
        const double v = x.at(row_major(s, index)), w = want.at(at);
        const bool first = !begun[static_cast<std::size_t>(at)];
        want.set(at, first ? v : how == Reduce::kSum ? w + v : how == Reduce::kMax ? std::max(w, v) : std::min(w, v));
        begun[static_cast<std::size_t>(at)] = true;
      });
      EXPECT_EQ(got.values(), want.values()) << how << " to " << so << " in " << GetParam();
    }
}

TEST_P(EachDtype, MapBroadcastsByNameAndRoundsEachNode) {
  const Shape so{kA, kB, kC};
  const Array x = numbers({kC, kA}, GetParam()), y = numbers({kB}, GetParam(), 1);
  Builder b{Mesh()};
  const ValueId out = b.map("maximum", {b.input("x", type({kC, kA}, GetParam())), b.input("y", type({kB}, GetParam()))},
                            type(so, GetParam()));
  expect_each(run(std::move(b), out, {{"x", x}, {"y", y}}),
              [&](const auto& o) { return std::max(at_named(x, so, o), at_named(y, so, o)); });
}

TEST(Map, RoundsIntermediatesToTheirDtype) {
  // (1 + 2^-20) - 1 is 0 if the sum is a bf16, whatever the precision inside.
  Builder b{Mesh()};
  const ValueId x = b.input("x", type({kA}));
  std::vector<MapNode> nodes = {{.op = "input", .args = {}, .dtype = DType::kF32, .input = 0, .dim = {}},
                                {.op = "cast", .args = {0}, .dtype = DType::kBF16, .dim = {}},
                                {.op = "cast", .args = {1}, .dtype = DType::kF32, .dim = {}},
                                {.op = "literal", .args = {}, .dtype = DType::kF32, .literal = 1, .dim = {}},
                                {.op = "subtract", .args = {2, 3}, .dtype = DType::kF32, .dim = {}}};
  const ValueId out = b.map(nodes, {x}, type({kA}));
  const double input = 1 + 0x1p-20;
  expect_each(run(std::move(b), out, {{"x", Array({kA}, {input, input, input}, DType::kF32)}}),
              [](const auto&) { return 0; });
}

TEST(Map, SelectNeverMixes) {
  Builder b{Mesh()};
  const ValueId c = b.input("c", type({kA}, DType::kBool)), x = b.input("x", type({kA})), y = b.input("y", type({kA}));
  const ValueId out = b.map("select", {c, x, y}, type({kA}));
  const Array got = run(std::move(b), out,
                        {{"c", Array({kA}, {1, 0, 1}, DType::kBool)},
                         {"x", Array({kA}, {1, kNaN, 3}, DType::kF32)},
                         {"y", Array({kA}, {kNaN, 2, kInf}, DType::kF32)}});
  EXPECT_EQ(got.values(), (std::vector<double>{1, 2, 3}));
}

TEST(Map, CastSaturatesAndTruncates) {
  Builder b{Mesh()};
  const ValueId out = b.cast(b.input("x", type({kC})), DType::kI32);
  const Array got = run(std::move(b), out, {{"x", Array({kC}, {-1.9, 2.9, 1e30, kNaN, -kInf}, DType::kF32)}});
  EXPECT_EQ(got.values(), (std::vector<double>{-1, 2, 2147483647, 0, -2147483648.0}));
}

TEST(Map, LongRowsCrossTiles) {
  const Dim n{"n", 1000};
  const Array x = numbers({n});
  Builder b{Mesh()};
  const ValueId out = b.map("square", {b.input("x", type({n}))}, type({n}));
  expect_each(run(std::move(b), out, {{"x", x}}), [&](const auto& o) { return x.at(o[0]) * x.at(o[0]); });
}

TEST(Reduce, MaxAndMinPassNaNOn) {
  for (const Reduce how : {Reduce::kMax, Reduce::kMin, Reduce::kSum, Reduce::kProduct}) {
    Builder b{Mesh()};
    const ValueId out = b.reduce(how, b.input("x", type({kA})), type({}));
    EXPECT_TRUE(std::isnan(run(std::move(b), out, {{"x", Array({kA}, {1, kNaN, 2}, DType::kF32)}}).item())) << how;
  }
}

TEST(Move, CopyOfAStridedViewIsDense) {
  const Shape s{kA, kB, kC};
  const Array x = numbers(s);
  Builder b{Mesh()};
  const ValueId part = b.slice(b.input("x", type(s)), "b", 1, 2);
  const Shape so{kC, Dim{"b", 2}, kA};
  const ValueId out = b.emit_one(Copy{}, {part}, type(so));
  expect_each(run(std::move(b), out, {{"x", x}}), [&](const auto& o) {
    return x.at(row_major(s, {o[2], o[1] + 1, o[0]}));
  });
}

TEST(Move, ConcatAlongAMiddleDim) {
  const Shape sx{kA, kB, kC}, sy{kA, Dim{"b", 2}, kC};
  const Array x = numbers(sx), y = numbers(sy, DType::kF32, 1);
  Builder b{Mesh()};
  const ValueId out = b.concat("b", {b.input("x", type(sx)), b.input("y", type(sy))});
  expect_each(run(std::move(b), out, {{"x", x}, {"y", y}}), [&](const auto& o) {
    return o[1] < 4 ? x.at(row_major(sx, o)) : y.at(row_major(sy, {o[0], o[1] - 4, o[2]}));
  });
}

TEST(Move, TakeClampsAndPutDrops) {
  const Shape s{kA, kC}, sp{kA, Dim{"c", 2}};
  const Array x = numbers(s), piece = numbers(sp, DType::kF32, 1);
  for (const int offset : {-7, -1, 0, 2, 4, 9}) {
    Builder b{Mesh()};
    const ValueId vx = b.input("x", type(s)), vo = b.input("offset", type({}, DType::kI32));
    const ValueId out = b.emit_one(DynamicSlice{"c"}, {vx, vo}, type(sp));
    const Array at(Shape{}, {static_cast<double>(offset)}, DType::kI32);
    const std::int64_t begin = std::clamp(offset, 0, 3);
    expect_each(run(std::move(b), out, {{"x", x}, {"offset", at}}), [&](const auto& o) {
      return x.at(row_major(s, {o[0], o[1] + begin}));
    });

    Builder p{Mesh()};
    const ValueId px = p.input("x", type(s)), pp = p.input("piece", type(sp)),
                  po = p.input("offset", type({}, DType::kI32));
    const ValueId put = p.emit_one(DynamicUpdate{"c"}, {px, pp, po}, type(s));
    expect_each(run(std::move(p), put, {{"x", x}, {"piece", piece}, {"offset", at}}), [&](const auto& o) {
      const std::int64_t j = o[1] - offset;
      return j >= 0 && j < 2 ? piece.at(row_major(sp, {o[0], j})) : x.at(row_major(s, o));
    });
  }
}

TEST(Move, GatherGivesZerosOutsideAndMatchesSharedDims) {
  const Shape s{kC, kA}, si{kB, kA};  // a is in both
  const Array x = numbers(s);
  Array indices(si, DType::kI32);
  for (std::int64_t i = 0; i < indices.elements(); ++i) indices.set(i, static_cast<double>(i % 8) - 1);
  Builder b{Mesh()};
  const ValueId out = b.emit_one(Gather{"c"}, {b.input("x", type(s)), b.input("i", type(si, DType::kI32))}, type(si));
  expect_each(run(std::move(b), out, {{"x", x}, {"i", indices}}), [&](const auto& o) {
    const auto at = static_cast<std::int64_t>(indices.at(row_major(si, o)));
    return at < 0 || at >= 5 ? 0 : x.at(row_major(s, {at, o[1]}));
  });
}

TEST_P(EachDtype, ScatterAddSumsRepeatedIndices) {
  const Shape su{kB, kA}, so{kA, kC};
  const Array updates = numbers(su, GetParam());
  const Array indices({kB}, {1, 4, 1, 7}, DType::kI64);  // one outside
  Builder b{Mesh()};
  const ValueId out =
      b.emit_one(ScatterAdd{"c"}, {b.input("i", type({kB}, DType::kI64)), b.input("u", type(su, GetParam()))},
                 type(so, GetParam()));
  Array want(so, DType::kF64);
  each_index(su, [&](const auto& u) {
    const auto at = static_cast<std::int64_t>(indices.at(u[0]));
    if (at >= 5) return;
    const std::int64_t to = row_major(so, {u[1], at});
    want.set(to, want.at(to) + updates.at(row_major(su, u)));
  });
  EXPECT_EQ(run(std::move(b), out, {{"i", indices}, {"u", updates}}).values(), want.values());
}

Array scanned(DType dtype, const std::vector<double>& x, Scan operation) {
  const Dim n{"n", static_cast<std::int64_t>(x.size())};
  Builder b{Mesh()};
  operation.dim = "n";
  const ValueId out = b.emit_one(operation, {b.input("x", type({n}, dtype))}, type({n}, dtype));
  return run(std::move(b), out, {{"x", Array({n}, x, dtype)}});
}

TEST_P(EachDtype, ScanBothWays) {
  using Numbers = std::vector<double>;
  const Numbers x = {3, 1, 2};
  EXPECT_EQ(scanned(GetParam(), x, {.dim = {}}).values(), (Numbers{3, 4, 6}));
  EXPECT_EQ(scanned(GetParam(), x, {.dim = {}, .exclusive = true}).values(), (Numbers{0, 3, 4}));
  EXPECT_EQ(scanned(GetParam(), x, {.dim = {}, .reverse = true}).values(), (Numbers{6, 3, 2}));
  EXPECT_EQ(scanned(GetParam(), x, {.dim = {}, .exclusive = true, .reverse = true}).values(), (Numbers{3, 2, 0}));
  EXPECT_EQ(scanned(GetParam(), x, {.dim = {}, .how = Reduce::kMin}).values(), (Numbers{3, 1, 1}));
  EXPECT_EQ(scanned(GetParam(), x, {.dim = {}, .how = Reduce::kProduct}).values(), (Numbers{3, 3, 6}));
}

TEST(Sort, LargestFirstTiesToTheLowerIndex) {
  const Shape s{kC, kA}, so{kA, Dim{"k", 3}};
  Array x(s, DType::kF32);
  const std::vector<double> column = {2, 7, 7, -1, 2};
  each_index(s, [&](const auto& i) {
    x.set(row_major(s, i), column[static_cast<std::size_t>(i[0])] + static_cast<double>(i[1]));
  });
  Builder b{Mesh()};
  const std::vector<ValueId> out = b.emit(Sort{"c", "k"}, {b.input("x", type(s))}, {type(so), type(so, DType::kI32)});
  b.output("values", out[0]);
  b.output("indices", out[1]);
  const NamedShards got = run_on_mesh(std::move(b).finish(), {{"x", {x}}});
  expect_each(got.at("values").front(), [](const auto& o) {
    return std::vector<double>{7, 7, 2}[static_cast<std::size_t>(o[1])] + static_cast<double>(o[0]);
  });
  expect_each(got.at("indices").front(), [](const auto& o) {
    return std::vector<double>{1, 2, 0}[static_cast<std::size_t>(o[1])];
  });
}

TEST(Source, ConstantIndexAndHost) {
  Builder b{Mesh()};
  const Shape s{kA, kD};
  const ValueId c = b.emit_one(Constant{{1, 2, 3, 4, 5, 6}}, {}, type(s, DType::kBF16));
  const ValueId rows = b.map({{.op = "index", .args = {}, .dtype = DType::kI32, .dim = "a"}}, {}, type(s, DType::kI32));
  b.emit(Host{"metric", "loss"}, {c}, {});
  b.output("rows", rows);
  std::vector<HostEvent> events;
  const Array got = run(std::move(b), c, {}, {.host = [&](const HostEvent& e) { events.push_back(e); }});
  EXPECT_EQ(got.values(), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].what + " " + events[0].text, "metric loss");
  EXPECT_EQ(events[0].value.values(), got.values());
}

}  // namespace
}  // namespace weft::test::instructions_test
