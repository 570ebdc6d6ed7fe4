// Pictures of how a tensor is split over the mesh. The last axis is drawn across, the second last down, with one grid
// for every coordinate along the remaining axes. An axis along which all processors hold the same is drawn once, as
// "*".
#include <algorithm>

#include "api/explain_parts.h"
#include "base/index.h"
#include "base/str.h"
#include "layout/sharding.h"

namespace weft {

namespace {

constexpr int kMostAcross = 5;
constexpr int kMostDown = 6;
constexpr int kMostGrids = 3;
constexpr int kAny = -1;  // "*"
constexpr int kCut = -2;  // "…": some are left out here

using Cell = std::vector<std::string>;  // lines

class Picture {
 public:
  Picture(const Explanation::Placed& tensor, const Mesh& mesh) : t_(tensor), mesh_(mesh) {}

  std::string text() const {
    std::vector<int> coordinates(mesh_.axes().size(), 0);
    std::string out;
    grids(0, coordinates, out);
    return out;
  }

 private:
  int axis_count() const { return static_cast<int>(mesh_.axes().size()); }

  // The coordinates to draw along an axis.
  std::vector<int> shown(int axis, int most) const {
    const auto holds = [&](const Axes& axes) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); };
    if (!holds(t_.partial) && std::none_of(t_.split.begin(), t_.split.end(), holds)) return {kAny};
    const int size = mesh_.axes()[at(axis)].size;
    std::vector<int> all;
    for (int i = 0; i < (size > most ? most - 1 : size); ++i) all.push_back(i);
    if (size > most) {
      all.push_back(kCut);
      all.push_back(size - 1);
    }
    return all;
  }

  std::string label(int axis, int coordinate) const {
    if (coordinate == kCut) return "…";
    return str(mesh_.axes()[at(axis)].name, "=", coordinate == kAny ? "*" : str(coordinate));
  }

  // Steps through the axes above the last two, then draws.
  void grids(int axis, std::vector<int>& coordinates, std::string& out) const {
    if (axis >= axis_count() - 2) return grid(coordinates, out);
    for (int coordinate : shown(axis, kMostGrids)) {
      if (coordinate == kCut) {
        out += "  …\n";
        continue;
      }
      coordinates[at(axis)] = std::max(coordinate, 0);
      out += str("  ", label(axis, coordinate), "\n");
      grids(axis + 1, coordinates, out);
    }
  }

  void grid(std::vector<int>& coordinates, std::string& out) const {
    const int across = axis_count() - 1, down = axis_count() - 2;
    const std::vector<int> columns = across >= 0 ? shown(across, kMostAcross) : std::vector<int>{kAny};
    const std::vector<int> rows = down >= 0 ? shown(down, kMostDown) : std::vector<int>{kAny};
    std::vector<std::vector<Cell>> cells{{Cell{""}}};
    for (int c : columns) cells[0].push_back({across >= 0 ? label(across, c) : ""});
    for (int r : rows) {
      std::vector<Cell> line{{down >= 0 ? label(down, r) : ""}};
      for (int c : columns) {
        if (down >= 0) coordinates[at(down)] = std::max(r, 0);
        if (across >= 0) coordinates[at(across)] = std::max(c, 0);
        line.push_back(r == kCut || c == kCut ? Cell{"…"} : held(coordinates));
      }
      cells.push_back(std::move(line));
    }
    draw(cells, out);
  }

  // The index ranges that the processor at these coordinates holds of the split dims.
  Cell held(const std::vector<int>& coordinates) const {
    const ProcessorId processor = mesh_.processor(coordinates);
    Cell lines;
    for (std::size_t i = 0; i < t_.split.size(); ++i) {
      if (t_.split[i].empty()) continue;
      const std::int64_t begin = t_.shard[i].size * mesh_.coordinate(processor, t_.split[i]);
      lines.push_back(str(t_.shard[i].name, " ", begin, "..", begin + t_.shard[i].size - 1));
    }
    if (!t_.partial.empty())
      lines.push_back(str("part ", mesh_.coordinate(processor, t_.partial), " of ", mesh_.size(t_.partial)));
    return lines.empty() ? Cell{"all"} : lines;
  }

  static std::size_t width(const std::string& text) { return text == "…" ? 1 : text.size(); }

  static std::string fitted(const Cell& cell, std::size_t line, std::size_t size) {
    const std::string text = line < cell.size() ? cell[line] : "";
    return text + std::string(size - width(text), ' ');
  }

  // The first row and column are labels and have no frame.
  static void draw(const std::vector<std::vector<Cell>>& cells, std::string& out) {
    std::vector<std::size_t> widths(cells[0].size(), 0);
    for (const auto& row : cells)
      for (std::size_t c = 0; c < row.size(); ++c)
        for (const std::string& line : row[c]) widths[c] = std::max(widths[c], width(line));
    std::string rule = std::string(widths[0] + 5, ' ') + "+";
    for (std::size_t c = 1; c < widths.size(); ++c) rule += std::string(widths[c] + 2, '-') + "+";
    for (std::size_t r = 0; r < cells.size(); ++r) {
      std::size_t lines = 0;
      for (const Cell& cell : cells[r]) lines = std::max(lines, cell.size());
      for (std::size_t line = 0; line < lines; ++line) {
        std::string text = "    " + fitted(cells[r][0], line, widths[0]) + " ";
        for (std::size_t c = 1; c < widths.size(); ++c)
          text += (r == 0 ? "  " : "| ") + fitted(cells[r][c], line, widths[c]) + " ";
        text += r == 0 ? "" : "|";
        text.erase(text.find_last_not_of(' ') + 1);
        if (!text.empty()) out += text + "\n";
      }
      out += rule + "\n";
    }
  }

  const Explanation::Placed& t_;
  const Mesh& mesh_;
};

}  // namespace

std::string picture(const Explanation::Placed& tensor, const Mesh& mesh) {
  const Sharding sharding{.dims = tensor.split, .partial = tensor.partial};
  const Axes same = replicated_axes(sharding, mesh);
  std::string title = str("  ", tensor.use, " ", tensor.name, " ", tensor.dtype, " ", tensor.whole,
                          ": each processor holds ", tensor.shard, ", ", bytes_text(tensor.bytes));
  if (!same.empty()) title += str(", alike along ", text_of(same, mesh));
  return title + "\n" + Picture(tensor, mesh).text();
}

}  // namespace weft
