// .safetensors files: the rules of the format one by one, and round trips.
#include <gtest/gtest.h>

#include <fstream>

#include "base/str.h"
#include "data/files.h"
#include "support/expect_error.h"
#include "weft/tensor_file.h"

namespace weft::safetensors_test {
namespace {

using test::bytes_of_text;
using test::little;
using test::safetensors;
using test::scratch;

const std::string kRewrite = "write the file again with a safetensors library";

TensorFile opened(const std::string& bytes) { return TensorFile::of_bytes("m.safetensors", bytes_of_text(bytes)); }

// A header of one tensor.
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return str(R"({"x":{"dtype":")", dtype, R"(","shape":)", shape, R"(,"data_offsets":)", offsets, "}}");
}

TEST(Safetensors, ReadsTensorsAndMetadata) {
  const TensorFile file =
      opened(safetensors(R"({"__metadata__":{"by":"hand"},"b":{"dtype":"U8","shape":[2,1],"data_offsets":[8,10]},)"
                         R"("a":{"shape":[2],"data_offsets":[0,8],"dtype":"I32"}}  )",
                         little(7, 4) + little(9, 4) + "\1\2"));
  EXPECT_EQ(file.metadata().at("by"), "hand");
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors().at("a").stored_as, "I32");
  EXPECT_EQ(file.tensors().at("b").bytes, 2u);
  EXPECT_EQ(file.read("a", {"i"}).values(), (std::vector<double>{7, 9}));
  EXPECT_EQ(file.read("b", {"i", "j"}).shape(), (Shape{{"i", 2}, {"j", 1}}));
}

TEST(Safetensors, AcceptsWhatTheFormatAllows) {
  EXPECT_TRUE(opened(safetensors("{}")).tensors().empty());
  EXPECT_TRUE(opened(safetensors("\n {}\t ")).tensors().empty());
  EXPECT_EQ(opened(safetensors(one("F32", "[]", "[0,4]"), little(0x7fc00000, 4))).tensors().size(), 1u);  // rank 0, NaN
  const TensorFile empty = opened(safetensors(one("F32", "[3,0]", "[0,0]")));
  EXPECT_EQ(empty.tensors().at("x").bytes, 0u);
  EXPECT_USER_ERROR(empty.read("x", {"a", "b"}), "dim 'b' has size 0");
  EXPECT_EQ(opened(safetensors(one("F4", "[4]", "[0,2]"), "ab")).tensors().at("x").bytes, 2u);
}

TEST(Safetensors, KnowsEveryDTypeOfTheFormat) {
  for (const auto& [name, bytes] : {std::pair("BOOL", 1),
                                    {"U8", 1},
                                    {"I8", 1},
                                    {"F8_E5M2", 1},
                                    {"F8_E4M3", 1},
                                    {"F8_E8M0", 1},
                                    {"F8_E5M2FNUZ", 1},
                                    {"F8_E4M3FNUZ", 1},
                                    {"I16", 2},
                                    {"U16", 2},
                                    {"F16", 2},
                                    {"BF16", 2},
                                    {"I32", 4},
                                    {"U32", 4},
                                    {"F32", 4},
                                    {"C64", 8},
                                    {"F64", 8},
                                    {"I64", 8},
                                    {"U64", 8}}) {
    const TensorFile file = opened(safetensors(one(name, "[1]", str("[0,", bytes, "]")), std::string(bytes, 'a')));
    EXPECT_EQ(file.tensors().at("x").stored_as, name);
  }
  const TensorFile file = opened(safetensors(one("F6_E2M3", "[4]", "[0,3]"), "abc"));
  EXPECT_USER_ERROR(file.read("x", {"i"}), "tensor 'x' is stored as F6_E2M3, which Weft does not have",
                    "convert it to f32, bf16, f16, f64, i32, i64, u32, u8 or bool first");
}

TEST(Safetensors, ReadingNeedsTheNameAndTheDims) {
  const TensorFile file = opened(safetensors(one("F32", "[1]", "[0,4]"), "abcd"));
  EXPECT_USER_ERROR(file.read("bias", {"i"}), "the file has no tensor 'bias'", "where: m.safetensors", "it has: x");
  EXPECT_USER_ERROR(file.read("x", {}), "tensor 'x' [1] has 1 dims, but names were given for 0",
                    "name each of its dims, in order");
  const TensorFile long_name =
      opened(safetensors(R"({"weights":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "a"));
  EXPECT_USER_ERROR(long_name.read("wieghts", {"i"}), "did you mean 'weights'?");
}

TEST(Safetensors, RefusesBrokenLengths) {
  const std::string whole = "give a whole .safetensors or .npy file";
  EXPECT_USER_ERROR(opened("1234567"), "the file has 7 bytes, too few for a .safetensors", "m.safetensors, byte 0 of 7",
                    "give a .safetensors or .npy file");
  EXPECT_USER_ERROR(opened(little(3, 8) + "{}"),
                    "the first 8 bytes say that a header of 3 bytes follows, but at most 2 can", whole);
  EXPECT_USER_ERROR(opened(little(~std::uint64_t{0}, 8)), "a header of 18446744073709551615 bytes follows");
  EXPECT_USER_ERROR(opened(little(std::uint64_t{1} << 60, 8) + "{}"), "a header of 1152921504606846976 bytes follows");
  EXPECT_USER_ERROR(opened(safetensors("")), "the header does not begin with '{'", "byte 8 of 8");
  EXPECT_USER_ERROR(opened(safetensors(" []")), "the header does not begin with '{'", "byte 9 of 11");
  EXPECT_USER_ERROR(opened(safetensors("\xef\xbb\xbf{}")), "the header does not begin with '{'");
}

TEST(Safetensors, RefusesWhatIsNotItsJson) {
  EXPECT_USER_ERROR(opened(safetensors("{\"a\":")), "the header is not JSON: ", "m.safetensors, byte ", kRewrite);
  EXPECT_USER_ERROR(opened(safetensors("{} {}")), "the header is not JSON: ");
  EXPECT_USER_ERROR(opened(safetensors("{\"\xff\":{}}")), "the header is not JSON: ", "UTF-8");
  EXPECT_USER_ERROR(opened(safetensors("{\"a\":1}")), "'a' has the number 1 where the format has no place for it",
                    kRewrite);
  EXPECT_USER_ERROR(opened(safetensors("{\"a\":[]}")), "'a' has a list where");
  EXPECT_USER_ERROR(opened(safetensors("{\"a\":null}")), "'a' has null where");
  EXPECT_USER_ERROR(opened(safetensors("{\"a\":{\"dtype\":true}}")), "'a', key 'dtype', has true or false where");
  EXPECT_USER_ERROR(opened(safetensors("{\"a\":{\"dtype\":{}}}")), "'a', key 'dtype', has an object where");
  EXPECT_USER_ERROR(opened(safetensors(one("F32", "[-1]", "[0,4]"))), "'x', key 'shape', has a negative number where");
  EXPECT_USER_ERROR(opened(safetensors(one("F32", "[1.0]", "[0,4]"))), "has the number 1.0 where");
  EXPECT_USER_ERROR(opened(safetensors(one("F32", "[18446744073709551615]", "[0,4]"))), "has the size 1844");
  EXPECT_USER_ERROR(opened(safetensors(one("F32", "[99999999999999999999]", "[0,4]"))), "has the number 9999");
  EXPECT_USER_ERROR(opened(safetensors(one("F32", "[\"1\"]", "[0,4]"))), "has the text \"1\" where");
  EXPECT_USER_ERROR(opened(safetensors(one("F32", "1", "[0,4]"))), "has the number 1 where");
  EXPECT_USER_ERROR(opened(safetensors(one("F32", "[[1]]", "[0,4]"))), "has a list where");
  EXPECT_USER_ERROR(opened(safetensors(one("F32", "[1]", "[0,4,8]"))), "has a third number where");
  EXPECT_USER_ERROR(opened(safetensors("{\"__metadata__\":{\"a\":1}}")), "'__metadata__', key 'a', has the number 1");
  EXPECT_USER_ERROR(opened(safetensors("{\"__metadata__\":\"a\"}")), "'__metadata__' has the text \"a\" where");
  EXPECT_USER_ERROR(opened(safetensors(std::string(1 << 20, '['))), "does not begin with '{'");
  EXPECT_USER_ERROR(opened(safetensors("{\"a\":" + std::string(1 << 20, '['))), "has a list where");
}

TEST(Safetensors, RefusesRepeatedAndUnknownKeys) {
  EXPECT_USER_ERROR(opened(safetensors(R"({"a":{"dtype":"U8"},"a":{}})")), "the header names 'a' twice", kRewrite);
  EXPECT_USER_ERROR(opened(safetensors(R"({"__metadata__":{"k":"1","k":"2"}})")), "the metadata names 'k' twice");
  EXPECT_USER_ERROR(opened(safetensors(R"({"a":{"dtype":"U8","dtype":"U8"}})")), "tensor 'a' has its 'dtype' twice",
                    "code:  safetensors.duplicate-key");
  EXPECT_USER_ERROR(opened(safetensors(R"({"a":{"dtyp":"U8"}})")), "tensor 'a' has an unknown key 'dtyp'");
  EXPECT_USER_ERROR(opened(safetensors(R"({"a":{"dtype":"U8","shape":[]}})")), "tensor 'a' lacks its 'data_offsets'");
}

TEST(Safetensors, RefusesWrongSizesAndPlaces) {
  EXPECT_USER_ERROR(opened(safetensors(one("F33", "[1]", "[0,4]"), "abcd")), "tensor 'x' has the unknown dtype 'F33'",
                    kRewrite);
  EXPECT_USER_ERROR(opened(safetensors(one("F32", "[1]", "[0]"), "abcd")),
                    "tensor 'x' has 1 data_offsets, not a begin and an end");
  EXPECT_USER_ERROR(opened(safetensors(one("F32", "[1]", "[0,8]"), "abcd")),
                    "tensor 'x' lies at bytes 0 to 8 of data that has 4");
  EXPECT_USER_ERROR(opened(safetensors(one("F32", "[1]", "[4,0]"), "abcd")), "lies at bytes 4 to 0 of data");
  EXPECT_USER_ERROR(opened(safetensors(one("F32", "[2]", "[0,4]"), "abcd")),
                    "tensor 'x', F32 [2], needs 8 bytes, but its data_offsets have 4");
  EXPECT_USER_ERROR(opened(safetensors(one("F32", "[4611686018427387904,4611686018427387904]", "[0,4]"), "abcd")),
                    "needs a number of bytes that cannot be, but its data_offsets have 4");
  EXPECT_USER_ERROR(opened(safetensors(one("F4", "[3]", "[0,1]"), "a")), "needs a number of bytes that cannot be");
}

TEST(Safetensors, RefusesHolesAndOverlaps) {
  const auto two = [](const std::string& first, const std::string& second) {
    return safetensors(str(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)", first,
                           R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)", second, "}}"),
                       "abcde");
  };
  EXPECT_USER_ERROR(opened(two("[0,2]", "[3,5]")),
                    "tensor 'b' begins at byte 3 of the data, but byte 2 is the next one", kRewrite);
  EXPECT_USER_ERROR(opened(two("[0,2]", "[1,3]")), "byte 2 is the next one: tensors overlap");
  EXPECT_USER_ERROR(opened(two("[0,2]", "[0,2]")), "tensors overlap");
  EXPECT_USER_ERROR(opened(two("[1,3]", "[3,5]")), "tensor 'a' begins at byte 1 of the data, but byte 0 is");
  EXPECT_USER_ERROR(opened(two("[2,4]", "[0,2]")), "the file has 1 bytes that belong to no tensor");
}

TEST(Safetensors, WritesWhatItReads) {
  const std::string path = scratch("w.safetensors");
  const std::map<std::string, Array> tensors = {
      {"scale", Array::scalar(0.5)},
      {"ids", Array({{"batch", 3}}, std::vector<std::int32_t>{3, -1, 2})},
      {"weights \"q\" \n", Array({{"a", 2}, {"b", 2}}, {1, 2, 3, 4}, DType::kBF16)},
      {"mask", Array({{"a", 3}}, {1, 0, 1}, DType::kBool)},
      {"wide", Array({{"a", 1}}, {-7}, DType::kI64)}};
  write_safetensors(path, tensors, {{"step", "12"}});
  const TensorFile file = TensorFile::open(path);
  EXPECT_EQ(file.path(), path);
  EXPECT_EQ(file.metadata().at("step"), "12");
  ASSERT_EQ(file.tensors().size(), tensors.size());
  for (const auto& [name, array] : tensors) {
    const FileTensor& found = file.tensors().at(name);
    EXPECT_EQ(found.dtype, array.dtype()) << name;
    EXPECT_EQ(found.offset % size_of(array.dtype()), 0u) << name << ": aligned";
    EXPECT_EQ(file.read(name, array.shape().names()).values(), array.values()) << name;
  }
  write_safetensors(path, {});
  EXPECT_TRUE(TensorFile::open(path).tensors().empty());
}

TEST(Safetensors, WritingFailsWhole) {
  EXPECT_USER_ERROR(write_safetensors(scratch("m.safetensors"), {{"__metadata__", Array()}}),
                    "a tensor cannot be called '__metadata__' in a .safetensors", "give the tensor another name");
  EXPECT_USER_ERROR(write_safetensors(scratch("m.safetensors"), {{"\xff", Array()}}),
                    "the name of a tensor, or its metadata, is not UTF-8", "write names and metadata in UTF-8");
  const std::string nowhere = scratch("no/such/folder.safetensors");
  EXPECT_RUN_ERROR(write_safetensors(nowhere, {{"x", Array()}}), "cannot write the file '", nowhere,
                   "see that its folder exists, that you may write there and that the disk has room");
  EXPECT_FALSE(std::filesystem::exists(scratch("m.safetensors")));
}

TEST(Safetensors, FilesThatAreNotThereOrChange) {
  EXPECT_USER_ERROR(TensorFile::open("/no/such/file"),
                    "cannot open the file '/no/such/file': ", "give the path of a file that you may read");
  EXPECT_USER_ERROR(TensorFile::open(testing::TempDir()), "cannot open the file '", "it is no regular file");
  const std::string path = scratch("shrinks.safetensors");
  write_safetensors(path, {{"x", Array({{"i", 100}}, DType::kF32)}});
  const TensorFile file = TensorFile::open(path);
  std::filesystem::resize_file(path, 200);
  EXPECT_RUN_ERROR(file.read("x", {"i"}), "the file has become shorter than the ", " bytes it had",
                   "open the file again, and do not change it while it is read");
}

}  // namespace
}  // namespace weft::safetensors_test
