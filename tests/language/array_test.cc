// Arrays: typed spans, text, and arrays over the caller's memory.
#include <gtest/gtest.h>

#include <numeric>
#include <sstream>

#include "base/str.h"
#include "support/expect_error.h"
#include "weft/array.h"

namespace weft::array_test {
namespace {

const Dim kRow{"row", 2}, kColumn{"column", 3};

TEST(ArraySpan, ReadsAndWritesTheElements) {
  Array x({kRow, kColumn}, std::vector<float>{1, 2, 3, 4, 5, 6});
  const std::span<float> all = x.span<float>();
  ASSERT_EQ(all.size(), 6u);
  all[5] = 60;
  EXPECT_EQ(x.at(5), 60);
  const Array& same = x;
  EXPECT_EQ(same.span<float>().data(), all.data());
  static_assert(std::is_same_v<decltype(same.span<float>()), std::span<const float>>);
}

template <class T>
void expect_span(const std::vector<T>& values) {
  const Array x = Array::wrap({{"a", static_cast<std::int64_t>(values.size())}}, values);
  EXPECT_EQ(x.dtype(), kDTypeOf<T>);
  EXPECT_EQ(x.span<T>().data(), values.data());
  EXPECT_EQ(x.at(1), static_cast<double>(values[1]));
}

TEST(ArraySpan, HasATypeForEveryDType) {
  expect_span<float>({1, 2.5});
  expect_span<double>({1, 2.5});
  expect_span<std::int32_t>({1, -2});
  expect_span<std::int64_t>({1, -2});
  expect_span<std::uint32_t>({1, 4000000000u});
  expect_span<std::uint8_t>({1, 200});
  Array narrow({{"a", 2}}, std::vector<double>{1, 2.5}, DType::kBF16);
  EXPECT_EQ(static_cast<float>(narrow.span<BF16>()[1]), 2.5f);
  narrow = narrow.cast(DType::kF16);
  EXPECT_EQ(static_cast<float>(narrow.span<F16>()[1]), 2.5f);
  Array flags({{"a", 2}}, DType::kBool);
  flags.span<bool>()[1] = true;
  EXPECT_EQ(flags.values(), (std::vector<double>{0, 1}));
}

TEST(ArraySpan, OfAnotherTypeIsRefused) {
  const Array x({kRow, kColumn}, DType::kI32);
  Array y = x;
  const std::string line = str("array_test.cc:", __LINE__ + 1);
  EXPECT_USER_ERROR(x.span<float>(), "span<float> of an array i32 [row=2 column=3]", line,
                    "write span<std::int32_t>(), or cast(DType) the array to f32 first");
  EXPECT_USER_ERROR(y.span<std::int64_t>(), "span<std::int64_t> of an array i32 [row=2 column=3]");
}

TEST(ArrayText, NamesDTypeShapeAndElements) {
  EXPECT_EQ(to_string(Array::scalar(2.5)), "f32 []: 2.5");
  EXPECT_EQ(to_string(Array({kColumn}, std::vector<std::int32_t>{7, -8, 9})), "i32 [column=3]: 7 -8 9");
  std::ostringstream out;
  out << Array({kRow, kColumn}, std::vector<float>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(out.str(), "f32 [row=2 column=3]: [1 2 3] [4 5 6]");
  EXPECT_EQ(to_string(Array({{"a", 2}, {"b", 1}, {"c", 2}}, std::vector<float>{1, 2, 3, 4})),
            "f32 [a=2 b=1 c=2]: [[1 2]] [[3 4]]");
}

TEST(ArrayText, IsShortenedForLargeArrays) {
  std::vector<float> values(65);
  std::iota(values.begin(), values.end(), 0.0f);
  EXPECT_EQ(to_string(Array({{"a", 65}}, values)), "f32 [a=65]: 0 1 2 … 62 63 64");
  values.resize(10 * 7);
  std::iota(values.begin(), values.end(), 0.0f);
  EXPECT_EQ(to_string(Array({{"a", 10}, {"b", 7}}, values)),
            "f32 [a=10 b=7]: [0 1 2 … 4 5 6] [7 8 9 … 11 12 13] [14 15 16 … 18 19 20] … [49 50 51 … 53 54 55] "
            "[56 57 58 … 60 61 62] [63 64 65 … 67 68 69]");
  values.resize(64);
  EXPECT_EQ(to_string(Array({{"a", 64}}, values)).find("…"), std::string::npos);
}

TEST(WrappedArray, SharesTheMemoryUntilItIsChanged) {
  std::vector<float> memory{1, 2, 3, 4, 5, 6};
  const Array x = Array::wrap({kRow, kColumn}, memory);
  EXPECT_EQ(x.bytes(), reinterpret_cast<const std::byte*>(memory.data()));
  const Array copy = x;
  EXPECT_EQ(copy.bytes(), x.bytes()) << "copies share the memory";
  memory[0] = 10;
  EXPECT_EQ(copy.at(0), 10);

  Array changed = x;
  changed.set(0, 20);
  EXPECT_NE(changed.span<float>().data(), memory.data());
  EXPECT_EQ(changed.values(), (std::vector<double>{20, 2, 3, 4, 5, 6}));
  EXPECT_EQ(memory[0], 10) << "the caller's memory never changes";
}

TEST(WrappedArray, MayBeOverASpanOrAnotherArray) {
  std::vector<std::int64_t> memory{1, 2, 3, 4};
  const Array part = Array::wrap({kRow}, std::span(memory).subspan(1, 2));
  EXPECT_EQ(part.values(), (std::vector<double>{2, 3}));
  const Array owner({kRow}, std::vector<float>{5, 6});
  const Array seen = owner.view();
  EXPECT_EQ(seen.bytes(), owner.bytes());
  EXPECT_EQ(seen.dtype(), DType::kF32);
  EXPECT_EQ(seen.cast(DType::kF64).values(), owner.values());
}

TEST(WrappedArray, NeedsAsManyValuesAsTheShapeHas) {
  const std::vector<float> memory{1, 2, 3};
  const std::string line = str("array_test.cc:", __LINE__ + 1);
  EXPECT_USER_ERROR(Array::wrap({kRow}, memory), "an array of shape [row=2] needs 2 values, but 3 were given", line,
                    "give as many values as the shape has elements, in row-major order");
}

}  // namespace
}  // namespace weft::array_test
