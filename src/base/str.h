// Text building: str("a ", x, " b") and join(items, ", ").
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "weft/detail/words.h"

namespace weft {

template <class... Parts>
std::string str(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <class Items>
std::string join(const Items& items, std::string_view separator) {
  std::ostringstream out;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out << separator;
    out << item;
    first = false;
  }
  return out.str();
}

// The words of `text` between `separators`; empty words are dropped.
std::vector<std::string> split_words(std::string_view text, std::string_view separators);

}  // namespace weft
