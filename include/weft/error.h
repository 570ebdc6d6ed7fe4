// The three kinds of errors. Each says what is wrong, where (the user's line, a file, a processor) and how to fix it.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "weft/site.h"

namespace weft {

// "file:line" of a site.
std::string to_string(const Site& site);

// The place that an error names: a site of the user's program or any text.
struct Place {
  Place() = default;
  Place(const Site& site) : text(to_string(site)) {}
  Place(std::string text) : text(std::move(text)) {}
  Place(const char* text) : text(text) {}
  std::string text;
};

// The stable name of an error, its area first: "layout.unknown-axis". docs/errors.md lists all codes. Programs may
// compare codes; texts may change.
struct ErrorCode {
  ErrorCode(const char* text) : text(text) {}
  ErrorCode(std::string text) : text(std::move(text)) {}
  std::string text;
  bool operator==(const ErrorCode&) const = default;
};

struct ErrorText {
  ErrorCode code;
  std::string what;
  Place where;
  std::string fix;
};

// what() returns the lines "error: …", "where: …", "fix:   …", "code:  …" for people.
class Error : public std::runtime_error {
 public:
  explicit Error(ErrorText text);
  const ErrorText& text() const { return text_; }

 private:
  ErrorText text_;
};

// The program, layout, config or file of the user is wrong. Exit code 2.
class UserError : public Error {
 public:
  // If the environment variable WEFT_RECORD_ERRORS names a file, appends the code to it, once per process.
  explicit UserError(ErrorText text);
};

// The wire, a device or a file failed during a run. Exit code 3.
class RunError : public Error {
 public:
  using Error::Error;
};

// A bug in Weft. Exit code 70.
class InternalError : public Error {
 public:
  explicit InternalError(const std::string& what, const Site& site = Site::current());
  // An InternalError of another process.
  explicit InternalError(ErrorText text) : Error(std::move(text)) {}
};

// Throws InternalError with the text if `ok` is false.
inline void internal_check(bool ok, const char* what, const Site& site = Site::current()) {
  if (!ok) throw InternalError(what, site);
}

}  // namespace weft
