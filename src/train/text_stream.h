// TextStream: the text of tokens that come one by one, in pieces that can be printed at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/data.h"

namespace weft::train {

class TextStream {
 public:
  // The text goes on from that of `prompt`, which is not part of it.
  TextStream(data::Vocabulary vocabulary, std::vector<std::int32_t> prompt);

  // What the token adds. A character of several tokens comes with the last of them.
  std::string add(std::int32_t id);
  // What is still held back: bytes that are no whole character.
  std::string rest();
  // The text of all tokens at once: the pieces that add() and rest() give for them, in a row.
  std::string whole(const std::vector<std::int32_t>& ids);

 private:
  std::string text() const;  // so far
  std::string told_up_to(const std::string& text, std::size_t end);

  data::Vocabulary vocabulary_;
  std::vector<std::int32_t> ids_;
  std::size_t begin_ = 0;  // of the text, in what all ids say
  std::size_t told_ = 0;
};

}  // namespace weft::train
