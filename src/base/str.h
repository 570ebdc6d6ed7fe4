// Text building: str("a ", x, " b") and join(items, ", ").
#pragma once

#include <charconv>
#include <concepts>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "weft/detail/words.h"

namespace weft {

// Appends a part as a stream would write it. Text and whole numbers need no stream, which takes long to make.
template <class Part>
void append_part(std::string& out, const Part& part) {
  if constexpr (std::is_convertible_v<const Part&, std::string_view>) {
    out += std::string_view(part);
  } else if constexpr (std::same_as<Part, char>) {
    out += part;
  } else if constexpr (std::same_as<Part, int> || std::same_as<Part, long> || std::same_as<Part, unsigned> ||
                       std::same_as<Part, unsigned long>) {
    char digits[24];
    out.append(digits, std::to_chars(digits, digits + sizeof(digits), part).ptr);
  } else {
    std::ostringstream stream;
    stream << part;
    out += stream.view();
  }
}

template <class... Parts>
std::string str(const Parts&... parts) {
  std::string out;
  (append_part(out, parts), ...);
  return out;
}

template <class Items>
std::string join(const Items& items, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += separator;
    append_part(out, item);
    first = false;
  }
  return out;
}

// The words of `text` between `separators`; empty words are dropped.
std::vector<std::string> split_words(std::string_view text, std::string_view separators);

}  // namespace weft
