#include "weft/mesh.h"

#include <charconv>
#include <cstdint>

#include "base/index.h"
#include "base/str.h"
#include "layout/words.h"
#include "weft/error.h"

namespace weft {

namespace {

constexpr std::int64_t kMostProcessors = 1'000'000;

Source mesh_source(std::string_view text) { return {.kind = "mesh", .text = text, .example = "data:2 model:4"}; }

// The number in the text, or -1 if it is not a number or does not fit an int.
int number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : -1;
}

void check_axis(const Source& source, const std::vector<Axis>& before, const Pair& written) {
  const auto& [name, size] = written;
  check_name(source, name, "axis", "");
  if (number_of(size.text) < 1)
    throw UserError({.code = "mesh.bad-axis-size",
                     .what = str("the size of axis '", name.text, "' is '", size.text, "'"),
                     .where = source.at(size.column),
                     .fix = str("give a whole number of processors from 1 to ", kMostProcessors)});
  std::int64_t processors = number_of(size.text);
  for (const Axis& axis : before) {
    processors *= axis.size;
    if (axis.name == name.text)
      throw UserError({.code = "mesh.duplicate-axis",
                       .what = str("the mesh has two axes called '", name.text, "'"),
                       .where = source.at(name.column),
                       .fix = "give each axis a different name"});
  }
  if (processors > kMostProcessors)
    throw UserError({.code = "mesh.too-many-processors",
                     .what = str("the mesh has ", processors, " processors up to axis '", name.text, "'"),
                     .where = source.at(size.column),
                     .fix = str("a mesh may have at most ", kMostProcessors, " processors: take smaller axes")});
}

std::vector<Axis> axes_of(std::string_view text) {
  const Source source = mesh_source(text);
  std::vector<Axis> axes;
  for (const Word& word : words_of(source)) {
    const Pair written = pair_of(source, word, "axis", "size");
    check_axis(source, axes, written);
    axes.push_back({written.left.text, number_of(written.right.text)});
  }
  return axes;
}

std::string text_of(const std::vector<Axis>& axes) {
  std::vector<std::string> words;
  for (const Axis& axis : axes) words.push_back(str(axis.name, ":", axis.size));
  return join(words, " ");
}

}  // namespace

// Goes through the text, so that there is one set of checks and errors can point into it.
Mesh::Mesh(std::vector<Axis> axes) : axes_(axes_of(text_of(axes))) {
  internal_check(axes_ == axes, "the name of an axis has a separator in it");
}

Mesh Mesh::parse(std::string_view text) {
  Mesh mesh;
  mesh.axes_ = axes_of(text);
  return mesh;
}

int Mesh::size() const {
  int product = 1;
  for (const Axis& axis : axes_) product *= axis.size;
  return product;
}

int Mesh::size(const Axes& axes) const {
  int product = 1;
  for (int axis : axes) product *= axes_[at(axis)].size;
  return product;
}

int Mesh::find(std::string_view name) const {
  for (std::size_t i = 0; i < axes_.size(); ++i)
    if (axes_[i].name == name) return static_cast<int>(i);
  return -1;
}

std::vector<ProcessorId> Mesh::processors() const { return identity<ProcessorId>(at(size())); }

std::vector<int> Mesh::coordinates(ProcessorId processor) const {
  std::vector<int> coordinates(axes_.size());
  int rest = processor.number();
  for (std::size_t i = axes_.size(); i-- > 0;) {
    coordinates[i] = rest % axes_[i].size;
    rest /= axes_[i].size;
  }
  return coordinates;
}

ProcessorId Mesh::processor(const std::vector<int>& coordinates) const {
  int number = 0;
  for (std::size_t i = 0; i < axes_.size(); ++i) number = number * axes_[i].size + coordinates[i];
  return ProcessorId(number);
}

int Mesh::coordinate(ProcessorId processor, const Axes& axes) const {
  if (axes.empty()) return 0;
  const std::vector<int> all = coordinates(processor);
  int coordinate = 0;
  for (int axis : axes) coordinate = coordinate * axes_[at(axis)].size + all[at(axis)];
  return coordinate;
}

std::vector<ProcessorId> Mesh::group(ProcessorId processor, const Axes& axes) const {
  std::vector<int> member = coordinates(processor);
  std::vector<ProcessorId> members;
  const int count = size(axes);
  for (int rank = 0; rank < count; ++rank) {
    int rest = rank;
    for (std::size_t k = axes.size(); k-- > 0;) {
      const std::size_t i = at(axes[k]);
      member[i] = rest % axes_[i].size;
      rest /= axes_[i].size;
    }
    members.push_back(this->processor(member));
  }
  return members;
}

std::string Mesh::text() const { return text_of(axes_); }

// Errors print "on mesh " and the mesh, so a mesh without axes needs a text too.
std::ostream& operator<<(std::ostream& out, const Mesh& mesh) {
  return out << (mesh.axes().empty() ? "of one processor" : mesh.text());
}

}  // namespace weft
