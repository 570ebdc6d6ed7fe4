// Parts of tensors in files: every box of some shapes, in small and large runs.
#include <gtest/gtest.h>

#include <cstring>

#include "data/files.h"
#include "language/shape_math.h"
#include "support/expect_error.h"
#include "weft/tensor_file.h"

namespace weft::part_test {
namespace {

using Sizes = std::vector<std::int64_t>;

Array ramp(const Shape& shape, DType dtype) {
  Array out(shape, dtype);
  for (std::int64_t i = 0; i < out.elements(); ++i) out.set(i, static_cast<double>(i % 251));
  return out;
}

// One element after the other.
std::vector<double> box_of(const Array& whole, const Sizes& begin, const Sizes& sizes) {
  std::vector<double> out;
  const std::vector<std::int64_t> strides = dense_strides(whole.shape());
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i, offset = 0;
    for (std::size_t d = sizes.size(); d-- > 0; rest /= sizes[d]) offset += (begin[d] + rest % sizes[d]) * strides[d];
    out.push_back(whole.at(offset));
  }
  return out;
}

void expect_box(const TensorFile& file, const std::string& name, const Array& whole, const Sizes& begin,
                const Sizes& sizes) {
  std::vector<Dim> dims;
  for (std::size_t d = 0; d < sizes.size(); ++d) dims.push_back({whole.shape()[d].name, sizes[d]});
  Array part{Shape(dims), whole.dtype()};
  file.read_into(name, begin, sizes, {part.bytes(), static_cast<std::size_t>(part.elements()) * size_of(part.dtype())});
  ASSERT_EQ(part.values(), box_of(whole, begin, sizes));
}

TEST(TensorFilePart, EveryBox) {
  for (const DType dtype : {DType::kF64, DType::kF32, DType::kBF16, DType::kU8}) {
    const Array whole = ramp({{"a", 3}, {"b", 2}, {"c", 4}}, dtype), scalar = Array::scalar(7, dtype);
    write_safetensors(test::scratch("boxes.safetensors"), {{"x", whole}, {"s", scalar}});
    const TensorFile file = TensorFile::open(test::scratch("boxes.safetensors"));
    expect_box(file, "s", scalar, {}, {});
    for (std::int64_t a = 0; a < 3; ++a)
      for (std::int64_t b = 0; b < 2; ++b)
        for (std::int64_t c = 0; c < 4; ++c)
          for (std::int64_t i = 1; a + i <= 3; ++i)
            for (std::int64_t j = 1; b + j <= 2; ++j)
              for (std::int64_t k = 1; c + k <= 4; ++k) expect_box(file, "x", whole, {a, b, c}, {i, j, k});
  }
}

// Rows that are far apart, close together, longer than a window, and at the very end of the file.
TEST(TensorFilePart, LargeOnes) {
  const Array whole = ramp({{"a", 3}, {"b", 40}, {"c", 9000}}, DType::kF32);
  write_safetensors(test::scratch("large.safetensors"), {{"x", whole}});
  const TensorFile file = TensorFile::open(test::scratch("large.safetensors"));
  expect_box(file, "x", whole, {0, 0, 0}, {3, 40, 9000});
  expect_box(file, "x", whole, {1, 5, 100}, {2, 30, 3});
  expect_box(file, "x", whole, {0, 0, 500}, {3, 40, 8500});
  expect_box(file, "x", whole, {0, 30, 0}, {3, 10, 9000});
  expect_box(file, "x", whole, {2, 39, 8999}, {1, 1, 1});
  expect_box(file, "x", whole, {0, 38, 8000}, {3, 2, 1000});
}

TEST(TensorFilePart, RefusesFortranOrder) {
  const std::string text =
      test::npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", std::string(16, '\0'), 1);
  const TensorFile file = TensorFile::of_bytes("x.npy", test::bytes_of_text(text));
  std::vector<std::byte> out(8);
  EXPECT_USER_ERROR(file.read_into("x", {0, 0}, {1, 2}, out),
                    "tensor 'x' is in Fortran order, and only part of it is wanted", "x.npy",
                    "write it in C order: numpy.save(path, numpy.ascontiguousarray(array))");
  EXPECT_USER_ERROR(file.read_into("y", {0, 0}, {1, 2}, out), "the file has no tensor 'y'");
}

TEST(TensorFilePart, IsInItsTensor) {
  write_safetensors(test::scratch("part.safetensors"), {{"x", ramp({{"a", 4}}, DType::kF32)}});
  const TensorFile file = TensorFile::open(test::scratch("part.safetensors"));
  std::vector<std::byte> out(8);
  file.read_into("x", {2}, {2}, out);
  for (const auto& [begin, sizes] :
       {std::pair<Sizes, Sizes>{{3}, {2}}, {{-1}, {2}}, {{0}, {3}}, {{0, 0}, {1, 2}}, {{0}, {0}}, {{INT64_MAX}, {2}}})
    EXPECT_INTERNAL_ERROR(file.read_into("x", begin, sizes, out), "a part that is not in its tensor");
}

}  // namespace
}  // namespace weft::part_test
