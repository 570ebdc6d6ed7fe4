// Checkpoint: opening one, and reading parts of its variables.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>

#include "train/checkpoint_data.h"
#include "train/checkpoint_files.h"
#include "weft/error.h"
#include "weft/detail/words.h"

namespace weft {

namespace {

using checkpoint::sentence;
using Numbers = std::vector<std::int64_t>;

constexpr const char* kTakeAnother = "take another checkpoint, or a copy of this checkpoint";

// All of a file that has at most so many bytes.
std::string file_text(const std::string& path, std::uintmax_t most) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file || bytes > most)
    throw UserError({.code = "checkpoint.unreadable-file",
                     .what = sentence("cannot read '", path, "', a file of a checkpoint, ",
                                      error || !file ? "which is not there or not to be read" : "which is too long"),
                     .where = path,
                     .fix = kTakeAnother});
  std::string text(bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(bytes));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

[[noreturn]] void refuse_file(ErrorCode code, const std::string& path, const std::string& what) {
  throw UserError({.code = code, .what = what, .where = path, .fix = kTakeAnother});
}

std::string read_state_text(const std::string& path, const checkpoint::IndexText& about) {
  std::string text = file_text(path, about.bytes);
  if (text.size() != about.bytes || checkpoint::crc32c(text) != about.crc)
    refuse_file("checkpoint.changed-text", path,
                "the file is not as it was written: its length or checksum is another");
  return text;
}

void check_file(const std::string& path, std::uint64_t bytes) {
  std::error_code error;
  const std::uintmax_t found = std::filesystem::file_size(path, error);
  if (error)
    refuse_file("checkpoint.missing-file", path,
                sentence("the checkpoint's file '", path, "' is missing: ", error.message()));
  if (found != bytes)
    refuse_file("checkpoint.wrong-file-size", path,
                sentence("the checkpoint's file '", path, "' has ", found, " bytes, but was written with ", bytes));
}

std::int64_t product(const Numbers& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

// Two boxes of one array and what they have in common.
struct Overlap {
  Numbers begin, sizes;
  bool empty = false;

  Overlap(const Numbers& begin_a, const Numbers& sizes_a, const Numbers& begin_b, const Numbers& sizes_b) {
    for (std::size_t d = 0; d < begin_a.size(); ++d) {
      begin.push_back(std::max(begin_a[d], begin_b[d]));
      sizes.push_back(std::min(begin_a[d] + sizes_a[d], begin_b[d] + sizes_b[d]) - begin[d]);
      empty |= sizes[d] <= 0;
    }
  }
};

Numbers minus(Numbers a, const Numbers& b) {
  std::transform(a.begin(), a.end(), b.begin(), a.begin(), std::minus<>());
  return a;
}

// Copies a dense box to its place, from `begin` on, in a dense array of sizes `whole`.
void place(std::span<const std::byte> from, const Numbers& sizes, const Numbers& begin, const Numbers& whole,
           std::size_t width, std::byte* to) {
  const std::size_t rank = sizes.size();
  const std::size_t run = width * static_cast<std::size_t>(rank == 0 ? 1 : sizes[rank - 1]);
  Numbers index(rank, 0);
  for (; !from.empty(); from = from.subspan(run)) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < rank; ++d) offset = offset * whole[d] + begin[d] + index[d];
    std::memcpy(to + static_cast<std::size_t>(offset) * width, from.data(), run);
    for (std::size_t d = rank; d-- > 1 && ++index[d - 1] == sizes[d - 1];) index[d - 1] = 0;
  }
}

}  // namespace

const checkpoint::IndexVariable& Checkpoint::Data::variable(const std::string& name) const {
  const auto found = index.variables.find(name);
  if (found != index.variables.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [other, about] : variables) known.push_back(other);
  const std::string near = nearest_word(name, known);
  throw UserError({.code = "checkpoint.unknown-variable",
                   .what = sentence("the checkpoint has no variable '", name, "'"),
                   .where = path,
                   .fix = near.empty() ? sentence("it has ", known.size(), " variables: see its index.json")
                                       : sentence("did you mean '", near, "'?")});
}

std::shared_ptr<const TensorFile> Checkpoint::Data::file_of(const std::string& name,
                                                            const checkpoint::Piece& piece) const {
  const std::string file_path = checkpoint::path_in(path, piece.file);
  std::shared_ptr<const TensorFile> file;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const TensorFile>& opened = opened_[piece.file];
    if (!opened) {
      check_file(file_path, index.files.at(piece.file));
      opened = std::make_shared<TensorFile>(TensorFile::open(file_path));
    }
    file = opened;
  }
  const DType dtype = index.variables.at(name).variable.dtype;
  const auto found = file->tensors().find(name);
  if (found == file->tensors().end() || found->second.sizes != piece.sizes || found->second.dtype != dtype)
    refuse_file("checkpoint.missing-piece", file_path,
                sentence("the file has not the piece of variable '", name, "' that the index says: ", dtype, " ",
                         checkpoint::list_text(piece.sizes)));
  return file;
}

void Checkpoint::Data::check_crc(const std::string& name, const checkpoint::Piece& piece, std::uint32_t crc) const {
  if (crc != piece.crc)
    refuse_file("checkpoint.wrong-checksum", checkpoint::path_in(path, piece.file),
                sentence("the file is broken: the bytes of variable '", name, "' have the checksum ",
                         checkpoint::hex(crc), ", but were written with ", checkpoint::hex(piece.crc)));
}

void Checkpoint::Data::read(const std::string& name, const Numbers& begin, const Numbers& sizes,
                            std::span<std::byte> out) const {
  const checkpoint::IndexVariable& about = variable(name);
  const std::size_t width = size_of(about.variable.dtype);
  std::vector<std::byte> part;
  for (const checkpoint::Piece& piece : about.pieces) {
    const Overlap common(begin, sizes, piece.begin, piece.sizes);
    if (common.empty) continue;
    const std::size_t bytes = width * static_cast<std::size_t>(product(common.sizes));
    const bool is_all = common.sizes == sizes;  // the piece has all that is wanted
    if (!is_all) part.resize(bytes);
    const std::span<std::byte> to = is_all ? out : std::span(part);
    file_of(name, piece)->read_into(name, minus(common.begin, piece.begin), common.sizes, to);
    if (common.sizes == piece.sizes) check_crc(name, piece, checkpoint::crc32c(0, to));
    if (!is_all) place(part, common.sizes, minus(common.begin, begin), sizes, width, out.data());
  }
}

void Checkpoint::Data::verify(const std::string& name, const checkpoint::Piece& piece) const {
  constexpr std::int64_t kMost = 8 << 20;  // bytes at once, if a row along the first dim has no more
  const std::shared_ptr<const TensorFile> file = file_of(name, piece);
  const std::int64_t rows = piece.sizes.empty() ? 1 : piece.sizes[0];
  const std::int64_t row =
      product(piece.sizes) / rows * static_cast<std::int64_t>(size_of(index.variables.at(name).variable.dtype));
  const std::int64_t step = std::max<std::int64_t>(1, kMost / row);
  std::vector<std::byte> bytes;
  std::uint32_t crc = 0;
  Numbers begin(piece.sizes.size(), 0), sizes = piece.sizes;
  for (std::int64_t first = 0; first < rows; first += step) {
    const std::int64_t count = std::min(step, rows - first);
    if (!begin.empty()) begin[0] = first, sizes[0] = count;
    bytes.resize(static_cast<std::size_t>(row * count));
    file->read_into(name, begin, sizes, bytes);
    crc = checkpoint::crc32c(crc, bytes);
  }
  check_crc(name, piece, crc);
}

namespace {

constexpr std::uintmax_t kLongestIndex = std::uintmax_t{1} << 30;

bool is_checkpoint(const std::string& path) { return std::filesystem::exists(checkpoint::path_in(path, "index.json")); }

std::shared_ptr<const Checkpoint::Data> opened(const std::string& path) {
  auto data = std::make_shared<Checkpoint::Data>();
  data->path = path;
  const std::string index_path = checkpoint::path_in(path, "index.json");
  data->index = checkpoint::parse_index(index_path, file_text(index_path, kLongestIndex));
  data->state.step = data->index.step;
  for (const auto& [name, about] : data->index.texts)
    data->state.texts[name] = read_state_text(checkpoint::path_in(path, name), about);
  for (const auto& [name, bytes] : data->index.files) check_file(checkpoint::path_in(path, name), bytes);
  for (const auto& [name, about] : data->index.variables) data->variables[name] = about.variable;
  return data;
}

// The path of the newest whole checkpoint of a folder; "" if there is none.
std::string newest(const std::string& folder) {
  const checkpoint::FolderContents found = checkpoint::contents_of(folder);
  std::string whole;
  for (const auto& [step, path] : found.steps)
    if (is_checkpoint(path)) whole = path;
  const std::string pointer = checkpoint::path_in(folder, "latest");
  if (!std::filesystem::exists(pointer)) return whole;
  std::string name = file_text(pointer, 1000);
  while (!name.empty() && std::isspace(static_cast<unsigned char>(name.back()))) name.pop_back();
  if (checkpoint::is_plain_name(name) && is_checkpoint(checkpoint::path_in(folder, name)))
    return checkpoint::path_in(folder, name);
  throw UserError({.code = "checkpoint.latest-missing",
                   .what = sentence("'latest' names '", name, "', where there is no checkpoint"),
                   .where = pointer,
                   .fix = whole.empty()
                              ? "remove 'latest' to begin anew"
                              : sentence("write into 'latest' the name of a checkpoint that is there, such as ",
                                         std::filesystem::path(whole).filename().string())});
}

}  // namespace

Checkpoint Checkpoint::open(const std::string& path) {
  if (is_checkpoint(path)) return Checkpoint(opened(path));
  if (std::optional<Checkpoint> found = latest(path)) return *found;
  throw UserError({.code = "checkpoint.none-in-folder",
                   .what = sentence("there is no checkpoint in '", path, "'"),
                   .where = path,
                   .fix = "give the folder of a checkpoint, which has an index.json, or a folder of checkpoints"});
}

std::optional<Checkpoint> Checkpoint::latest(const std::string& folder) {
  const std::string path = newest(folder);
  if (path.empty()) return std::nullopt;
  return Checkpoint(opened(path));
}

const std::string& Checkpoint::path() const { return data_->path; }
const CheckpointState& Checkpoint::state() const { return data_->state; }
const std::map<std::string, CheckpointVariable>& Checkpoint::variables() const { return data_->variables; }

void Checkpoint::read(const std::string& variable, const Numbers& begin, const Numbers& sizes,
                      std::span<std::byte> out) const {
  const CheckpointVariable& about = data_->variable(variable).variable;
  bool fits = begin.size() == about.shape.rank() && sizes.size() == begin.size();
  for (std::size_t d = 0; fits && d < begin.size(); ++d)
    fits =
        begin[d] >= 0 && sizes[d] > 0 && begin[d] <= about.shape[d].size && sizes[d] <= about.shape[d].size - begin[d];
  if (!fits || out.size() != size_of(about.dtype) * static_cast<std::size_t>(product(sizes)))
    throw UserError(
        {.code = "checkpoint.part-out-of-range",
         .what = sentence("variable '", variable, "' ", about.shape, " has no part ", checkpoint::list_text(sizes),
                          " at ", checkpoint::list_text(begin), " of ", out.size(), " bytes"),
         .where = path(),
         .fix = "ask for a part that lies in the variable, with room for just its bytes"});
  data_->read(variable, begin, sizes, out);
}

Array Checkpoint::read(const std::string& variable) const {
  const CheckpointVariable& about = data_->variable(variable).variable;
  Array whole(about.shape, about.dtype);
  const std::size_t bytes = static_cast<std::size_t>(whole.elements()) * size_of(about.dtype);
  data_->read(variable, Numbers(about.shape.rank(), 0), checkpoint::sizes_of(about.shape), {whole.bytes(), bytes});
  return whole;
}

}  // namespace weft
