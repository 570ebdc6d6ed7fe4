// The three kinds of failure. Each says what is wrong, where (the user's line, a file, a processor) and how to mend it.
#pragma once

#include <stdexcept>
#include <string>

#include "weft/site.h"

namespace weft {

// "file:line" of a site.
std::string to_string(const Site& site);

// The place an error speaks of: a site of the user's program or any text.
struct Place {
  Place() = default;
  Place(const Site& site) : text(to_string(site)) {}
  Place(std::string text) : text(std::move(text)) {}
  Place(const char* text) : text(text) {}
  std::string text;
};

struct ErrorText {
  std::string what;
  Place where;
  std::string fix;
};

// what() is the three lines "error: …", "where: …", "fix:   …" as a person reads them.
class Error : public std::runtime_error {
 public:
  explicit Error(ErrorText text);
  const ErrorText& text() const { return text_; }

 private:
  ErrorText text_;
};

// The program, layout, configuration or file that the user gave is wrong. Exit code 2.
class UserError : public Error {
 public:
  using Error::Error;
};

// The wire, a device or a file failed while running. Exit code 3.
class RunError : public Error {
 public:
  using Error::Error;
};

// A fault of Weft itself. Exit code 70.
class InternalError : public Error {
 public:
  explicit InternalError(const std::string& what, const Site& site = Site::current());
};

// Throws InternalError with the text if `ok` is false.
inline void internal_check(bool ok, const char* what, const Site& site = Site::current()) {
  if (!ok) throw InternalError(what, site);
}

}  // namespace weft
