// The rows that weft bench decode reads and writes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::tools {

// The tokens of a row: of its prompt or input, and to generate; 0: as many as there is room for.
struct DecodeRow {
  std::int64_t read = 0, write = 0;
};

// Lines "READ WRITE". UserError for any other line, and for a file without lines.
std::vector<DecodeRow> read_decode_rows(const std::string& path);
// `count` rows of lengths in the ranges "16" or "16,256", evenly spread, in a mixed order. `writes` "": as many as fit.
// UserError, naming the option, for texts that are not ranges.
std::vector<DecodeRow> spread_decode_rows(std::int64_t count, const std::string& reads, const std::string& writes);

}  // namespace weft::tools
