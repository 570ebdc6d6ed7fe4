// Numbers and tables for people.
#include <algorithm>
#include <array>
#include <cstdio>

#include "api/explain_parts.h"
#include "base/str.h"

namespace weft {

namespace {

// Columns of a terminal, not bytes: our text has characters of several bytes.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// "model.cc:12 einsum, :15 gather": a file is named once in a row.
std::string causes_text(const std::vector<std::string>& causes) {
  std::string text, last;
  for (const std::string& cause : causes) {
    const std::string file = cause.substr(0, cause.find(':'));
    text += (text.empty() ? "" : ", ") + (file == last ? cause.substr(file.size()) : cause);
    last = file;
  }
  return text;
}

}  // namespace

std::string percent_text(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g %%", 100 * share);
  return text.data();
}

std::string table_text(const std::vector<std::vector<std::string>>& rows, const std::string& indent,
                       std::size_t first_number) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = indent;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - width_of(row[i]), ' ');
      line += (i == 0 ? "" : "  ") + (i >= first_number ? space + row[i] : row[i] + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string collectives_text(const std::vector<Explanation::Collective>& collectives, bool causes) {
  if (collectives.empty()) return "  none: no processor talks to another\n";
  std::vector<std::vector<std::string>> rows{{"kind", "axes", "phase", "dtype", "count", "elements", "bytes"}};
  for (const Explanation::Collective& c : collectives)
    rows.push_back({c.kind, join(c.axes, "+"), c.phase, std::string(name_of(c.dtype)), str(c.count), str(c.elements),
                    bytes_text(c.bytes)});
  const std::string table = table_text(rows, "  ", 4);
  if (!causes) return table;
  const std::vector<std::string> lines = split_words(table, "\n");
  std::string text = lines[0] + "\n";
  for (std::size_t i = 0; i < collectives.size(); ++i)
    text += str(lines[i + 1], "\n      by ", causes_text(collectives[i].cause), "\n");
  return text;
}

}  // namespace weft
