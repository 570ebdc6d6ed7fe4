#include "weft/error.h"

#include "base/str.h"

namespace weft {

namespace {

std::string three_lines(const ErrorText& text) {
  return str("error: ", text.what, "\nwhere: ", text.where.text, "\nfix:   ", text.fix);
}

}  // namespace

std::string to_string(const Site& site) { return std::string(site.file_name()) + ":" + std::to_string(site.line()); }

Error::Error(ErrorText text) : std::runtime_error(three_lines(text)), text_(std::move(text)) {}

InternalError::InternalError(const std::string& what, const Site& site)
    : Error({.what = str("Weft broke one of its own rules: ", what),
             .where = site,
             .fix = "this is a bug in Weft; please report it with the program text (weft explain)"}) {}

}  // namespace weft
