// FileBytes: a file, or bytes in memory, read by offset. Also the two kinds of errors when reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "weft/error.h"

namespace weft {

template <class... Parts>
std::string sentence(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

class FileBytes {
 public:
  explicit FileBytes(const std::string& path);
  FileBytes(std::string path, std::vector<std::byte> bytes);
  ~FileBytes();
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }  // at the time of opening

  // RunError if the system cannot read the bytes, or if the file has become shorter. offset + count is at most size().
  void read(std::uint64_t offset, void* to, std::size_t count) const;
  std::string read_text(std::uint64_t offset, std::size_t count) const;

  // Throws UserError: the file breaks its format at this byte.
  [[noreturn]] void refuse(ErrorCode code, std::uint64_t offset, const std::string& what, const std::string& fix) const;

 private:
  std::string path_;
  std::uint64_t size_ = 0;
  int descriptor_ = -1;  // none for bytes in memory
  std::vector<std::byte> bytes_;
};

// Writes everything as a detail::WrittenFile. RunError if the system refuses.
void write_whole(const std::string& path, const std::vector<std::pair<const void*, std::size_t>>& pieces);

}  // namespace weft
