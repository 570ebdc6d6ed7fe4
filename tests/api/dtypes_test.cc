// Programs in every dtype, with collectives in them; and the three dtypes of a variable.
#include <gtest/gtest.h>

#include <cmath>

#include "base/str.h"
#include "weft/weft.h"

namespace weft::dtypes_test {
namespace {

const Dim kA{"a", 4}, kB{"b", 6}, kC{"c", 2};

Array ramp(const Shape& shape, DType dtype, double scale = 1, std::int64_t modulus = 7) {
  Array array(shape, dtype);
  for (std::int64_t i = 0; i < array.elements(); ++i) array.set(i, scale * static_cast<double>(i % modulus - 2));
  return array;
}

// x [a b] times y [b c], contracted over the split dim b, then summed over the split dim a.
Array product_sums(DType dtype, const std::string& mesh, const std::string& layout, const Array& x, const Array& y) {
  Graph g;
  const Tensor tx = g.input("x", {kA, kB}, dtype), ty = g.input("y", {kB, kC}, dtype);
  const Tensor z = einsum({tx, ty}, {kA, kC}), sum = reduce_sum(z, {kA}) + reduce_max(z, {kA});
  Session session(Mesh::parse(mesh));
  return session.compile(g, Layout::parse(layout), {.fetch = {sum}}).run({{tx, x}, {ty, y}})[sum];
}

TEST(Dtypes, WholeNumbersAreExactOnEveryMesh) {
  for (const DType dtype : {DType::kI32, DType::kI64, DType::kU32, DType::kU8}) {
    SCOPED_TRACE(name_of(dtype));
    Array x = ramp({kA, kB}, dtype), y = ramp({kB, kC}, dtype);
    if (dtype == DType::kI64) x.set(0, 3e9);  // more than 32 bits hold
    const Array want = product_sums(dtype, "", "", x, y);
    EXPECT_EQ(want.dtype(), dtype);
    for (const char* layout : {"a:p", "b:p", "a:p+q", "a:p b:q"})
      EXPECT_EQ(product_sums(dtype, "p:2 q:2", layout, x, y).values(), want.values()) << layout;
    EXPECT_EQ(product_sums(dtype, "p:3", "b:p", x, y).values(), want.values());
  }
}

TEST(Dtypes, U8Wraps) {
  Graph g;
  const Tensor x = constant(g, 200, {kA}, DType::kU8);
  EXPECT_EQ(eval(x + x).at(0), 144);
  EXPECT_EQ(eval(reduce_sum(x)).item(), 800 % 256);
}

// Beyond 2^53, where a double would lose digits: in literals, tables and variables, on both engines.
TEST(Dtypes, LongWholeNumbersAreExactOnEveryMesh) {
  const std::int64_t one = (std::int64_t{1} << 53) + 1, most = std::numeric_limits<std::int64_t>::max();
  for (const device::Choice& engine : {device::reference(), device::cpu()})
    for (const char* layout : {"", "a:p"}) {
      Graph g;
      const Tensor x = g.input("x", {kA}, DType::kI64), c = constant(g, one, {kA}, DType::kI64);
      const Tensor table = constant(g, Array({kA}, std::vector<std::int64_t>{one, -one, most, -most}));
      const Tensor v = g.variable("v", {kA}, init::constant(one), {.stored = DType::kI64});
      const Tensor w = g.variable("w", {kA}, init::values(Array({kA}, std::vector<std::int64_t>{one, 1, most, 2})),
                                  {.stored = DType::kI64});
      const Tensors all = {c, x + one, table, v, w, c + constant(g, 1, {}, DType::kI64), maximum(x, most)};
      Session session(Mesh::parse("p:2"), wire::threads(), engine);
      const Values got = session.compile(g, Layout::parse(layout), {.fetch = all})
                             .run({{x, Array({kA}, std::vector<std::int64_t>{0, 1, 2, 3})}});
      const auto expect = [&](std::size_t i, std::vector<std::int64_t> want) {
        for (std::int64_t k = 0; k < 4; ++k)
          EXPECT_EQ(got[all[i]].number(k).whole(), want[static_cast<std::size_t>(k)]) << i << " " << engine.name;
      };
      expect(0, {one, one, one, one});
      expect(1, {one, one + 1, one + 2, one + 3});
      expect(2, {one, -one, most, -most});
      expect(3, {one, one, one, one});
      expect(4, {one, 1, most, 2});
      expect(5, {one + 1, one + 1, one + 1, one + 1});
      expect(6, {most, most, most, most});
    }
}

// What is computed while compiling wraps as on a processor.
TEST(Dtypes, ConstantsWrapAsTensorsDo) {
  for (const device::Choice& engine : {device::reference(), device::cpu()}) {
    Graph g;
    const auto number = [&](const Number& n, DType dtype) { return constant(g, n, {kA}, dtype); };
    const std::vector<std::pair<Tensor, double>> all = {
        {number(200, DType::kU8) + number(100, DType::kU8), 44},
        {number(3, DType::kU8) - number(5, DType::kU8), 254},
        {number(100, DType::kI8) + number(100, DType::kI8), -56},
        {number(5, DType::kU32) - 6, 4294967295.0},
        {number(65536, DType::kI32) * number(65537, DType::kI32), 65536},
        {cast(number(300, DType::kI32), DType::kU8), 44},
        {cast(number(-1, DType::kI32), DType::kU32), 4294967295.0},
        {cast(number(4294967295, DType::kU32), DType::kI32), -1},
        {cast(number(200, DType::kU8) + 100, DType::kI64), 44},
        {cast(number((std::int64_t{1} << 32) + 7, DType::kI64), DType::kI32), 7}};
    Tensors fetch;
    for (const auto& [tensor, want] : all) fetch.push_back(tensor);
    Session session(Mesh::parse("p:2"), wire::threads(), engine);
    const Values got = session.compile(g, Layout::parse("a:p"), {.fetch = fetch}).run();
    for (std::size_t i = 0; i < all.size(); ++i)
      EXPECT_EQ(got[fetch[i]].values(), std::vector<double>(4, all[i].second)) << i << " " << engine.name;
  }
}

// 256 classes and more are all that a byte can name.
TEST(Dtypes, BytesIndexLongDims) {
  Graph g;
  const Dim classes{"classes", 300};
  const Tensor x = g.input("x", {kA, classes}), ids = g.input("ids", {kA}, DType::kU8);
  const Tensor loss = reduce_sum(cross_entropy(x, ids, classes)), hot = one_hot(ids, classes);
  const Tensor dx = gradients({loss}, {x})[0];
  Session session(Mesh::parse("p:2"));
  const Values got =
      session.compile(g, Layout::parse("classes:p"), {.fetch = {loss, hot, dx}})
          .run({{x, Array({kA, classes}, DType::kF32)}, {ids, Array({kA}, {0, 1, 254, 255}, DType::kU8)}});
  EXPECT_NEAR(got.scalar(loss), 4 * std::log(300), 1e-4);
  EXPECT_EQ(got[hot].at(3 * 300 + 255), 1);
  EXPECT_EQ(got[hot].at(3 * 300 + 299), 0);
  EXPECT_NEAR(got[dx].at(3 * 300 + 255), 1.0 / 300 - 1, 1e-6);
}

TEST(Dtypes, HalvesAreNearOnEveryMesh) {
  for (const auto& [dtype, bound] : {std::pair(DType::kBF16, 0x1p-7), std::pair(DType::kF16, 0x1p-10)}) {
    SCOPED_TRACE(name_of(dtype));
    const Array x = ramp({kA, kB}, dtype, 0.37), y = ramp({kB, kC}, dtype, 0.21);
    const Array exact = product_sums(DType::kF64, "", "", x, y);
    for (const char* layout : {"", "a:p", "b:p", "a:p b:q"}) {
      const Array got = product_sums(dtype, "p:2 q:2", layout, x, y);
      EXPECT_EQ(got.dtype(), dtype);
      EXPECT_LE(relative_difference(got.cast(DType::kF64), exact), 4 * bound) << layout;
    }
  }
}

TEST(Dtypes, BoolsReduceOnEveryMesh) {
  Graph g;
  const Tensor x = g.input("x", {kA, kB}, DType::kBool);
  const Tensor any = reduce_any(x, {kB}), all = reduce_all(x, {kA});
  Array values({kA, kB}, DType::kBool);
  for (std::int64_t i = 0; i < 24; ++i) values.set(i, i < 6 || i % 6 == 2 ? 0 : 1);
  for (std::int64_t i = 0; i < 4; ++i) values.set(i * 6 + 5, 1);
  for (const char* layout : {"", "a:p", "b:p", "a:p b:q"}) {
    Session session(Mesh::parse("p:2 q:2"));
    const Values out = session.compile(g, Layout::parse(layout), {.fetch = {any, all}}).run({{x, values}});
    EXPECT_EQ(out[any].values(), (std::vector<double>{1, 1, 1, 1})) << layout;
    EXPECT_EQ(out[all].values(), (std::vector<double>{0, 0, 0, 0, 0, 1})) << layout;
  }
}

// The model sees bf16, the optimizer works on f32: small steps are not lost.
TEST(VariableDtypes, ActivationIsWhatTheModelSees) {
  Graph g;
  const Tensor w = g.variable("w", {kA}, init::constant(1), {.activation = DType::kBF16});
  EXPECT_EQ(w.dtype(), DType::kBF16);
  const Tensor update = assign_sub(w, constant(g, 0x1p-12, {kA}));
  Session session(Mesh::parse("p:2"));
  Executable step = session.compile(g, Layout::parse("a:p"), {.fetch = {w}, .update = {update}});
  for (int i = 0; i < 16; ++i) step.run();
  EXPECT_EQ(session.value("w").dtype(), DType::kF32);
  EXPECT_EQ(session.value("w").at(0), 1 - 16 * 0x1p-12);
  const Values out = step.run();
  EXPECT_EQ(out[w].dtype(), DType::kBF16);
  EXPECT_EQ(out[w].at(0), static_cast<double>(static_cast<float>(BF16(static_cast<float>(1 - 16 * 0x1p-12)))));
}

TEST(VariableDtypes, SliceIsWhatIsHeld) {
  Graph g;
  const Tensor w = g.variable("w", {kA}, init::constant(1.0 / 3), {.stored = DType::kBF16, .slice = DType::kF32});
  EXPECT_EQ(w.dtype(), DType::kBF16);  // activation defaults to stored
  Session session{Mesh()};
  session.compile(g, Layout(), {.fetch = {w}});
  EXPECT_EQ(session.value("w").dtype(), DType::kF32);
  EXPECT_EQ(session.value("w").at(0), static_cast<float>(1.0 / 3));
}

// A gradient reaches the variable through the cast, in the activation's dtype.
TEST(VariableDtypes, SgdStepsInSliceDtype) {
  Graph g;
  const Tensor w = g.variable("w", {kA}, init::constant(1), {.activation = DType::kBF16});
  const Tensor loss = reduce_sum(w * w);
  const Tensor dw = gradients({loss}, {w})[0];
  EXPECT_EQ(dw.dtype(), DType::kBF16);
  const Updates updates = optim::sgd(loss, g.variables(), 0x1p-10);
  Session session{Mesh()};
  session.compile(g, Layout(), {.update = updates}).run();
  EXPECT_EQ(session.value("w").at(0), 1 - 2 * 0x1p-10);
}

TEST(VariableDtypes, ComputeAsDoublePromotesAllThree) {
  Graph g;
  const Tensor w = g.variable("w", {kA}, init::constant(1.0 / 3), {.stored = DType::kBF16, .slice = DType::kF32});
  Session session{Mesh()};
  const Values out = session.compile(g, Layout(), {.fetch = {w}, .compute_as = DType::kF64}).run();
  EXPECT_EQ(out[w].dtype(), DType::kF64);
  EXPECT_EQ(out[w].at(0), 1.0 / 3);
}

}  // namespace
}  // namespace weft::dtypes_test
