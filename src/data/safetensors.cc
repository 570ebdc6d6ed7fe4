// .safetensors: u64 length N of the header, N bytes of JSON, the data. The header is an object of
// "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, offsets from the start of the data, and
// "__metadata__", an object of texts. The tensors fill the data without holes or overlaps.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "data/formats.h"
#include "weft/detail/safetensors.h"

namespace weft {

namespace {

constexpr std::uint64_t kPrefix = 8;
constexpr std::uint64_t kLongestHeader = 100'000'000;
constexpr const char* kRewrite = "write the file again with a safetensors library";

struct StoredType {
  std::string_view name;
  std::uint64_t bits;
  std::optional<DType> dtype = {};
};

constexpr std::array<StoredType, 22> kTypes = {{{"F32", 32, DType::kF32},
                                                {"BF16", 16, DType::kBF16},
                                                {"F16", 16, DType::kF16},
                                                {"F64", 64, DType::kF64},
                                                {"I32", 32, DType::kI32},
                                                {"I64", 64, DType::kI64},
                                                {"U32", 32, DType::kU32},
                                                {"U8", 8, DType::kU8},
                                                {"BOOL", 8, DType::kBool},
                                                {"I8", 8, DType::kI8},
                                                {"I16", 16},
                                                {"U16", 16},
                                                {"U64", 64},
                                                {"C64", 64},
                                                {"F4", 4},
                                                {"F6_E2M3", 6},
                                                {"F6_E3M2", 6},
                                                {"F8_E5M2", 8},
                                                {"F8_E4M3", 8},
                                                {"F8_E8M0", 8},
                                                {"F8_E5M2FNUZ", 8},
                                                {"F8_E4M3FNUZ", 8}}};

const StoredType* find_type(const std::string& name) {
  for (const StoredType& type : kTypes)
    if (type.name == name) return &type;
  return nullptr;
}

// One tensor of the header, as far as it has been read.
struct Entry {
  std::string dtype;
  std::vector<std::int64_t> sizes;
  std::vector<std::uint64_t> offsets;
  std::set<std::string> keys;
};

// Reads the JSON by events and refuses anything outside the format immediately, so that neither depth nor length of an
// invalid header costs anything.
class HeaderReader {
 public:
  explicit HeaderReader(const FileBytes& file) : file_(file) {}

  std::map<std::string, Entry> entries;
  std::map<std::string, std::string> metadata;

  // --- What the JSON parser calls ---
  bool null() { misplaced("null"); }
  bool boolean(bool) { misplaced("true or false"); }
  bool number_integer(std::int64_t) { misplaced("a negative number"); }
  bool number_float(double, const std::string& digits) { misplaced(sentence("the number ", digits)); }
  bool number_unsigned(std::uint64_t number) {
    if (!in_list_) misplaced(sentence("the number ", number));
    if (key_ == "shape") {
      if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        misplaced(sentence("the size ", number));
      entry_->sizes.push_back(static_cast<std::int64_t>(number));
    } else {
      if (entry_->offsets.size() == 2) misplaced("a third number");
      entry_->offsets.push_back(number);
    }
    return true;
  }
  bool string(std::string& word) {
    if (depth_ == 2 && in_metadata_) metadata[key_] = word;
    else if (depth_ == 2 && key_ == "dtype") entry_->dtype = word;
    else misplaced(sentence("the text \"", word.substr(0, 40), "\""));
    return true;
  }
  bool binary(std::vector<std::uint8_t>&) { misplaced("binary data"); }
  bool start_object(std::size_t) {
    if (depth_ > 1) misplaced("an object");
    ++depth_;
    return true;
  }
  bool end_object() {
    --depth_;
    in_metadata_ = false;
    key_.clear();
    return true;
  }
  bool key(std::string& word) {
    if (depth_ == 1) {
      name_ = word;
      in_metadata_ = word == "__metadata__";
      if (!names_.insert(word).second)
        refuse("safetensors.duplicate-tensor", sentence("the header names '", word, "' twice"));
      if (!in_metadata_) entry_ = &entries[word];
      return true;
    }
    key_ = word;
    if (in_metadata_) {
      if (metadata.contains(word))
        refuse("safetensors.duplicate-metadata", sentence("the metadata names '", word, "' twice"));
      return true;
    }
    if (word != "dtype" && word != "shape" && word != "data_offsets")
      refuse("safetensors.unknown-key", sentence("tensor '", name_, "' has an unknown key '", word.substr(0, 40), "'"));
    if (!entry_->keys.insert(word).second)
      refuse("safetensors.duplicate-key", sentence("tensor '", name_, "' has its '", word, "' twice"));
    return true;
  }
  bool start_array(std::size_t) {
    if (depth_ != 2 || in_list_ || in_metadata_ || key_ == "dtype") misplaced("a list");
    in_list_ = true;
    return true;
  }
  bool end_array() {
    in_list_ = false;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) {
    std::string why = error.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: …"
    if (const std::size_t colon = why.find(": "); colon != std::string::npos) why = why.substr(colon + 2);
    file_.refuse("safetensors.not-json", kPrefix + position, sentence("the header is not JSON: ", why), kRewrite);
  }

 private:
  [[noreturn]] void refuse(ErrorCode code, const std::string& what) const {
    file_.refuse(code, kPrefix, what, kRewrite);
  }
  [[noreturn]] void misplaced(const std::string& found) const {
    refuse("safetensors.wrong-type", sentence("'", name_, "'", key_.empty() ? "" : sentence(", key '", key_, "',"),
                                              " has ", found, " where the format has no place for it"));
  }

  const FileBytes& file_;
  int depth_ = 0;  // of objects
  bool in_list_ = false, in_metadata_ = false;
  std::string name_, key_;
  std::set<std::string> names_;
  Entry* entry_ = nullptr;
};

class Checker {
 public:
  Checker(const FileBytes& file, std::uint64_t data) : file_(file), data_(data) {}

  FileTensor tensor(const std::string& name, const Entry& entry) const {
    for (const char* key : {"dtype", "shape", "data_offsets"})
      if (!entry.keys.contains(key))
        refuse("safetensors.missing-key", sentence("tensor '", name, "' lacks its '", key, "'"));
    const StoredType* type = find_type(entry.dtype);
    if (!type)
      refuse("safetensors.unknown-dtype", sentence("tensor '", name, "' has the unknown dtype '", entry.dtype, "'"));
    if (entry.offsets.size() != 2)
      refuse("safetensors.bad-offset-count",
             sentence("tensor '", name, "' has ", entry.offsets.size(), " data_offsets, not a begin and an end"));
    const std::uint64_t begin = entry.offsets[0], end = entry.offsets[1], held = file_.size() - data_;
    if (end < begin || end > held)
      refuse("safetensors.offsets-out-of-range",
             sentence("tensor '", name, "' lies at bytes ", begin, " to ", end, " of data that has ", held));
    const std::optional<std::uint64_t> bytes = bytes_of(entry.sizes, type->bits);
    if (!bytes || *bytes != end - begin)
      refuse("safetensors.wrong-tensor-size",
             sentence("tensor '", name, "', ", entry.dtype, " ", sizes_text(entry.sizes), ", needs ",
                      bytes ? sentence(*bytes, " bytes") : "a number of bytes that cannot be",
                      ", but its data_offsets have ", end - begin));
    return {entry.dtype, type->dtype, entry.sizes, data_ + begin, *bytes, false};
  }

  // From the first byte to the last without holes and overlaps.
  void check_cover(const std::map<std::string, FileTensor>& tensors) const {
    std::vector<std::pair<const std::string*, const FileTensor*>> order;
    for (const auto& [name, tensor] : tensors) order.emplace_back(&name, &tensor);
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return std::pair(a.second->offset, a.second->bytes) < std::pair(b.second->offset, b.second->bytes);
    });
    std::uint64_t next = data_;
    for (const auto& [name, tensor] : order) {
      if (tensor->offset != next)
        file_.refuse("safetensors.gap-or-overlap", next,
                     sentence("tensor '", *name, "' begins at byte ", tensor->offset - data_, " of the data, but byte ",
                              next - data_, " is the next one", tensor->offset < next ? ": tensors overlap" : ""),
                     kRewrite);
      next += tensor->bytes;
    }
    if (next != file_.size())
      file_.refuse("safetensors.unused-bytes", next,
                   sentence("the file has ", file_.size() - next, " bytes that belong to no tensor"), kRewrite);
  }

 private:
  [[noreturn]] void refuse(ErrorCode code, const std::string& what) const {
    file_.refuse(code, kPrefix, what, kRewrite);
  }
  const FileBytes& file_;
  std::uint64_t data_;
};

// The length of the header; nothing is allocated before it is known to be in the file.
std::uint64_t header_length(const FileBytes& file) {
  if (file.size() < kPrefix)
    file.refuse("safetensors.too-short", 0,
                sentence("the file has ", file.size(), " bytes, too few for a .safetensors"),
                "give a .safetensors or .npy file");
  std::array<unsigned char, kPrefix> digits;
  file.read(0, digits.data(), digits.size());
  std::uint64_t length = 0;
  for (std::size_t i = digits.size(); i-- > 0;) length = length << 8 | digits[i];
  if (length > kLongestHeader || length > file.size() - kPrefix)
    file.refuse("safetensors.bad-header-length", 0,
                sentence("the first 8 bytes say that a header of ", length, " bytes follows, but at most ",
                         std::min(kLongestHeader, file.size() - kPrefix), " can"),
                "give a whole .safetensors or .npy file");
  return length;
}

}  // namespace

FileHeader read_safetensors_header(const FileBytes& file) {
  const std::uint64_t length = header_length(file);
  const std::string json = file.read_text(kPrefix, length);
  const std::size_t first = json.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || json[first] != '{')
    file.refuse("safetensors.bad-header-start", kPrefix + std::min<std::uint64_t>(first, length),
                "the header does not begin with '{'", "give a .safetensors or .npy file");
  HeaderReader reader(file);
  nlohmann::json::sax_parse(json, &reader);
  const Checker checker(file, kPrefix + length);
  FileHeader header{.tensors = {}, .metadata = std::move(reader.metadata)};
  for (const auto& [name, entry] : reader.entries) header.tensors.emplace(name, checker.tensor(name, entry));
  checker.check_cover(header.tensors);
  return header;
}

std::string safetensors_header(const std::string& path, const std::vector<StoredTensor>& tensors,
                               const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t offset = 0;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.name == "__metadata__")
      throw UserError({.code = "safetensors.reserved-name",
                       .what = "a tensor cannot be called '__metadata__' in a .safetensors",
                       .where = path,
                       .fix = "give the tensor another name"});
    const auto type =
        std::find_if(kTypes.begin(), kTypes.end(), [&](const StoredType& t) { return t.dtype == tensor.dtype; });
    const std::uint64_t end = offset + bytes_of(tensor.sizes, type->bits).value();
    header[tensor.name] = {{"dtype", type->name}, {"shape", tensor.sizes}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string json;
  try {
    json = header.dump();
  } catch (const nlohmann::json::exception&) {
    throw UserError({.code = "safetensors.name-not-utf8",
                     .what = "the name of a tensor, or its metadata, is not UTF-8",
                     .where = path,
                     .fix = "write names and metadata in UTF-8"});
  }
  json.resize((json.size() + 7) / 8 * 8, ' ');  // aligns the data to 8 bytes
  std::string length;
  for (std::size_t i = 0; i < kPrefix; ++i) length += static_cast<char>(json.size() >> (8 * i) & 255);
  return length + json;
}

void write_safetensors(const std::string& path, const std::map<std::string, Array>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  // Wide dtypes first, then by name: every tensor is aligned to its dtype.
  std::vector<std::pair<const std::string*, const Array*>> order;
  for (const auto& [name, array] : tensors) order.emplace_back(&name, &array);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return size_of(a.second->dtype()) > size_of(b.second->dtype());
  });
  std::vector<StoredTensor> stored;
  std::vector<std::pair<const void*, std::size_t>> pieces(1);
  for (const auto& [name, array] : order) {
    std::vector<std::int64_t> sizes;
    for (const Dim& dim : array->shape()) sizes.push_back(dim.size);
    stored.push_back({*name, array->dtype(), sizes});
    pieces.emplace_back(array->bytes(), static_cast<std::size_t>(array->elements()) * size_of(array->dtype()));
  }
  const std::string header = safetensors_header(path, stored, metadata);
  pieces[0] = {header.data(), header.size()};
  write_whole(path, pieces);
}

}  // namespace weft
