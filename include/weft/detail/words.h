// Suggestions for misspelt words, for programs with errors in three lines.
// Not part of the API's promise: it may change in any release.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// The name in `known` nearest to `word`, "" if none is near: for "did you mean" in a fix.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

// "4096", "64KiB" (of 1024), "16MB" (of 1000 times 1000) or "2GiB" in bytes; none for any other text.
std::optional<std::int64_t> bytes_of(std::string_view text);

}  // namespace weft
