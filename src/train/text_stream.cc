#include "train/text_stream.h"

#include <algorithm>
#include <string_view>

namespace weft::train {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // what a vocabulary of pieces says for half a character

// The bytes of the character that begins with this one; 1 for a byte that begins none.
std::size_t length_of(unsigned char first) {
  if (first >= 0xF0) return 4;
  if (first >= 0xE0) return 3;
  return first >= 0xC0 ? 2 : 1;
}

// The end of the part that no later token changes.
std::size_t settled(const std::string& text) {
  std::size_t end = text.size();
  while (end >= kReplacement.size() && text.compare(end - kReplacement.size(), kReplacement.size(), kReplacement) == 0)
    end -= kReplacement.size();
  for (std::size_t back = 1; back <= 3 && back <= end; ++back) {
    const auto byte = static_cast<unsigned char>(text[end - back]);
    if ((byte & 0xC0) == 0x80) continue;  // inside a character
    return length_of(byte) > back ? end - back : end;
  }
  return end;
}

}  // namespace

TextStream::TextStream(data::Vocabulary vocabulary, std::vector<std::int32_t> prompt, StopTexts stops)
    : vocabulary_(std::move(vocabulary)),
      stops_(std::move(stops)),
      ids_(std::move(prompt)),
      prompt_(ids_.size()),
      begin_(vocabulary_.decode(ids_).size()) {}

std::string TextStream::text() {
  const auto text_of = [&](std::span<const std::int32_t> ids) {
    const std::string all = vocabulary_.decode(ids);
    return all.substr(std::min(begin_, all.size()));
  };
  std::string all = text_of(ids_);
  const std::size_t free = stops_.free_tokens();
  if (stops_.empty() || ids_.size() <= prompt_ + free) return all;
  const StopTexts::Match match =
      stops_.find(all, free == 0 ? 0 : text_of(std::span(ids_).first(prompt_ + free)).size());
  if (!match) return all;
  stop_text_ = match.text;
  return all.substr(0, match.begin);
}

std::string TextStream::told_up_to(const std::string& text, std::size_t end) {
  if (end <= told_) return "";
  const std::string piece = text.substr(told_, end - told_);
  told_ = end;
  return piece;
}

std::string TextStream::add(std::int32_t id) {
  ids_.push_back(id);
  const std::string all = text();
  return told_up_to(all, stop_text_.empty() ? std::min(settled(all), all.size() - stops_.unsure(all)) : all.size());
}

std::string TextStream::whole(const std::vector<std::int32_t>& ids) {
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  return rest();
}

std::string TextStream::rest() {
  const std::string all = text();
  return told_up_to(all, all.size());
}

}  // namespace weft::train
