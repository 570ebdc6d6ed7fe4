#include "base/str.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>

namespace weft {

namespace {

// Levenshtein distance: insertions, deletions and replacements each cost one.
int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i) + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const int replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  int best_distance = static_cast<int>(word.size()) / 3 + 2;
  for (const std::string& candidate : known) {
    const int distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::optional<std::int64_t> bytes_of(std::string_view text) {
  static const std::map<std::string_view, std::int64_t> kUnits = {
      {"", 1},          {"B", 1},         {"KB", 1000},    {"MB", 1000000}, {"GB", 1000000000},
      {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
  std::int64_t count = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), count);
  const auto unit = kUnits.find(text.substr(static_cast<std::size_t>(stop - text.data())));
  if (failure != std::errc() || unit == kUnits.end() || count < 0 || count > (std::int64_t{1} << 32)) return {};
  return count * unit->second;
}

std::vector<std::string> split_words(std::string_view text, std::string_view separators) {
  std::vector<std::string> words;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    if (end > begin) words.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

}  // namespace weft
