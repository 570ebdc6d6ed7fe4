// Files that are durable when a function returns, and errors that name them. RunError if the system fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace weft::checkpoint {

template <class... Parts>
std::string sentence(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// CRC-32C (Castagnoli) of `before` and these bytes; crc32c(0, all) of all at once.
std::uint32_t crc32c(std::uint32_t before, std::span<const std::byte> bytes);
std::uint32_t crc32c(std::string_view text);

// The path of an entry of a folder.
inline std::string path_in(const std::string& folder, const std::string& name) {
  return (std::filesystem::path(folder) / name).string();
}

// A new file, written from its begin. Nothing is on disk for sure before close().
class NewFile {
 public:
  explicit NewFile(const std::string& path);  // it must not be there
  ~NewFile();                                 // without close(): the file is left as it is
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  void close();  // and durable

 private:
  std::string path_;
  int descriptor_;
};

void write_new(const std::string& path, std::string_view text);     // durable, without its folder's entry
void replace_file(const std::string& path, std::string_view text);  // durable; the file is the old one or this
void make_folder(const std::string& path);
void make_folders(const std::string& path);
void sync_folder(const std::string& path);
void rename_path(const std::string& from, const std::string& to);
// `to` may be there: then the two are exchanged, at once where the file system can.
void exchange(const std::string& from, const std::string& to);
void remove_all(const std::string& path);

// Holds the lock of a folder for as long as it lives.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder);  // UserError if another process holds it
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

// UserError if another process holds the lock of the folder, which may be absent.
void check_not_in_use(const std::string& folder);

// What a folder of checkpoints has: the finished ones, by step; and what was left unfinished.
struct FolderContents {
  std::map<std::int64_t, std::string> steps;  // -> path
  std::vector<std::string> leftovers;         // paths
};
FolderContents contents_of(const std::string& folder);  // nothing if it is not there

std::string step_name(std::int64_t step);        // step-00001000
std::string unfinished_name(std::int64_t step);  // .step-00001000.partial
std::string outdated_name(std::int64_t step);    // .step-00001000.old

}  // namespace weft::checkpoint
