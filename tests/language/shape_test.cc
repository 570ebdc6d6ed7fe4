// Dim, Shape and Array: the laws of their algebra, checked over every small shape.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/str.h"
#include "language/shape_math.h"
#include "weft/array.h"
#include "weft/error.h"

namespace weft::shape_test {
namespace {

TEST(Array, KeepsEveryDigitOfWholeNumbers) {
  const std::int64_t long_one = (std::int64_t{1} << 53) + 1;
  Array x({{"a", 2}, {"b", 2}}, std::vector<std::int64_t>{long_one, -long_one, 3, 4});
  EXPECT_EQ(x.number(0), Number(long_one));
  EXPECT_NE(x.number(0), Number(long_one - 1));
  EXPECT_EQ(x.transposed({{"b", 2}, {"a", 2}}).number(2), Number(-long_one));
  x.set(3, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(x.number(3).whole(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(Array::scalar(long_one, DType::kI64).number(0).whole(), long_one);
  Array byte({{"a", 3}}, DType::kU8);  // rounded to what it can hold
  byte.set(0, 300);
  byte.set(1, -1);
  byte.set(2, 2.7);
  EXPECT_EQ(byte.values(), (std::vector<double>{255, 0, 2}));
}

// Every shape of up to three of the dims a=2, b=3, c=1, d=4, in every order.
std::vector<Shape> every_shape() {
  const std::vector<Dim> dims = {{"a", 2}, {"b", 3}, {"c", 1}, {"d", 4}};
  std::vector<Shape> all{Shape()};
  for (std::size_t begin = 0; begin < all.size(); ++begin) {
    const Shape base = all[begin];
    if (base.rank() == 3) continue;
    for (const Dim& dim : dims)
      if (!base.has(dim)) all.push_back(base.plus({dim}));
  }
  return all;
}

TEST(Shape, PlusIsAUnionInOrder) {
  for (const Shape& x : every_shape())
    for (const Shape& y : every_shape()) {
      const Shape sum = x.plus(y);
      for (std::size_t i = 0; i < x.rank(); ++i) EXPECT_EQ(sum[i], x[i]) << x << " + " << y;
      for (const Dim& dim : y) EXPECT_TRUE(sum.has(dim)) << x << " + " << y;
      EXPECT_EQ(sum.rank(), x.rank() + y.minus(x).rank());
      EXPECT_EQ(x.plus(x), x);
      EXPECT_TRUE(same_dims(sum, y.plus(x)));
    }
}

TEST(Shape, MinusUndoesPlus) {
  for (const Shape& x : every_shape())
    for (const Shape& y : every_shape()) {
      EXPECT_EQ(x.plus(y).minus(y), x.minus(y));
      EXPECT_EQ(x.minus(x), Shape());
      EXPECT_EQ(x.minus(y).elements() * x.minus(x.minus(y)).elements(), x.elements());
    }
}

TEST(Shape, SameDimsIsEqualityUpToOrder) {
  for (const Shape& x : every_shape())
    for (const Shape& y : every_shape()) {
      const bool each = x.rank() == y.rank() && y.minus(x).empty();
      EXPECT_EQ(same_dims(x, y), each) << x << " and " << y;
      EXPECT_EQ(same_dims(x, y), same_dims(y, x));
    }
  EXPECT_FALSE(same_dims(Shape{{"a", 2}}, Shape{{"a", 3}}));
}

TEST(Shape, StridesAreRowMajor) {
  for (const Shape& x : every_shape()) {
    const std::vector<std::int64_t> strides = dense_strides(x);
    std::int64_t last = 0;
    for (std::size_t i = 0; i < x.rank(); ++i) last += (x[i].size - 1) * strides[i];
    EXPECT_EQ(last, x.elements() - 1) << x;
    for (std::size_t i = 0; i + 1 < x.rank(); ++i) EXPECT_EQ(strides[i], strides[i + 1] * x[i + 1].size);
  }
}

TEST(Shape, FindsByNameAndComparesWithSize) {
  const Shape x{{"a", 2}, {"b", 3}};
  EXPECT_TRUE(x.has("b"));
  EXPECT_TRUE(x.has(Dim{"b", 3}));
  EXPECT_FALSE(x.has(Dim{"b", 4}));
  EXPECT_EQ(x.position("b"), 1u);
  EXPECT_EQ(x.size_of("b"), 3);
  EXPECT_EQ(x.find("z"), std::nullopt);
  EXPECT_EQ(x.names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_THROW(x.position("z"), InternalError);
}

TEST(Shape, ChangesOneDim) {
  const Shape x{{"a", 2}, {"b", 6}, {"c", 4}};
  EXPECT_EQ(x.renamed("b", "z"), (Shape{{"a", 2}, {"z", 6}, {"c", 4}}));
  EXPECT_EQ(x.resized("b", 5), (Shape{{"a", 2}, {"b", 5}, {"c", 4}}));
  EXPECT_EQ(x.replaced("b", {{"p", 2}, {"q", 3}}), (Shape{{"a", 2}, {"p", 2}, {"q", 3}, {"c", 4}}));
  EXPECT_EQ(x.replaced("b", Shape()), (Shape{{"a", 2}, {"c", 4}}));
  EXPECT_THROW(x.renamed("b", "a"), UserError);
}

TEST(Shape, IsWrittenWithNamesAndSizes) {
  EXPECT_EQ(str(Shape{{"batch", 64}, {"heads", 16}}), "[batch=64 heads=16]");
  EXPECT_EQ(str(Shape()), "[]");
  EXPECT_EQ(Shape().elements(), 1);
}

Array numbered(const Shape& shape, DType dtype = DType::kF32) {
  Array array(shape, dtype);
  for (std::int64_t i = 0; i < array.elements(); ++i) array.set(i, static_cast<double>(i));
  return array;
}

TEST(Array, TransposingThereAndBackIsNothing) {
  for (const Shape& x : every_shape())
    for (const Shape& order : every_shape()) {
      if (!same_dims(x, order)) continue;
      const Array turned = numbered(x).transposed(order);
      EXPECT_EQ(turned.shape(), order);
      EXPECT_EQ(turned.transposed(x).values(), numbered(x).values()) << x << " as " << order;
    }
}

TEST(Array, TransposeMovesEachElementByName) {
  const Shape x{{"a", 2}, {"b", 3}};
  EXPECT_EQ(numbered(x).transposed({{"b", 3}, {"a", 2}}).values(), (std::vector<double>{0, 3, 1, 4, 2, 5}));
}

TEST(Array, RoundsToItsDtype) {
  EXPECT_EQ(Array::scalar(1.0 / 3, DType::kF32).item(), 1.0f / 3);
  EXPECT_EQ(Array::scalar(1.0 / 3, DType::kF64).item(), 1.0 / 3);
  EXPECT_EQ(Array::scalar(257, DType::kBF16).item(), 256);  // ties to even
  EXPECT_EQ(Array::scalar(2.7, DType::kI32).item(), 2);
  EXPECT_EQ(Array::scalar(-2.7, DType::kI64).item(), -2);
  EXPECT_EQ(Array::scalar(300, DType::kU8).item(), 255);
  EXPECT_EQ(Array::scalar(-1, DType::kU32).item(), 0);
  EXPECT_EQ(Array::scalar(0.5, DType::kBool).item(), 1);
  EXPECT_EQ(Array::scalar(NAN, DType::kI32).item(), 0);
}

TEST(Array, CastKeepsShapeAndNumbers) {
  const Array x = numbered({{"a", 2}, {"b", 3}});
  for (const DType dtype :
       {DType::kF32, DType::kBF16, DType::kF16, DType::kF64, DType::kI32, DType::kI64, DType::kU32, DType::kU8}) {
    EXPECT_EQ(x.cast(dtype).dtype(), dtype);
    EXPECT_EQ(x.cast(dtype).values(), x.values()) << dtype;
  }
  EXPECT_EQ(x.cast(DType::kBool).values(), (std::vector<double>{0, 1, 1, 1, 1, 1}));
}

TEST(Array, FirstOneIsAZero) {
  EXPECT_EQ(Array().item(), 0);
  EXPECT_EQ(Array({{"a", 3}}, DType::kI64).values(), std::vector<double>(3, 0.0));
}

TEST(Array, RelativeDifference) {
  const auto array = [](std::vector<double> values) { return Array({{"a", 3}}, values, DType::kF64); };
  EXPECT_EQ(relative_difference(array({1, 2, 4}), array({1, 2, 4})), 0);
  EXPECT_EQ(relative_difference(array({1, 2, 3}), array({1, 2, 4})), 0.25);
  EXPECT_EQ(relative_difference(array({0, 0, 3}), array({0, 0, 0})), 3);
  EXPECT_EQ(relative_difference(array({NAN, 2, 4}), array({NAN, 2, 4})), 0);
  EXPECT_EQ(relative_difference(array({INFINITY, 2, 4}), array({INFINITY, 2, 4})), 0);
  EXPECT_EQ(relative_difference(array({NAN, 2, 4}), array({1, 2, 4})), INFINITY);
  EXPECT_EQ(relative_difference(array({1, 2, 4}), array({1, INFINITY, 4})), INFINITY);
}

}  // namespace
}  // namespace weft::shape_test
