#include "weft/tensor_file.h"

#include <algorithm>
#include <cstring>

#include "data/formats.h"
#include "weft/words.h"

namespace weft {

namespace {

// Row-major bytes of an array whose file has its first dim innermost.
void turn_around(const std::vector<std::byte>& from, const std::vector<std::int64_t>& sizes, std::size_t width,
                 std::byte* to) {
  std::vector<std::size_t> strides(sizes.size()), index(sizes.size(), 0);  // strides in the file, in bytes
  std::size_t stride = width;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    strides[d] = stride;
    stride *= static_cast<std::size_t>(sizes[d]);
  }
  std::size_t source = 0;
  for (std::size_t target = 0; target < from.size(); target += width) {
    std::memcpy(to + target, from.data() + source, width);
    for (std::size_t d = sizes.size(); d-- > 0;) {
      source += strides[d];
      if (++index[d] < static_cast<std::size_t>(sizes[d])) break;
      source -= strides[d] * index[d];
      index[d] = 0;
    }
  }
}

std::string listed(const std::map<std::string, FileTensor>& tensors) {
  constexpr std::size_t kMost = 20;
  std::string out;
  std::size_t count = 0;
  for (const auto& [name, tensor] : tensors) {
    if (++count > kMost) return sentence(out, ", … (", tensors.size(), " in all)");
    out += sentence(out.empty() ? "" : ", ", name);
  }
  return out.empty() ? "none" : out;
}

}  // namespace

std::optional<std::uint64_t> bytes_of(const std::vector<std::int64_t>& sizes, std::uint64_t bits) {
  for (std::int64_t size : sizes)  // the same answer in whatever order huge sizes and zeros come
    if (size == 0) return 0;
  for (std::int64_t size : sizes)
    if (__builtin_mul_overflow(bits, static_cast<std::uint64_t>(size), &bits)) return std::nullopt;
  return bits % 8 == 0 ? std::optional(bits / 8) : std::nullopt;
}

std::string sizes_text(const std::vector<std::int64_t>& sizes) {
  std::string out;
  for (std::int64_t size : sizes) out += sentence(out.empty() ? "" : " ", size);
  return "[" + out + "]";
}

TensorFile::TensorFile(std::shared_ptr<const FileBytes> bytes) : bytes_(std::move(bytes)) {
  FileHeader header = is_npy(*bytes_) ? read_npy_header(*bytes_) : read_safetensors_header(*bytes_);
  tensors_ = std::move(header.tensors);
  metadata_ = std::move(header.metadata);
}

TensorFile TensorFile::open(const std::string& path) { return TensorFile(std::make_shared<FileBytes>(path)); }

TensorFile TensorFile::of_bytes(const std::string& path, std::vector<std::byte> bytes) {
  return TensorFile(std::make_shared<FileBytes>(path, std::move(bytes)));
}

const std::string& TensorFile::path() const { return bytes_->path(); }

Array TensorFile::read(const std::string& name, const std::vector<std::string>& dims) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    std::vector<std::string> names;
    for (const auto& [other, tensor] : tensors_) names.push_back(other);
    const std::string near = nearest_word(name, names);
    throw UserError(
        {.what = sentence("the file has no tensor '", name, "'"),
         .where = path(),
         .fix = near.empty() ? sentence("it has: ", listed(tensors_)) : sentence("did you mean '", near, "'?")});
  }
  const FileTensor& tensor = found->second;
  if (tensor.sizes.size() != dims.size())
    throw UserError({.what = sentence("tensor '", name, "' ", sizes_text(tensor.sizes), " has ", tensor.sizes.size(),
                                      " dims, but names were given for ", dims.size()),
                     .where = path(),
                     .fix = "name each of its dims, in order"});
  if (!tensor.dtype)
    throw UserError(
        {.what = sentence("tensor '", name, "' is stored as ", tensor.stored_as, ", which Weft does not have"),
         .where = path(),
         .fix = "convert it to f32, bf16, f16, f64, i32, i64, u32, u8 or bool first"});
  std::vector<Dim> shape;
  for (std::size_t i = 0; i < dims.size(); ++i) shape.push_back({dims[i], tensor.sizes[i]});
  Array array{Shape(shape), *tensor.dtype};  // refuses sizes of 0
  if (tensor.column_major && dims.size() > 1) {
    std::vector<std::byte> bytes(tensor.bytes);
    bytes_->read(tensor.offset, bytes.data(), bytes.size());
    turn_around(bytes, tensor.sizes, size_of(*tensor.dtype), array.bytes());
  } else {
    bytes_->read(tensor.offset, array.bytes(), tensor.bytes);
  }
  if (*tensor.dtype == DType::kBool)  // one bit pattern for each of the two
    std::transform(array.bytes(), array.bytes() + tensor.bytes, array.bytes(),
                   [](std::byte b) { return b == std::byte{0} ? b : std::byte{1}; });
  return array;
}

}  // namespace weft
