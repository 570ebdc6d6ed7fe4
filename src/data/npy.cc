// .npy: "\x93NUMPY", the version (two bytes), the length of the header (u16 in version 1, u32 in 2 and 3), the header,
// the data. The header is a Python dict, {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, and then spaces.
#include <array>
#include <bit>
#include <filesystem>

#include "data/formats.h"

namespace weft {

namespace {

static_assert(std::endian::native == std::endian::little, "files and memory have the same byte order");

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::uint64_t kLongestNpyHeader = 1 << 20;
constexpr const char* kSave = "save the array again with numpy.save";

struct NpyType {
  std::string_view descr;
  std::uint64_t bytes;
  std::optional<DType> dtype;
};
constexpr std::array<NpyType, 10> kNpyTypes = {{{"<f4", 4, DType::kF32},
                                               {"<f8", 8, DType::kF64},
                                               {"<f2", 2, DType::kF16},
                                               {"<i4", 4, DType::kI32},
                                               {"<i8", 8, DType::kI64},
                                               {"<u4", 4, DType::kU32},
                                               {"<u2", 2, std::nullopt},  // of token files
                                               {"|u1", 1, DType::kU8},
                                               {"|i1", 1, DType::kI8},
                                               {"|b1", 1, DType::kBool}}};

// Reads the dict from left to right.
class DictReader {
 public:
  DictReader(const FileBytes& file, std::string dict, std::uint64_t begin)
      : file_(file), dict_(std::move(dict)), begin_(begin) {}

  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;

  void read() {
    expect('{');
    while (!accept('}')) {
      const std::string key = word();
      expect(':');
      for (const std::string& other : seen_)
        if (other == key) refuse("npy.duplicate-key", sentence("the header has '", key, "' twice"));
      seen_.push_back(key);
      if (key == "descr") descr = descr_word();
      else if (key == "fortran_order") fortran_order = truth();
      else if (key == "shape") sizes();
      else refuse("npy.unknown-key", sentence("the header has an unknown key '", key.substr(0, 40), "'"));
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != dict_.size()) refuse("npy.text-after-header", "the header has text after its dict");
    if (seen_.size() != 3) refuse("npy.missing-key", "the header lacks one of 'descr', 'fortran_order' and 'shape'");
  }

 private:
  [[noreturn]] void refuse(ErrorCode code, const std::string& what) const {
    file_.refuse(code, begin_ + at_, what, kSave);
  }

  void skip_space() {
    while (at_ < dict_.size() && std::string_view(" \t\r\n").find(dict_[at_]) != std::string_view::npos) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ == dict_.size() || dict_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse("npy.missing-character", sentence("the header lacks a '", c, "' here"));
  }
  std::string word() {
    skip_space();
    const char quote = at_ < dict_.size() ? dict_[at_] : '\0';
    const std::size_t end = quote == '\'' || quote == '"' ? dict_.find(quote, at_ + 1) : std::string::npos;
    if (end == std::string::npos) refuse("npy.missing-word", "the header lacks a quoted word here");
    std::string out = dict_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return out;
  }
  std::string descr_word() {
    skip_space();
    if (at_ < dict_.size() && dict_[at_] == '[')
      file_.refuse("npy.several-fields", begin_ + at_, "the array has several fields in each element",
                   "save one array per field");
    return word();
  }
  bool truth() {
    skip_space();
    for (const auto& [name, yes] : {std::pair("True", true), std::pair("False", false)})
      if (dict_.compare(at_, std::string_view(name).size(), name) == 0) {
        at_ += std::string_view(name).size();
        return yes;
      }
    refuse("npy.bad-fortran-order", "fortran_order is neither True nor False");
  }
  void sizes() {
    expect('(');
    while (!accept(')')) {
      shape.push_back(size());
      if (accept(',')) continue;
      expect(')');
      break;
    }
  }
  std::int64_t size() {
    skip_space();
    std::int64_t number = 0;
    const std::size_t first = at_;
    for (; at_ < dict_.size() && dict_[at_] >= '0' && dict_[at_] <= '9'; ++at_)
      if (__builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, dict_[at_] - '0', &number))
        refuse("npy.size-too-large", "a size does not fit in 63 bits");
    if (at_ == first) refuse("npy.missing-number", "the shape lacks a whole number here");
    return number;
  }

  const FileBytes& file_;
  std::string dict_;
  std::uint64_t begin_;
  std::size_t at_ = 0;
  std::vector<std::string> seen_;
};

NpyType type_of_descr(const FileBytes& file, const std::string& descr, std::uint64_t offset) {
  for (const NpyType& type : kNpyTypes)
    if (type.descr == descr) return type;
  std::string fix =
      "save it as one of f4, f8, f2, i4, i8, u4, u1, b1, little-endian: numpy.save(path, x.astype('<f4'))";
  if (descr == "<V2" || descr == "|V2" || descr == "bfloat16")
    fix = ".npy cannot say bf16: save it as .safetensors, or as x.astype('<f4')";
  file.refuse("npy.unsupported-elements", offset,
              sentence("the array has elements of the kind '", descr.substr(0, 40), "'"), fix);
}

}  // namespace

bool is_npy(const FileBytes& file) {
  return file.size() >= kMagic.size() && file.read_text(0, kMagic.size()) == kMagic;
}

FileHeader read_npy_header(const FileBytes& file) {
  const std::uint64_t after_magic = kMagic.size();
  if (file.size() < after_magic + 4)
    file.refuse("npy.too-short", file.size(), "the file breaks off in its first bytes", kSave);
  std::array<unsigned char, 6> start{};  // version, and length in two or four bytes
  file.read(after_magic, start.data(), std::min<std::uint64_t>(start.size(), file.size() - after_magic));
  if (start[0] < 1 || start[0] > 3)
    file.refuse("npy.unknown-version", after_magic,
                sentence("the file has version ", int{start[0]}, ".", int{start[1]}, " of .npy"),
                "save it with a numpy that writes version 1, 2 or 3");
  const bool is_long = start[0] > 1;
  const std::uint64_t begin = after_magic + (is_long ? 6 : 4);
  std::uint64_t length = start[2] + (std::uint64_t{start[3]} << 8);
  if (is_long) length += (std::uint64_t{start[4]} << 16) + (std::uint64_t{start[5]} << 24);
  if (file.size() < begin || length > file.size() - begin || length > kLongestNpyHeader)
    file.refuse("npy.bad-header-length", after_magic + 2,
                sentence("the header is said to have ", length, " bytes, but at most ",
                         std::min(kLongestNpyHeader, file.size() - std::min(begin, file.size())), " can follow"),
                kSave);
  DictReader dict(file, file.read_text(begin, length), begin);
  dict.read();
  const std::uint64_t data = begin + length;
  const NpyType type = type_of_descr(file, dict.descr, begin);
  const std::optional<std::uint64_t> bytes = bytes_of(dict.shape, 8 * type.bytes);
  if (!bytes || *bytes != file.size() - data)
    file.refuse("npy.wrong-data-size", data,
                sentence("the array, ", dict.descr, " ", sizes_text(dict.shape), ", needs ",
                         bytes ? sentence(*bytes, " bytes") : "a number of bytes that cannot be", ", but ",
                         file.size() - data, " follow the header"),
                kSave);
  const std::string name = std::filesystem::path(file.path()).stem().string();
  return {.tensors = {{name, {dict.descr, type.dtype, dict.shape, data, *bytes, dict.fortran_order}}}, .metadata = {}};
}

void write_npy(const std::string& path, const Array& array) {
  std::string descr;
  for (const NpyType& type : kNpyTypes)
    if (type.dtype == array.dtype()) descr = type.descr;
  if (descr.empty())
    throw UserError({.code = "npy.unsupported-dtype",
                     .what = sentence("an .npy file cannot hold ", array.dtype()),
                     .where = path,
                     .fix = "cast the array to f32 first, or write a .safetensors"});
  std::string sizes;
  for (const Dim& dim : array.shape()) sizes += sentence(dim.size, ", ");
  std::string dict = sentence("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", sizes, "), }");
  const std::size_t before = kMagic.size() + 4;
  dict.resize((before + dict.size() + 64) / 64 * 64 - before - 1, ' ');  // aligns the data to 64 bytes
  dict += '\n';
  std::string start(kMagic);
  for (std::size_t byte : {std::size_t{1}, std::size_t{0}, dict.size() & 255, dict.size() >> 8})
    start += static_cast<char>(byte);
  write_whole(path, {{start.data(), start.size()},
                     {dict.data(), dict.size()},
                     {array.bytes(), static_cast<std::size_t>(array.elements()) * size_of(array.dtype())}});
}

}  // namespace weft
