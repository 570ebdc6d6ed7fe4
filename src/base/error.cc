#include "weft/error.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <set>

#include "base/str.h"

namespace weft {

namespace {

std::string lines_of(const ErrorText& text) {
  return str("error: ", text.what, "\nwhere: ", text.where.text, "\nfix:   ", text.fix, "\ncode:  ", text.code.text);
}

// A test run finds in this file which errors its tests reach. Processes append at the same time: one write per line.
void record(const std::string& code) {
  static const char* const path = std::getenv("WEFT_RECORD_ERRORS");
  if (path == nullptr) return;
  static std::mutex mutex;
  static std::set<std::string> recorded;
  const std::lock_guard lock(mutex);
  if (!recorded.insert(code).second) return;
  const int file = ::open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return;
  const std::string line = code + "\n";
  [[maybe_unused]] const ssize_t written = ::write(file, line.data(), line.size());
  ::close(file);
}

}  // namespace

std::string to_string(const Site& site) { return std::string(site.file_name()) + ":" + std::to_string(site.line()); }

Error::Error(ErrorText text) : std::runtime_error(lines_of(text)), text_(std::move(text)) {}

UserError::UserError(ErrorText text) : Error(std::move(text)) { record(this->text().code.text); }

InternalError::InternalError(const std::string& what, const Site& site)
    : Error({.code = "internal.broken-rule",
             .what = str("Weft broke one of its own rules: ", what),
             .where = site,
             .fix = "this is a bug in Weft; please report it with the program text (weft explain)"}) {}

}  // namespace weft
