// Files of lines, and standard output.
#pragma once

#include <string>
#include <vector>

namespace weft::tools {

// UserError if the file cannot be read; "-" is standard input.
std::vector<std::string> read_lines(const std::string& path);
// A file with the contents of standard input, for readers that need a file. The file exists as long as this object.
class StandardInputFile {
 public:
  // The file's name has the extension of `like`, which determines how it is read.
  explicit StandardInputFile(const std::string& like);
  ~StandardInputFile();
  StandardInputFile(const StandardInputFile&) = delete;
  StandardInputFile& operator=(const StandardInputFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// RunError, naming the option, if it cannot be written.
void write_text(const std::string& path, const std::string& text, const std::string& option);

// Flushes standard output. False if its reader has closed the pipe (`| head`), which is no error. RunError if output was
// lost in another way, for example on a full disk.
bool flush_output();

}  // namespace weft::tools
