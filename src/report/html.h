// Pieces of HTML and SVG as text. Text that comes from users goes through escaped(); everything that ends here is also
// well-formed XML.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace weft::report {

template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// The text for use between tags and in attributes. Bytes that XML or UTF-8 does not allow become U+FFFD.
std::string escaped(std::string_view raw);

std::string fixed(double number, int digits);  // without zeros at the end
std::string percent(double share);

struct Cell {
  std::string raw;      // escaped by table()
  double bar = -1;      // a bar of this share of the column's width; below 0: none
  bool number = false;  // aligned to the right
};
Cell number_cell(std::string raw);

std::string table(const std::vector<std::string>& heads, const std::vector<std::vector<Cell>>& rows);
std::string paragraph(std::string_view raw, std::string_view style = "");
// One section of the page. `body` is markup.
std::string section(std::string_view id, std::string_view title, const std::string& body);

// SVG. Coordinates are pixels; `style` names classes of the page's style sheet.
std::string svg(double width, double height, std::string_view label, const std::string& body);
std::string rectangle(double x, double y, double width, double height, std::string_view style,
                      std::string_view title = {});
std::string line(double x1, double y1, double x2, double y2, std::string_view style);
std::string label(double x, double y, std::string_view raw, std::string_view style = "");

// Round numbers from 0 to at least `most`, some `count` of them.
std::vector<double> ticks(double most, int count);
std::vector<double> byte_ticks(double most, int count);  // round in KiB, MiB, …

extern const char* const kStyleSheet;

}  // namespace weft::report
