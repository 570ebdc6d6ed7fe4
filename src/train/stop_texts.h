// Stop texts: a text ends before the first of them that it contains.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/data.h"

namespace weft::train {

class StopTexts {
 public:
  StopTexts() = default;  // none
  // `where`: the setting, for errors. UserError for a text that the vocabulary never produces. Texts do not end a
  // sequence that has fewer than `min_tokens` tokens.
  StopTexts(const data::Vocabulary& vocabulary, std::vector<std::string> texts, std::int64_t min_tokens,
            const std::string& where);

  bool empty() const { return texts_.empty(); }
  // The first generated tokens, whose text may contain stop texts.
  std::size_t free_tokens() const { return static_cast<std::size_t>(min_tokens_ > 0 ? min_tokens_ - 1 : 0); }

  struct Match {
    std::size_t begin = std::string_view::npos;
    std::string_view text = {};
    explicit operator bool() const { return begin != std::string_view::npos; }
  };
  // The stop text that begins first, of those that end after `free` bytes.
  Match find(std::string_view text, std::size_t free) const;
  // How many bytes at the end of the text may be the beginning of a stop text.
  std::size_t unsure(std::string_view text) const;

  // Whether the text of `ids`, generated after `prompt`, contains a stop text, given that it does not without the last id.
  // It costs the same for any number of ids while it does not.
  bool are_in(const data::Vocabulary& vocabulary, std::span<const std::int32_t> prompt,
              std::span<const std::int32_t> ids) const;

 private:
  std::vector<std::string> texts_;
  std::int64_t min_tokens_ = 0;
  std::size_t longest_ = 0;
};

}  // namespace weft::train
