#include "decode_rows.h"

#include <algorithm>
#include <sstream>

#include "lines.h"
#include "options.h"

namespace weft::tools {

namespace {

struct Range {
  std::int64_t least = 0, most = 0;

  std::int64_t at(std::int64_t i) const { return least + i % (most - least + 1); }
};

Range range_of(const std::string& text, const std::string& option, std::int64_t least) {
  const std::vector<int> counts = parse_counts(text, option);
  if (counts.empty() || counts.size() > 2 || counts.front() < least || counts.back() < counts.front())
    throw UserError(
        {.code = "bench-decode.bad-range",
         .what = "'" + text + "' is not a range of lengths",
         .where = option + " " + text,
         .fix = "give a number from " + std::to_string(least) + " on, or the least and the most, like 16,256"});
  return {counts.front(), counts.back()};
}

}  // namespace

std::vector<DecodeRow> read_decode_rows(const std::string& path) {
  std::vector<DecodeRow> rows;
  std::size_t number = 0;
  for (const std::string& line : read_lines(path)) {
    ++number;
    DecodeRow row;
    std::istringstream words(line);
    std::string rest;
    if (!(words >> row.read >> row.write) || words >> rest || row.read < 1 || row.write < 1)
      throw UserError(
          {.code = "bench-decode.bad-row",
           .what = "'" + line + "' is not a row to decode",
           .where = path + ":" + std::to_string(number),
           .fix = "write two numbers from 1 on, the tokens to read and the tokens to generate, like 14 16"});
    rows.push_back(row);
  }
  if (rows.empty())
    throw UserError({.code = "bench-decode.no-rows",
                     .what = "'" + path + "' has no rows to decode",
                     .where = "--work " + path,
                     .fix = "write a line for each row: the tokens to read and the tokens to generate, like 14 16"});
  return rows;
}

std::vector<DecodeRow> spread_decode_rows(std::int64_t count, const std::string& reads, const std::string& writes) {
  constexpr std::int64_t kStride = 7919;  // a prime: visits all lengths before it repeats one
  const Range read = range_of(reads, "--prompt-lengths", 0);
  const Range write = writes.empty() ? Range{} : range_of(writes, "--tokens", 1);
  std::vector<DecodeRow> rows;
  for (std::int64_t r = 0; r < count; ++r) rows.push_back({read.at(r * kStride), write.at(r * kStride)});
  return rows;
}

}  // namespace weft::tools
