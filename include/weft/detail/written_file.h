// Not part of the API's promise. A file that is written as a whole: it is complete or as it was before.
#pragma once

#include <fstream>
#include <string>

namespace weft::detail {

// Writes to a temporary file in the same folder; finish() renames it. A device, a pipe or a socket is never replaced: it is
// written directly.
class WrittenFile {
 public:
  explicit WrittenFile(const std::string& path);
  ~WrittenFile();  // without finish() removes the temporary file
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;

  std::ofstream& stream() { return stream_; }
  bool finish();  // false, with errno, if anything since the start failed

 private:
  std::string path_, written_;  // equal if the path is written directly
  std::ofstream stream_;
};

}  // namespace weft::detail
