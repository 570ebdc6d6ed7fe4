// Mesh: the named grid of processors. Layout: the rules that say which dim is split over which axis.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

struct Axis {
  std::string name;
  int size = 1;
  bool operator==(const Axis&) const = default;
};

// Positions of axes in a mesh, major to minor.
using Axes = std::vector<int>;

// Processors are numbered row-major over the axes.
class Mesh {
 public:
  Mesh() = default;  // one processor, no axes
  explicit Mesh(std::vector<Axis> axes);
  // mesh := axis ":" size {sep axis ":" size}; sep := space | ";" | ",". "" is one processor.
  static Mesh parse(std::string_view text);

  const std::vector<Axis>& axes() const { return axes_; }
  int size() const;
  int size(const Axes& axes) const;                   // product of their sizes
  int find(std::string_view name) const;              // position, or -1
  std::vector<int> coordinates(int processor) const;  // one per axis
  int processor(const std::vector<int>& coordinates) const;
  // The coordinate of a processor along a product of axes, major to minor.
  int coordinate(int processor, const Axes& axes) const;
  // The processors that differ from this one only along `axes`, by their coordinate along `axes`.
  std::vector<int> group(int processor, const Axes& axes) const;
  std::string text() const;  // "data:2 model:4"
  bool operator==(const Mesh&) const = default;

 private:
  std::vector<Axis> axes_;
};

std::ostream& operator<<(std::ostream& out, const Mesh& mesh);

// One rule `dim:axis+axis`; no axes means "-": unsplit.
struct LayoutRule {
  std::string dim;
  std::vector<std::string> axes;
  bool optional = false;  // written with '?': may name an absent dim or axis
  bool operator==(const LayoutRule&) const = default;
};

// layout := rule {sep rule}; rule := dim {"," dim} ":" axis {"+" axis} ["?"]; sep := space | ";" | ",".
// A dim laid twice is an error here; names are checked against mesh and graph when compiling.
class Layout {
 public:
  Layout() = default;  // nothing is split
  static Layout parse(std::string_view text);

  const std::vector<LayoutRule>& rules() const { return rules_; }
  const std::string& text() const { return text_; }

 private:
  std::vector<LayoutRule> rules_;
  std::string text_;
};

// How variables are stored from step to step, beyond what the layout says: the layout's grammar, and the rule `*:axis`,
// in which `*` is, for each variable, the first dim whose shard still divides. The axes are minor to the layout's own.
// Level 1 splits the optimizer's state so, 2 gradients too, 3 also the parameters. See docs/storage.md.
class Store {
 public:
  Store() = default;  // level 0: variables lie as the layout says
  // UserError for a text that is no storage layout or a level out of 1 to 3; names are checked when compiling.
  static Store parse(std::string_view text, int level = 1);

  const std::vector<LayoutRule>& rules() const { return rules_; }
  const std::string& text() const { return text_; }
  int level() const { return level_; }

 private:
  std::vector<LayoutRule> rules_;
  std::string text_;
  int level_ = 0;
};

}  // namespace weft
