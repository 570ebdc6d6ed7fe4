// .npy files: what numpy writes is read, what is broken is refused with the byte.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "data/files.h"
#include "support/expect_error.h"
#include "weft/tensor_file.h"

namespace weft::npy_test {
namespace {

using test::bytes_of_text;
using test::little;
using test::npy;
using test::scratch;

TensorFile opened(const std::string& bytes) { return TensorFile::of_bytes("x.npy", bytes_of_text(bytes)); }

std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

TEST(Npy, ReadsRowMajorOfEveryVersion) {
  for (int version : {1, 2, 3}) {
    SCOPED_TRACE(version);
    const TensorFile file =
        opened(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", floats({0, 1, 2, 3, 4, 5}), version));
    ASSERT_TRUE(file.tensors().contains("x"));
    const FileTensor& tensor = file.tensors().at("x");
    EXPECT_EQ(tensor.stored_as, "<f4");
    EXPECT_EQ(tensor.dtype, DType::kF32);
    EXPECT_EQ(tensor.sizes, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(tensor.bytes, 24u);
    const Array x = file.read("x", {"batch", "hidden"});
    EXPECT_EQ(x.shape(), (Shape{{"batch", 2}, {"hidden", 3}}));
    EXPECT_EQ(x.values(), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  }
}

TEST(Npy, ReadsColumnMajor) {
  // numpy.asfortranarray([[[0, 1], [2, 3], [4, 5]]]): shape (1, 3, 2), the first dim innermost.
  const TensorFile file =
      opened(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 3, 2), }", floats({0, 2, 4, 1, 3, 5}), 1));
  EXPECT_TRUE(file.tensors().at("x").column_major);
  EXPECT_EQ(file.read("x", {"a", "b", "c"}).values(), (std::vector<double>{0, 1, 2, 3, 4, 5}));
}

TEST(Npy, ReadsEveryDType) {
  const auto value = [](const std::string& descr, const std::string& data) {
    return opened(npy("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (1,), }", data, 1))
        .read("x", {"i"})
        .at(0);
  };
  EXPECT_EQ(value("<f8", std::string("\0\0\0\0\0\0\xf8\x3f", 8)), 1.5);
  EXPECT_EQ(value("<f2", std::string("\0\x3e", 2)), 1.5);
  EXPECT_EQ(value("<i4", "\xfe\xff\xff\xff"), -2);
  EXPECT_EQ(value("<i8", "\xfe\xff\xff\xff\xff\xff\xff\xff"), -2);
  EXPECT_EQ(value("<u4", "\xfe\xff\xff\xff"), 4294967294.0);
  EXPECT_EQ(value("|u1", "\xfe"), 254);
  EXPECT_EQ(value("|b1", "\x02"), 1);
}

TEST(Npy, ScalarsAndSpellings) {
  const TensorFile file = opened(npy("{\"shape\":(),\"fortran_order\":False,\"descr\":\"<f4\"}  \n", floats({7}), 2));
  EXPECT_EQ(file.read("x", {}).item(), 7);
  const TensorFile empty = opened(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }", "", 1));
  EXPECT_USER_ERROR(empty.read("x", {"a", "b"}), "dim 'a' has size 0", "at least 1");
}

TEST(Npy, WritesWhatItReads) {
  const std::string path = scratch("w.npy");
  const Array x({{"a", 2}, {"b", 2}}, {1.5, -2, 3, 4}, DType::kF64);
  write_npy(path, x);
  const TensorFile file = TensorFile::open(path);
  EXPECT_EQ(file.tensors().at("w").offset % 64, 0u);
  EXPECT_EQ(file.read("w", {"a", "b"}).values(), x.values());
  write_npy(path, Array::scalar(3, DType::kBool));
  EXPECT_EQ(TensorFile::open(path).read("w", {}).item(), 1);
  EXPECT_USER_ERROR(write_npy(path, Array({}, DType::kBF16)), "an .npy file cannot hold bf16",
                    "cast the array to f32 first, or write a .safetensors");
}

TEST(Npy, WritesIntoAPipeWithoutReplacingIt) {
  const std::string path = scratch("pipe.npy");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int reader = ::open(path.c_str(), O_RDWR | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  write_npy(path, Array({{"x", 2}}, std::vector<float>{1, 2}));
  EXPECT_TRUE(std::filesystem::is_fifo(path));
  std::string bytes(256, '\0');
  EXPECT_GT(::read(reader, bytes.data(), bytes.size()), 8);
  EXPECT_EQ(bytes.substr(1, 5), "NUMPY");
  ::close(reader);
  std::filesystem::remove(path);
}

TEST(Npy, RefusesOtherKinds) {
  const auto of = [](const std::string& descr) {
    return npy("{'descr': " + descr + ", 'fortran_order': False, 'shape': (1,), }", "\0\0\0\0", 1);
  };
  EXPECT_USER_ERROR(opened(of("'>f4'")), "the array has elements of the kind '>f4'", "x.npy, byte 10 of ",
                    "save it as one of f4, f8, f2, i4, i8, u4, u1, b1, little-endian");
  EXPECT_USER_ERROR(opened(of("'<V2'")), "of the kind '<V2'",
                    ".npy cannot say bf16: save it as .safetensors, or as x.astype('<f4')");
  EXPECT_USER_ERROR(opened(of("[('a', '<f4')]")), "the array has several fields in each element",
                    "save one array per field");
  EXPECT_USER_ERROR(opened(of("'|O'")), "of the kind '|O'");
}

TEST(Npy, RefusesBrokenHeaders) {
  const auto of = [](const std::string& dict) { return npy(dict, "", 1); };
  const std::string fix = "save the array again with numpy.save";
  EXPECT_USER_ERROR(opened("\x93NUMPY\x01"), "the file breaks off in its first bytes", "byte 7 of 7", fix);
  EXPECT_USER_ERROR(opened("\x93NUMPY\x04\x02\x01\x01"), "the file has version 4.2 of .npy",
                    "save it with a numpy that writes version 1, 2 or 3");
  EXPECT_USER_ERROR(opened("\x93NUMPY\x01\x01\xff\xff{}"),
                    "the header is said to have 65535 bytes, but at most 2 can follow", fix);
  EXPECT_USER_ERROR(opened("\x93NUMPY\x02\x01\xff\xff"),
                    "the header is said to have 65535 bytes, but at most 0 can follow", fix);
  EXPECT_USER_ERROR(opened("\x93NUMPY\x02\x01\xff\xff\xff\xff" + std::string(2 << 20, ' ')),
                    "the header is said to have 4294967295 bytes, but at most 1048576 can follow");
  EXPECT_USER_ERROR(opened(of("")), "the header lacks a '{' here", "byte 10 of 10", fix);
  EXPECT_USER_ERROR(opened(of("{descr: '<f4'}")), "the header lacks a quoted word here", "byte 11 of ");
  EXPECT_USER_ERROR(opened(of("{'descr': '<f4")), "the header lacks a quoted word here");
  EXPECT_USER_ERROR(opened(of("{'descr': '<f4', 'descr': '<f4'}")), "the header has 'descr' twice");
  EXPECT_USER_ERROR(opened(of("{'dscr': '<f4'}")), "the header has an unknown key 'dscr'");
  EXPECT_USER_ERROR(opened(of("{'fortran_order': 0}")), "fortran_order is neither True nor False");
  EXPECT_USER_ERROR(opened(of("{'shape': (2, x)}")), "the shape lacks a whole number here");
  EXPECT_USER_ERROR(opened(of("{'shape': (-2,)}")), "the shape lacks a whole number here");
  EXPECT_USER_ERROR(opened(of("{'shape': (9223372036854775808,)}")), "a size does not fit in 63 bits");
  EXPECT_USER_ERROR(opened(of("{'shape': (2,)}")), "the header lacks one of 'descr', 'fortran_order' and 'shape'");
  EXPECT_USER_ERROR(opened(of("{'shape': (2,)} x")), "the header has text after its dict");
}

TEST(Npy, RefusesWrongSizesBeforeAllocating) {
  const auto of = [](const std::string& shape) {
    return npy("{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + ", }", "\1\2\3\4", 1);
  };
  EXPECT_USER_ERROR(opened(of("(2, 3)")), "the array, <f8 [2 3], needs 48 bytes, but 4 follow the header",
                    "save the array again");
  EXPECT_USER_ERROR(opened(of("(144115188075855872,)")), "needs 1152921504606846976 bytes, but 4 follow");
  EXPECT_USER_ERROR(opened(of("(1152921504606846976, 1152921504606846976)")),
                    "needs a number of bytes that cannot be, but 4 follow");
  EXPECT_USER_ERROR(opened(of("(0,)")), "needs 0 bytes, but 4 follow");
}

}  // namespace
}  // namespace weft::npy_test
