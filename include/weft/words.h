// Advice on misspelt words, for programs that give errors in our manner.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft {

// The name in `known` nearest to `word`, "" if none is near: for "did you mean" advice.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

}  // namespace weft
