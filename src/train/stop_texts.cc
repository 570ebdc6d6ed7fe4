#include "train/stop_texts.h"

#include <algorithm>

#include "train/text_stream.h"
#include "weft/error.h"

namespace weft::train {

namespace {

std::string decoded(const data::Vocabulary& vocabulary, const std::string& text) {
  return vocabulary.decode(vocabulary.encode(text));
}

void check(const data::Vocabulary& vocabulary, const std::string& text, const std::string& where) {
  if (text.empty())
    throw UserError({.code = "decode.empty-stop-text",
                     .what = "a stop text is empty",
                     .where = where,
                     .fix = "give a text of at least one character, or leave it out"});
  // Within other text: a vocabulary drops spaces at both ends of a line.
  const std::string alone = decoded(vocabulary, text), within = decoded(vocabulary, "x" + text + "x");
  if (alone.find(text) != std::string::npos || within.find(text) != std::string::npos) return;
  throw UserError({.code = "decode.stop-text-without-tokens",
                   .what = "no text can contain the stop text '" + text +
                           "': encoded by the vocabulary and decoded, it is '" + alone + "'",
                   .where = where,
                   .fix = "give a text as the vocabulary writes it; weft vocab encode shows its tokens"});
}

}  // namespace

StopTexts::StopTexts(const data::Vocabulary& vocabulary, std::vector<std::string> texts, std::int64_t min_tokens,
                     const std::string& where)
    : texts_(std::move(texts)), min_tokens_(min_tokens) {
  for (const std::string& text : texts_) {
    check(vocabulary, text, where);
    longest_ = std::max(longest_, text.size());
  }
}

StopTexts::Match StopTexts::find(std::string_view text, std::size_t free) const {
  Match first;
  for (const std::string& stop : texts_) {
    const std::size_t from = free >= stop.size() ? free - stop.size() + 1 : 0;
    const std::size_t begin = text.find(stop, from);
    if (begin < first.begin) first = {begin, stop};
  }
  return first;
}

std::size_t StopTexts::unsure(std::string_view text) const {
  std::size_t most = 0;
  for (const std::string& stop : texts_)
    for (std::size_t size = std::min(text.size(), stop.size() - 1); size > most; --size)
      if (text.ends_with(std::string_view(stop).substr(0, size))) most = size;
  return most;
}

// Looks at the last tokens first: so many that no stop text begins before them and ends with the last token. The first
// bytes of their text may differ from the whole text, where a line begins or a character continues.
bool StopTexts::are_in(const data::Vocabulary& vocabulary, std::span<const std::int32_t> prompt,
                       std::span<const std::int32_t> ids) const {
  constexpr std::size_t kFirst = 16, kDiffers = 8;
  if (empty() || ids.size() <= free_tokens()) return false;
  for (std::size_t tail = kFirst; tail < ids.size() && ids.size() > free_tokens() + 1; tail *= 2) {
    const auto last = ids.last(tail);
    if (vocabulary.decode(last.first(tail - 1)).size() < longest_ + kDiffers) continue;
    if (!find(vocabulary.decode(last), 0)) return false;
    break;
  }
  TextStream stream(vocabulary, {prompt.begin(), prompt.end()}, *this);
  stream.whole({ids.begin(), ids.end()});
  return !stream.stop_text().empty();
}

}  // namespace weft::train
