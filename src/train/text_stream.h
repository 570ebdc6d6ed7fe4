// TextStream: the text of tokens that come one by one, in pieces that can be printed at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/stop_texts.h"
#include "weft/data.h"

namespace weft::train {

class TextStream {
 public:
  // The text goes on from that of `prompt`, which is not part of it. It ends before the first stop text.
  TextStream(data::Vocabulary vocabulary, std::vector<std::int32_t> prompt, StopTexts stops = {});

  // What the token adds. A character of several tokens comes with the last of them. What may be the beginning of a stop
  // text is held back.
  std::string add(std::int32_t id);
  // What is still held back.
  std::string rest();
  // The text of all tokens at once: the pieces that add() and rest() give for them, in a row.
  std::string whole(const std::vector<std::int32_t>& ids);
  // The stop text that has ended the text; empty: none has.
  const std::string& stop_text() const { return stop_text_; }

 private:
  std::string text();  // so far, up to a stop text
  std::string told_up_to(const std::string& text, std::size_t end);

  data::Vocabulary vocabulary_;
  StopTexts stops_;
  std::vector<std::int32_t> ids_;
  std::size_t prompt_;     // the number of its ids
  std::size_t begin_ = 0;  // of the text, in what all ids say
  std::size_t told_ = 0;
  std::string stop_text_;
};

}  // namespace weft::train
