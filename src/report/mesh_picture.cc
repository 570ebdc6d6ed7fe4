// Tensors on the mesh: each is drawn as a block cut into shards and as the mesh, whose processors have the colours of the
// shards they hold. A long axis is drawn in rows of kRow processors, and a very large mesh up to kMostCells of them.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "report/html.h"
#include "report/sections.h"
#include "weft/detail/progress.h"

namespace weft::report {

namespace {

using Placed = Explanation::Placed;

constexpr int kMostCells = 1024, kRow = 32, kMostPieces = 64;
constexpr double kBlockWidth = 120, kBlockHeight = 88, kMeshWidth = 196, kPictureGap = 26;

// The colour of shard `i` of `many` along the first split dim and `j` of `more` along the others.
std::string colour(int i, int many, int j, int more) {
  const double hue = many > 1 ? 205 + 330.0 * i / many : 205;
  const double light = more > 1 ? 42 + 38.0 * j / (more - 1) : 62;
  return text("hsl(", fixed(std::fmod(hue, 360), 0), ",", many > 1 ? 46 : 30, "%,", fixed(light, 0), "%)");
}

// The split dims of a tensor: the first one, and the rest as one.
struct Cuts {
  std::vector<std::size_t> dims;
  int many = 1, more = 1;

  Cuts(const Placed& t, const Mesh& mesh) {
    for (std::size_t d = 0; d < t.split.size(); ++d) {
      if (mesh.size(t.split[d]) == 1) continue;
      (dims.empty() ? many : more) *= mesh.size(t.split[d]);
      dims.push_back(d);
    }
  }
  std::pair<int, int> shard_of(const Placed& t, const Mesh& mesh, ProcessorId processor) const {
    int first = 0, rest = 0;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const int at = mesh.coordinate(processor, t.split[dims[i]]);
      if (i == 0) first = at;
      else rest = rest * mesh.size(t.split[dims[i]]) + at;
    }
    return {first, rest};
  }
};

// Squares of one colour as one path.
class Squares {
 public:
  void add(const std::string& colour, double x, double y, double width, double height) {
    paths_[colour] += text("M", fixed(x, 2), " ", fixed(y, 2), "h", fixed(width, 2), "v", fixed(height, 2), "h",
                           fixed(-width, 2), "z");
  }
  std::string markup() const {
    std::string out;
    for (const auto& [fill, path] : paths_) out += text("<path fill=\"", fill, "\" d=\"", path, "\"/>\n");
    return out;
  }

 private:
  std::map<std::string, std::string> paths_;
};

std::string dim_words(const Placed& t, const Mesh& mesh, std::size_t d) {
  std::string axes;
  for (const int axis : t.split[d])
    axes += (axes.empty() ? "" : "+") + mesh.axes()[static_cast<std::size_t>(axis)].name;
  return t.whole[d].name + ":" + axes;
}

std::string block(const Cuts& cuts) {
  const int rows = std::min(cuts.many, kMostPieces), columns = std::min(cuts.more, kMostPieces);
  const double height = kBlockHeight / rows, width = kBlockWidth / columns;
  const double gap = std::min(height, width) > 5 ? 1 : 0;
  Squares squares;
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c)
      squares.add(colour(r * cuts.many / rows, cuts.many, c * cuts.more / columns, cuts.more), c * width,
                  18 + r * height, width - gap, height - gap);
  return squares.markup() + label(0, 12, "the tensor", "soft");
}

// Which dims run down and across in the block.
std::string block_words(const Placed& t, const Mesh& mesh, const Cuts& cuts) {
  std::string words;
  for (std::size_t i = 0; i < cuts.dims.size(); ++i)
    words += text(i == 0 ? "Down " : i == 1 ? ", across " : " and ", dim_words(t, mesh, cuts.dims[i]));
  return words.empty() ? words : words + ": ";
}

// Where a processor is drawn, in cells: the last axis across, the second last down, and one such grid for each place along
// the other axes, a cell apart. A long axis is drawn in rows.
class Grid {
 public:
  explicit Grid(const Mesh& mesh) : processors_(std::min(mesh.size(), kMostCells)) {
    const std::vector<Axis>& axes = mesh.axes();
    columns_ = axes.empty() ? 1 : axes.back().size;
    if (axes.size() < 2 || columns_ > 2 * kRow) {
      columns_ = std::min(columns_, kRow);
      rows_ = (processors_ + columns_ - 1) / columns_;
    } else {
      rows_ = axes[axes.size() - 2].size;
    }
    grids_ = (processors_ + rows_ * columns_ - 1) / (rows_ * columns_);
    in_line_ = std::clamp((3 * kRow / 2 + 1) / (columns_ + 1), 1, grids_);
  }

  int width() const { return in_line_ * (columns_ + 1) - 1; }
  int height() const { return (grids_ + in_line_ - 1) / in_line_ * (rows_ + 1) - 1; }
  int processors() const { return processors_; }
  std::pair<int, int> place(int processor) const {
    const int grid = processor / (rows_ * columns_), inside = processor % (rows_ * columns_);
    return {grid % in_line_ * (columns_ + 1) + inside % columns_, grid / in_line_ * (rows_ + 1) + inside / columns_};
  }
  bool in_rows(const Mesh& mesh) const { return !mesh.axes().empty() && columns_ != mesh.axes().back().size; }
  int columns() const { return columns_; }

 private:
  int processors_, columns_ = 1, rows_ = 1, grids_ = 1, in_line_ = 1;
};

std::string axes_words(const Mesh& mesh, const Grid& grid) {
  const std::vector<Axis>& axes = mesh.axes();
  if (axes.empty()) return "one processor";
  const std::string last = axes.back().name;
  if (grid.in_rows(mesh)) return text("processors in order, ", last, " innermost, in rows of ", grid.columns());
  std::string words = text(last, " across");
  if (axes.size() > 1) words += text(", ", axes[axes.size() - 2].name, " down");
  for (std::size_t i = 0; i + 2 < axes.size(); ++i)
    words += text(i == 0 ? ", a grid for each " : " and ", axes[i].name);
  return words;
}

std::string processors(const Placed& t, const Mesh& mesh, const Cuts& cuts, double& height) {
  const Grid grid(mesh);
  const double size = std::min({22.0, kMeshWidth / grid.width(), 200.0 / grid.height()});
  const double gap = size > 5 ? 1 : 0;
  Squares squares;
  for (const ProcessorId processor : mesh.processors()) {
    const int number = static_cast<int>(processor.number());
    if (number == grid.processors()) break;
    const auto [i, j] = cuts.shard_of(t, mesh, processor);
    const auto [x, y] = grid.place(number);
    squares.add(colour(i, cuts.many, j, cuts.more), kBlockWidth + kPictureGap + x * size, 18 + y * size, size - gap,
                size - gap);
  }
  height = 18 + grid.height() * size;
  return label(kBlockWidth + kPictureGap, 12, "the mesh", "soft") + squares.markup();
}

std::string held_words(const Placed& t, const Mesh& mesh, const Cuts& cuts) {
  std::ostringstream shard;
  shard << t.shard;
  const int shards = cuts.many * cuts.more, copies = mesh.size() / std::max(1, shards);
  std::string words = shards == 1 ? text("every processor holds all of it, ", bytes_text(t.bytes))
                                  : text(shards, " shards ", shard.str(), " of ", bytes_text(t.bytes));
  if (shards > 1 && copies > 1) words += text(", each on ", copies, " processors");
  if (!t.partial.empty()) words += text(", as a sum still pending over ", mesh.size(t.partial), " processors");
  return words;
}

std::string card(const Placed& t, const Mesh& mesh) {
  const Cuts cuts(t, mesh);
  double height = 0;
  const std::string drawn = processors(t, mesh, cuts, height);
  std::ostringstream whole;
  whole << t.use << ' ' << t.dtype << ' ' << t.whole;
  return text("<div class=\"card\"><h3>", escaped(t.name), "</h3>\n", paragraph(whole.str(), "soft"),
              svg(kBlockWidth + kPictureGap + kMeshWidth, std::max(height, kBlockHeight + 18) + 2,
                  text("how ", t.name, " lies on the mesh"), block(cuts) + drawn),
              paragraph(block_words(t, mesh, cuts) + held_words(t, mesh, cuts)), "</div>\n");
}

std::int64_t whole_bytes(const Placed& t) {
  return t.shard.elements() > 0 ? t.bytes / t.shard.elements() * t.whole.elements() : 0;
}

// The largest tensors of one use whose dims or splits differ from those of the tensors before them.
void add_largest(const Explanation& e, const std::string& use, std::size_t most, std::vector<const Placed*>& chosen) {
  std::vector<const Placed*> all;
  for (const Placed& t : e.tensors)
    if (t.use == use) all.push_back(&t);
  std::stable_sort(all.begin(), all.end(), [](auto* a, auto* b) { return whole_bytes(*a) > whole_bytes(*b); });
  std::set<std::pair<std::vector<std::string>, std::vector<Axes>>> seen;
  for (const Placed* t : all)
    if (seen.emplace(t->whole.names(), t->split).second && seen.size() <= most) chosen.push_back(t);
}

std::vector<const Placed*> chosen_tensors(const StepReport& report) {
  const Explanation& e = report.compiled;
  std::vector<const Placed*> chosen;
  for (const std::string& name : report.show) {
    const auto found =
        std::find_if(e.tensors.begin(), e.tensors.end(), [&](const Placed& t) { return t.name == name; });
    if (found == e.tensors.end()) e.text({name});  // throws: it names the tensors that there are
    else chosen.push_back(&*found);
  }
  if (!chosen.empty()) return chosen;
  add_largest(e, "variable", 4, chosen);
  add_largest(e, "value", 3, chosen);
  add_largest(e, "input", 1, chosen);
  return chosen;
}

}  // namespace

std::string mesh_body(const StepReport& report) {
  const Mesh& mesh = report.compiled.mesh;
  std::string body = paragraph(
      text("Each tensor is cut into shards. On the mesh (", axes_words(mesh, Grid(mesh)),
           ") a processor has the colour of the shard that it holds; processors of one colour hold the same."));
  if (mesh.size() > kMostCells)
    body += paragraph(text("The first ", kMostCells, " of ", mesh.size(), " processors."), "soft");
  body += "<div class=\"cards\">\n";
  for (const Placed* t : chosen_tensors(report)) body += card(*t, mesh);
  return body + "</div>\n";
}

}  // namespace weft::report
