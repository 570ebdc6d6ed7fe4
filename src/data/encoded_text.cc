// A file of a cache: 8 bytes "WEFTTOK1", 8 bytes size of a JSON text, the text with spaces up to a multiple of 8. Then
// for each side: the begins (8 bytes each, one more than sequences) and the ids (2 or 4 bytes each, up to a multiple of
// 8).
#include "data/encoded_text.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "data/file_bytes.h"
#include "data/hash.h"

namespace weft::data {

namespace {

using Json = nlohmann::ordered_json;

constexpr char kMagic[] = "WEFTTOK1";
constexpr std::uint64_t kWord = 8;

std::uint64_t rounded_up(std::uint64_t bytes) { return (bytes + kWord - 1) / kWord * kWord; }

// Ids of a file of a cache.
class CachedIds : public Ids {
 public:
  CachedIds(std::shared_ptr<const FileBytes> file, std::uint64_t offset, std::int64_t size, std::size_t bytes)
      : file_(std::move(file)), offset_(offset), size_(size), bytes_(bytes) {}

  std::int64_t size() const override { return size_; }
  void read(std::int64_t begin, std::int64_t count, std::vector<std::int32_t>& to) const override {
    const std::size_t first = to.size(), n = static_cast<std::size_t>(count);
    const std::uint64_t at = offset_ + static_cast<std::uint64_t>(begin) * bytes_;
    to.resize(first + n);
    if (bytes_ == sizeof(std::int32_t)) return file_->read(at, to.data() + first, n * bytes_);
    std::vector<std::uint16_t> narrow(n);
    file_->read(at, narrow.data(), n * bytes_);
    std::copy(narrow.begin(), narrow.end(), to.begin() + static_cast<std::ptrdiff_t>(first));
  }

 private:
  std::shared_ptr<const FileBytes> file_;
  std::uint64_t offset_;
  std::int64_t size_;
  std::size_t bytes_;
};

// What the ids depend on. Files that have changed are told by it, without reading all of them.
Json state_of(const SourceOptions& options, const std::string& format, const Vocabulary& vocabulary) {
  Json state = {{"format", format}, {"vocabulary", vocabulary.fingerprint()}, {"files", Json::array()}};
  std::vector<std::string> paths = options.files;
  if (!options.targets_file.empty()) paths.push_back(options.targets_file);
  for (const std::string& path : paths) {
    Hash hash;
    add_blocks(FileBytes(path), hash);
    const auto time = std::filesystem::last_write_time(path).time_since_epoch();
    state["files"].push_back({{"path", std::filesystem::absolute(path).lexically_normal().string()},
                              {"time", std::chrono::duration_cast<std::chrono::nanoseconds>(time).count()},
                              {"blocks", hash.text()}});
  }
  return state;
}

// One for the paths, the format and the vocabulary: text that has changed takes the place of what it was.
std::string path_of(const std::string& folder, const Json& state) {
  Hash hash;
  hash.add(state["format"].get<std::string>());
  hash.add(state["vocabulary"].get<std::string>());
  for (const Json& file : state["files"]) hash.add(file["path"].get<std::string>());
  return (std::filesystem::path(folder) / (hash.text() + ".tokens")).string();
}

// None if there is no such file, or one of other text.
std::optional<ReadableText> opened(const std::string& path, const Json& state) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  const auto file = std::make_shared<const FileBytes>(path);
  std::uint64_t size = 0;
  if (file->size() < 2 * kWord || file->read_text(0, kWord) != kMagic) return std::nullopt;
  file->read(kWord, &size, sizeof size);
  if (size > file->size() - 2 * kWord) return std::nullopt;
  const Json about = Json::parse(file->read_text(2 * kWord, size), nullptr, false);
  if (!about.is_object() || !about.contains("state") || about["state"] != state) return std::nullopt;
  ReadableText text{about["fingerprint"], {}};
  std::uint64_t at = 2 * kWord + size;
  for (const Json& side : about["sides"]) {
    const std::int64_t sequences = side["sequences"], ids = side["ids"];
    const std::size_t bytes = side["bytes"];
    const std::uint64_t begins = at;
    at += (static_cast<std::uint64_t>(sequences) + 1) * kWord;
    text.sides.push_back({std::make_shared<CachedIds>(file, at, ids, bytes), sequences, [file, begins](std::int64_t i) {
                            std::int64_t two[2];
                            file->read(begins + static_cast<std::uint64_t>(i) * kWord, two, sizeof two);
                            return std::pair(two[0], two[1]);
                          }});
    at += rounded_up(static_cast<std::uint64_t>(ids) * bytes);
  }
  if (at != file->size()) return std::nullopt;
  return text;
}

void write(const std::string& path, const Json& state, const EncodedText& text) {
  Json about = {{"state", state}, {"fingerprint", text.fingerprint}, {"sides", Json::array()}};
  for (const EncodedSide& side : text.sides)
    about["sides"].push_back({{"sequences", side.begins.size() - 1},
                              {"ids", side.ids.size()},
                              {"bytes", side.ids.bytes().size() / std::max<std::size_t>(1, side.ids.size())}});
  std::string head = about.dump();
  head.resize(rounded_up(head.size()), ' ');
  const std::uint64_t size = head.size(), zeros = 0;
  std::vector<std::pair<const void*, std::size_t>> pieces = {
      {kMagic, kWord}, {&size, sizeof size}, {head.data(), head.size()}};
  for (const EncodedSide& side : text.sides) {
    const std::span<const std::byte> ids = side.ids.bytes();
    pieces.emplace_back(side.begins.data(), side.begins.size() * kWord);
    pieces.emplace_back(ids.data(), ids.size());
    pieces.emplace_back(&zeros, rounded_up(ids.size()) - ids.size());
  }
  write_whole(path, pieces);
}

// Held until it goes, or its process ends. Waits for one that another process holds.
class FileLock {
 public:
  explicit FileLock(const std::string& path) : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    int failed = descriptor_ < 0 ? -1 : ::flock(descriptor_, LOCK_EX);
    while (failed != 0 && descriptor_ >= 0 && errno == EINTR) failed = ::flock(descriptor_, LOCK_EX);
    is_held_ = failed == 0;
  }
  ~FileLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  bool is_held() const { return is_held_; }

 private:
  int descriptor_;
  bool is_held_ = false;
};

}  // namespace

ReadableText in_memory(EncodedText text) {
  ReadableText made{std::move(text.fingerprint), {}};
  for (EncodedSide& side : text.sides) {
    const auto ids = std::make_shared<const MemoryIds>(std::move(side.ids));
    const auto begins = std::make_shared<const std::vector<std::int64_t>>(std::move(side.begins));
    made.sides.push_back({ids, static_cast<std::int64_t>(begins->size()) - 1, [begins](std::int64_t index) {
                            const auto i = static_cast<std::size_t>(index);
                            return std::pair((*begins)[i], (*begins)[i + 1]);
                          }});
  }
  return made;
}

ReadableText from_cache(const SourceOptions& options, const std::string& format, const Vocabulary& vocabulary,
                        const std::function<EncodedText()>& encode) {
  const Json state = state_of(options, format, vocabulary);
  const std::string path = path_of(options.cache, state);
  std::error_code ignored;
  std::filesystem::create_directories(options.cache, ignored);
  if (std::optional<ReadableText> found = opened(path, state)) return *std::move(found);
  const FileLock lock(path + ".lock");
  if (!lock.is_held()) return in_memory(encode());
  if (std::optional<ReadableText> found = opened(path, state)) return *std::move(found);  // made meanwhile
  EncodedText text = encode();
  try {
    write(path, state, text);
  } catch (const RunError&) {  // no room
    return in_memory(std::move(text));
  }
  std::optional<ReadableText> made = opened(path, state);
  return made ? *std::move(made) : in_memory(std::move(text));
}

}  // namespace weft::data
