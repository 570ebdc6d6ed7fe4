// Examples from token files. Opening reads only the header; ids are read and checked when a batch needs them.
#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <optional>

#include "data/file_bytes.h"
#include "data/hash.h"
#include "data/ids.h"
#include "weft/tensor_file.h"

namespace weft::data {

namespace {

struct StoredId {
  std::string_view name;  // a file's ending, or how .npy and .safetensors write it
  std::size_t bytes;
  bool is_signed;
};
constexpr std::array<StoredId, 12> kStoredIds = {{{".u16", 2, false},
                                                  {".u32", 4, false},
                                                  {"|u1", 1, false},
                                                  {"<u2", 2, false},
                                                  {"<u4", 4, false},
                                                  {"<i4", 4, true},
                                                  {"<i8", 8, true},
                                                  {"U8", 1, false},
                                                  {"U16", 2, false},
                                                  {"U32", 4, false},
                                                  {"I32", 4, true},
                                                  {"I64", 8, true}}};

const StoredId* find_stored(std::string_view name) {
  for (const StoredId& stored : kStoredIds)
    if (stored.name == name) return &stored;
  return nullptr;
}

// Integers of a file from some byte on.
class FileIds : public Ids {
 public:
  FileIds(std::shared_ptr<const FileBytes> file, const StoredId& stored, std::uint64_t offset, std::int64_t size,
          std::int64_t limit)
      : file_(std::move(file)), stored_(stored), offset_(offset), size_(size), limit_(limit) {}

  std::int64_t size() const override { return size_; }

  void read(std::int64_t begin, std::int64_t count, std::vector<std::int32_t>& to) const override {
    std::vector<std::byte> bytes(static_cast<std::size_t>(count) * stored_.bytes);
    file_->read(offset_ + static_cast<std::uint64_t>(begin) * stored_.bytes, bytes.data(), bytes.size());
    to.reserve(to.size() + static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t id = number(bytes.data() + static_cast<std::size_t>(i) * stored_.bytes);
      if (id < 0 || id >= limit_) refuse(begin + i, id);
      to.push_back(static_cast<std::int32_t>(id));
    }
  }

 private:
  std::int64_t number(const std::byte* from) const {
    std::uint64_t out = 0;
    std::memcpy(&out, from, stored_.bytes);
    const int unused = static_cast<int>(64 - 8 * stored_.bytes);
    return stored_.is_signed ? static_cast<std::int64_t>(out << unused) >> unused : static_cast<std::int64_t>(out);
  }

  [[noreturn]] void refuse(std::int64_t index, std::int64_t id) const {
    throw UserError({.code = "tokens.id-out-of-range",
                     .what = sentence("token ", index, " is ", id, ", but ids are 0 to ", limit_ - 1),
                     .where = file_->path(),
                     .fix = "make the file with the model's vocabulary, or give the model a larger one"});
  }

  std::shared_ptr<const FileBytes> file_;
  StoredId stored_;
  std::uint64_t offset_;
  std::int64_t size_, limit_;
};

// Several sequences concatenated.
class JoinedIds : public Ids {
 public:
  void add(std::unique_ptr<Ids> part) {
    size_ += part->size();
    parts_.push_back(std::move(part));
  }
  std::int64_t size() const override { return size_; }
  void read(std::int64_t begin, std::int64_t count, std::vector<std::int32_t>& to) const override {
    for (const std::unique_ptr<Ids>& part : parts_) {
      const std::int64_t here = std::clamp<std::int64_t>(part->size() - begin, 0, count);
      if (here > 0) part->read(begin, here, to);
      begin = std::max<std::int64_t>(begin - part->size(), 0);
      count -= here;
    }
  }

 private:
  std::vector<std::unique_ptr<Ids>> parts_;
  std::int64_t size_ = 0;
};

// Rows of equal width; zeros at their end are padding. The length without padding is only known after reading a row;
// each row is read once for it.
class Rows : public Examples {
 public:
  struct Side {
    std::unique_ptr<Ids> ids;
    std::int64_t width = 0;
    void read(std::int64_t index, std::vector<std::int32_t>& to) const {
      ids->read(index * width, width, to);
      while (!to.empty() && to.back() == Vocabulary::kPadding) to.pop_back();
    }
  };
  Rows(Side inputs, Side targets, std::int64_t count, bool join, std::string fingerprint)
      : inputs_(std::move(inputs)),
        targets_(std::move(targets)),
        count_(count),
        join_(join),
        fingerprint_(std::move(fingerprint)) {}

  std::int64_t count() const override { return count_; }
  void read(std::int64_t index, Example& to) const override {
    to.inputs.clear();
    to.targets.clear();
    targets_.read(index, to.targets);
    if (inputs_.ids) inputs_.read(index, to.inputs);
    if (!join_) return;
    to.targets.insert(to.targets.begin(), to.inputs.begin(), to.inputs.end());
    to.inputs.clear();
  }
  ExampleSize size(std::int64_t index) const override {
    if (sizes_.empty()) sizes_.resize(static_cast<std::size_t>(count_));
    std::optional<ExampleSize>& known = sizes_[static_cast<std::size_t>(index)];
    if (known) return *known;
    Example one;
    read(index, one);
    known = size_of(one);
    return *known;
  }
  bool has_inputs() const override { return inputs_.ids != nullptr && !join_; }
  std::string fingerprint() const override { return fingerprint_; }

 private:
  Side inputs_, targets_;
  std::int64_t count_;
  bool join_;
  std::string fingerprint_;
  mutable std::vector<std::optional<ExampleSize>> sizes_;  // of rows that were measured; empty if all are read
};

std::int64_t limit_of(const SourceOptions& options) {
  return options.vocab_limit > 0 ? options.vocab_limit : std::int64_t{1} << 31;
}

std::unique_ptr<Ids> open_raw(const std::string& path, const StoredId& stored, std::int64_t limit, Hash& hash) {
  const auto file = std::make_shared<FileBytes>(path);
  if (file->size() == 0 || file->size() % stored.bytes != 0)
    throw UserError({.code = "tokens.odd-file-size",
                     .what = sentence("the file has ", file->size(), " bytes, which are no tokens of ", stored.bytes,
                                      " bytes each"),
                     .where = path,
                     .fix = "write each token as a little-endian integer, and nothing else"});
  add_blocks(*file, hash);
  return std::make_unique<FileIds>(file, stored, 0, static_cast<std::int64_t>(file->size() / stored.bytes), limit);
}

// The tensors "targets" and, optionally, "inputs" of one file; a single tensor is the targets under any name.
class TokenTensors {
 public:
  TokenTensors(const std::string& path, std::int64_t limit, Hash& hash)
      : file_(TensorFile::open(path)), bytes_(std::make_shared<FileBytes>(path)), limit_(limit) {
    add_blocks(*bytes_, hash);
    const auto& tensors = file_.tensors();
    const auto named = [&](const char* name) { return tensors.contains(name) ? &tensors.at(name) : nullptr; };
    targets_ = tensors.size() == 1 ? &tensors.begin()->second : named("targets");
    inputs_ = tensors.size() == 1 ? nullptr : named("inputs");
    if (!targets_)
      throw UserError({.code = "tokens.no-targets",
                       .what = sentence("the file has ", tensors.size(), " tensors and none is called 'targets'"),
                       .where = path,
                       .fix = "call the tokens 'targets' and, of pairs, 'inputs'"});
    check(*targets_);
    if (inputs_) check(*inputs_);
    if (inputs_ &&
        (inputs_->sizes.size() != 2 || targets_->sizes.size() != 2 || inputs_->sizes[0] != targets_->sizes[0]))
      throw UserError({.code = "tokens.pairs-mismatch",
                       .what = "'inputs' and 'targets' are no rows of pairs: they need two dims and as many rows",
                       .where = path,
                       .fix = "save both as [pairs length], padded with zeros"});
  }

  bool is_stream() const { return targets_->sizes.size() == 1; }
  std::int64_t rows() const { return targets_->sizes[0]; }
  Rows::Side targets() const { return side(*targets_); }
  Rows::Side inputs() const { return inputs_ ? side(*inputs_) : Rows::Side{}; }

 private:
  void check(const FileTensor& tensor) const {
    const std::size_t rank = tensor.sizes.size();
    const bool is_sized = rank >= 1 && rank <= 2 && tensor.bytes > 0;
    if (!is_sized || !find_stored(tensor.stored_as) || (tensor.column_major && rank == 2))
      throw UserError(
          {.code = "tokens.bad-tensor",
           .what = sentence("the tensor, ", tensor.stored_as, " of ", rank, " dims, ", "holds no tokens"),
           .where = file_.path(),
           .fix = "save integers (u2, u4, i4, i8) of one dim, a stream, or of two, a row for each example, row-major"});
  }
  Rows::Side side(const FileTensor& tensor) const {
    const StoredId& stored = *find_stored(tensor.stored_as);
    return {std::make_unique<FileIds>(bytes_, stored, tensor.offset,
                                      static_cast<std::int64_t>(tensor.bytes / stored.bytes), limit_),
            tensor.sizes.back()};
  }

  TensorFile file_;
  std::shared_ptr<const FileBytes> bytes_;
  std::int64_t limit_;
  const FileTensor *targets_ = nullptr, *inputs_ = nullptr;
};

}  // namespace

std::unique_ptr<Examples> open_tokens(const SourceOptions& options) {
  Hash hash;
  auto stream = std::make_unique<JoinedIds>();
  for (const std::string& path : options.files) {
    const std::string ending = std::filesystem::path(path).extension().string();
    if (ending == ".u16" || ending == ".u32") {
      stream->add(open_raw(path, *find_stored(ending), limit_of(options), hash));
      continue;
    }
    const TokenTensors tensors(path, limit_of(options), hash);
    if (tensors.is_stream()) {
      stream->add(tensors.targets().ids);
      continue;
    }
    if (options.files.size() > 1)
      throw UserError({.code = "tokens.several-row-files",
                       .what = "a token file with a row for each example must be the only file",
                       .where = path,
                       .fix = "put all rows into one file"});
    return std::make_unique<Rows>(tensors.inputs(), tensors.targets(), tensors.rows(), options.join, hash.text());
  }
  return stream_of(std::move(stream), options.length, hash.text());
}

}  // namespace weft::data
