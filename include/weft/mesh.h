// Mesh: the named grid of processors. Layout: the rules that say which dim is split over which axis.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "weft/id.h"

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
  std::vector<ProcessorId> processors() const;                // all, ascending
  int size(const Axes& axes) const;                           // product of their sizes
  int find(std::string_view name) const;                      // position, or -1
  std::vector<int> coordinates(ProcessorId processor) const;  // one per axis
  ProcessorId processor(const std::vector<int>& coordinates) const;
  // The coordinate of a processor along a product of axes, major to minor.
  int coordinate(ProcessorId processor, const Axes& axes) const;
  // The processors that differ from this processor only along `axes`, ordered by their coordinate along `axes`.
  std::vector<ProcessorId> group(ProcessorId processor, const Axes& axes) const;
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
  bool optional = false;  // written with '?': the dim or axis may be absent
  bool operator==(const LayoutRule&) const = default;
};

// layout := rule {sep rule}; rule := dim {"," dim} ":" axis {"+" axis} ["?"]; sep := space | ";" | ",".
// Two rules for one dim are an error here; compile checks the names against mesh and graph.
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

// How variables are split between steps, in addition to the layout. The grammar is that of layouts, plus the rule
// `*:axis`: `*` is, for each variable, the first dim whose shard still divides. The axes are minor to the layout's
// axes. Level 1 splits the optimizer's state, level 2 also gradients, level 3 also the parameters. See docs/storage.md.
class Store {
 public:
  Store() = default;  // level 0: variables have the sharding of the layout
  // UserError for an invalid text or a level outside 1 to 3; compile checks the names.
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
