// Site: the user's line on which an op was made. Every op takes one as its last, defaulted argument.
#pragma once

#include <source_location>

namespace weft {

// A separate type: with std::source_location, an explicit site would add std::equal and similar functions to overload
// sets. It has no default constructor: an argument {} means an empty Shape.
class Site {
 public:
  static constexpr Site current(std::source_location here = std::source_location::current()) { return Site(here); }
  constexpr const char* file_name() const { return here_.file_name(); }
  constexpr unsigned line() const { return here_.line(); }

 private:
  constexpr explicit Site(std::source_location here) : here_(here) {}
  std::source_location here_;
};

}  // namespace weft
