#include "weft/tensor_file.h"

#include <algorithm>
#include <cstring>

#include "data/formats.h"
#include "weft/detail/words.h"

namespace weft {

namespace {

// Row-major bytes of an array that the file holds in Fortran order.
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

// Normalizes bools to the bytes 0 and 1.
void make_bools(std::span<std::byte> bytes) {
  for (std::byte& b : bytes) b = b == std::byte{0} ? b : std::byte{1};
}

// Reads ranges of bytes at ascending offsets; reads short ranges that are close together with one system call.
class RunReader {
 public:
  // The caller asks for no byte from `end` on.
  RunReader(const FileBytes& file, std::uint64_t end) : file_(file), end_(end) {}

  // `next` is the begin of the following range.
  void read(std::uint64_t offset, std::size_t count, std::uint64_t next, std::byte* to) {
    constexpr std::uint64_t kShort = 64 << 10, kNear = 8 << 10;
    if (offset >= begin_ && offset + count <= begin_ + window_.size()) {
      std::memcpy(to, window_.data() + (offset - begin_), count);
    } else if (count >= kShort || next - offset - count > kNear) {
      file_.read(offset, to, count);
    } else {
      window_.resize(std::min<std::uint64_t>(kShort, end_ - offset));
      begin_ = offset;
      file_.read(offset, window_.data(), window_.size());
      std::memcpy(to, window_.data(), count);
    }
  }

 private:
  const FileBytes& file_;
  std::uint64_t end_, begin_ = 0;
  std::vector<std::byte> window_;
};

void read_part(const FileBytes& file, const FileTensor& tensor, const std::vector<std::int64_t>& begin,
               const std::vector<std::int64_t>& sizes, std::size_t width, std::byte* to) {
  const std::size_t rank = sizes.size();
  std::vector<std::uint64_t> strides(rank);  // in bytes
  std::uint64_t stride = width, offset = tensor.offset, last = tensor.offset + width;
  for (std::size_t d = rank; d-- > 0; stride *= static_cast<std::uint64_t>(tensor.sizes[d])) {
    strides[d] = stride;
    offset += stride * static_cast<std::uint64_t>(begin[d]);
    last += stride * static_cast<std::uint64_t>(begin[d] + sizes[d] - 1);
  }
  // Dims from `inner` on are contiguous.
  std::size_t inner = rank;
  std::uint64_t run = width;
  while (inner > 0 && (inner == rank || sizes[inner] == tensor.sizes[inner]))
    run *= static_cast<std::uint64_t>(sizes[--inner]);
  const std::uint64_t step = inner == 0 ? run : strides[inner - 1];
  RunReader reader(file, last);
  std::vector<std::int64_t> index(inner, 0);
  for (;; to += run) {
    reader.read(offset, run, offset + step, to);
    std::size_t d = inner;
    for (; d > 0; --d) {
      offset += strides[d - 1];
      if (++index[d - 1] < sizes[d - 1]) break;
      offset -= strides[d - 1] * static_cast<std::uint64_t>(sizes[d - 1]);
      index[d - 1] = 0;
    }
    if (d == 0) return;
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
  for (std::int64_t size : sizes)  // the result does not depend on the order of huge sizes and zeros
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

const FileTensor& TensorFile::readable(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    std::vector<std::string> names;
    for (const auto& [other, tensor] : tensors_) names.push_back(other);
    const std::string near = nearest_word(name, names);
    throw UserError(
        {.code = "tensor-file.unknown-tensor",
         .what = sentence("the file has no tensor '", name, "'"),
         .where = path(),
         .fix = near.empty() ? sentence("it has: ", listed(tensors_)) : sentence("did you mean '", near, "'?")});
  }
  const FileTensor& tensor = found->second;
  if (!tensor.dtype)
    throw UserError(
        {.code = "tensor-file.unsupported-dtype",
         .what = sentence("tensor '", name, "' is stored as ", tensor.stored_as, ", which Weft does not have"),
         .where = path(),
         .fix = "convert it to f32, bf16, f16, f64, i32, i64, u32, u8 or bool first"});
  return tensor;
}

Array TensorFile::read(const std::string& name, const std::vector<std::string>& dims) const {
  const FileTensor& tensor = readable(name);
  if (tensor.sizes.size() != dims.size())
    throw UserError({.code = "tensor-file.rank-mismatch",
                     .what = sentence("tensor '", name, "' ", sizes_text(tensor.sizes), " has ", tensor.sizes.size(),
                                      " dims, but names were given for ", dims.size()),
                     .where = path(),
                     .fix = "name each of its dims, in order"});
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
  if (*tensor.dtype == DType::kBool) make_bools({array.bytes(), tensor.bytes});
  return array;
}

void TensorFile::read_into(const std::string& name, const std::vector<std::int64_t>& begin,
                           const std::vector<std::int64_t>& sizes, std::span<std::byte> out) const {
  const FileTensor& tensor = readable(name);
  if (tensor.column_major && tensor.sizes.size() > 1)
    throw UserError({.code = "tensor-file.part-of-fortran-order",
                     .what = sentence("tensor '", name, "' is in Fortran order, and only part of it is wanted"),
                     .where = path(),
                     .fix = "write it in C order: numpy.save(path, numpy.ascontiguousarray(array))"});
  const std::size_t width = size_of(*tensor.dtype);
  bool fits = begin.size() == tensor.sizes.size() && sizes.size() == begin.size();
  for (std::size_t d = 0; fits && d < begin.size(); ++d)
    fits = begin[d] >= 0 && sizes[d] > 0 && begin[d] <= tensor.sizes[d] && sizes[d] <= tensor.sizes[d] - begin[d];
  internal_check(fits && bytes_of(sizes, 8 * width) == out.size(), "a part that is not in its tensor");
  read_part(*bytes_, tensor, begin, sizes, width, out.data());
  if (*tensor.dtype == DType::kBool) make_bools(out);
}

}  // namespace weft
