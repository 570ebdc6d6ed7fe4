// The edges of the kernels: starts of integer scans, NaN in an order, open intervals, huge arguments, unknown functions.
#include <gtest/gtest.h>

#include <cstring>

#include <cmath>
#include <limits>

#include "kernels/vmath.h"
#include "support/expect_error.h"
#include "support/run_program.h"

namespace weft::test::edges_test {
namespace {

ValueType type(const Shape& shape, DType dtype = DType::kF32) { return {dtype, shape, unsplit(shape)}; }

Array run(Builder&& b, ValueId out, const NamedShards& inputs) {
  b.output("out", out);
  return run_on_mesh(std::move(b).finish(), inputs).at("out").front();
}

TEST(Edges, ExclusiveScansStartAtTheEndsOfTheDtype) {
  const Dim n{"n", 2};
  const auto first = [&](DType dtype, Reduce how) {
    Builder b{Mesh()};
    const ValueId out = b.emit_one(Scan{"n", how, true, false}, {b.input("x", type({n}, dtype))}, type({n}, dtype));
    return run(std::move(b), out, {{"x", {Array({n}, {5, 1}, dtype)}}}).at(0);
  };
  EXPECT_EQ(first(DType::kI32, Reduce::kMax), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(first(DType::kI32, Reduce::kMin), std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(first(DType::kU8, Reduce::kMin), 255);
  EXPECT_EQ(first(DType::kF32, Reduce::kMax), -std::numeric_limits<double>::infinity());
}

TEST(Edges, SortOrdersNaNFirstAndLosesNothing) {
  const Dim n{"n", 6}, k{"k", 4};
  Builder b{Mesh()};
  const std::vector<ValueId> out =
      b.emit(Sort{"n", "k"}, {b.input("x", type({n}))}, {type({k}), type({k}, DType::kI32)});
  const ValueId at = out[1];
  const Array got = run(std::move(b), at, {{"x", {Array({n}, {1, NAN, 5, NAN, 9, 2}, DType::kF32)}}});
  EXPECT_EQ(got.values(), (std::vector<double>{1, 3, 4, 2}));
}

TEST(Edges, AscendingSortPutsNaNLastAndKeepsTies) {
  const Dim n{"n", 6};
  Builder b{Mesh()};
  const std::vector<ValueId> out =
      b.emit(Sort{"n", "n", true}, {b.input("x", type({n}))}, {type({n}), type({n}, DType::kI32)});
  const Array got = run(std::move(b), out[1], {{"x", {Array({n}, {1, NAN, 0, NAN, 1, -2}, DType::kF32)}}});
  EXPECT_EQ(got.values(), (std::vector<double>{5, 2, 0, 4, 1, 3}));
}

TEST(Edges, SortComparesLargeIntegersExactly) {
  const Dim n{"n", 2}, k{"k", 1};
  Array x({n}, DType::kI64);
  const std::int64_t numbers[] = {std::int64_t{1} << 60, (std::int64_t{1} << 60) + 1};
  std::memcpy(x.bytes(), numbers, sizeof numbers);
  Builder b{Mesh()};
  const ValueId at = b.emit(Sort{"n", "k"}, {b.input("x", type({n}, DType::kI64))},
                            {type({k}, DType::kI64), type({k}, DType::kI32)})[1];
  EXPECT_EQ(run(std::move(b), at, {{"x", {x}}}).at(0), 1);
}

TEST(Edges, UniformDrawsStayBelowTheEnd) {
  const Dim n{"n", 1 << 16};
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32})
    for (const double a : {0.0, 1.0, -1.0, -3.0}) {
      Builder b{Mesh()};
      const ValueId out = b.emit_one(Random{Distribution::kUniform, a, a + 1, 7}, {}, type({n}, dtype));
      for (double x : run(std::move(b), out, {}).values()) {
        ASSERT_GE(x, a) << dtype;
        ASSERT_LT(x, a + 1) << dtype;
      }
    }
}

TEST(Edges, ScatterAddRepeatsUpdatesAlongDimsOfTheIndices) {
  const Dim r{"r", 3}, c{"c", 4};
  Builder b{Mesh()};
  const ValueId out =
      b.emit_one(ScatterAdd{"c"}, {b.input("i", type({r}, DType::kI32)), b.input("u", type({}))}, type({r, c}));
  const Array got =
      run(std::move(b), out, {{"i", {Array({r}, {2, 0, 3}, DType::kI32)}}, {"u", {Array({}, {7}, DType::kF32)}}});
  EXPECT_EQ(got.values(), (std::vector<double>{0, 0, 7, 0, 7, 0, 0, 0, 0, 0, 0, 7}));
}

TEST(Edges, UnknownFunctionsAreFoundWhenBinding) {
  const auto bind = [&](const char* function, DType dtype) {
    const Shape s{Dim{"n", 2}};
    Builder b{Mesh()};
    b.output("out", b.map(function, {b.input("x", type(s, dtype))}, type(s, dtype)));
    const Program program = std::move(b).finish();
    run_all(program, {});
  };
  EXPECT_INTERNAL_ERROR(bind("cubic", DType::kF32), "no pointwise function 'cubic'");
  EXPECT_INTERNAL_ERROR(bind("exp", DType::kI32), "'exp' takes no i32");
}

TEST(Edges, SinCosAndErfStayBounded) {
  for (double x = 1; x < 1e300; x *= 7.3)
    for (double y : {vmath::sin(x), vmath::cos(x), vmath::sin(-x), vmath::cos(-x)})
      ASSERT_LE(std::fabs(y), 1) << "of " << x;
  for (double x = 0; x < 7; x += 1e-3) ASSERT_LE(vmath::erf(x), 1) << "of " << x;
  for (double x = 1; x < 1e12; x *= 1.37) {
    const long double want = std::sin(static_cast<long double>(x));
    ASSERT_LE(std::fabs(vmath::sin(x) - want), 1e-15L * std::fabs(want)) << "of " << x;
  }
}

}  // namespace
}  // namespace weft::test::edges_test
