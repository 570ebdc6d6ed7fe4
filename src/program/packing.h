// Packing: places pieces of memory, so that two pieces that are used at the same time do not overlap.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace weft {

class Packing {
 public:
  // Pieces live at times from 0 to `times` - 1.
  explicit Packing(int times);

  // The lowest offset where a piece that lives from `first` to `last` meets no other; it lies there from now on.
  std::int64_t place(int first, int last, std::int64_t bytes);
  // How often taken ranges have been looked through: what all places took together.
  std::int64_t steps() const { return steps_; }

 private:
  // Ranges of offsets that do not touch each other.
  class Taken {
   public:
    void add(std::int64_t begin, std::int64_t end);
    // The end of the last range that meets the one that begins at `begin`; `begin` itself if none does.
    std::int64_t past(std::int64_t begin, std::int64_t bytes) const;

   private:
    std::map<std::int64_t, std::int64_t> ranges_;  // begin -> end
  };

  // A node of a binary tree stands for some times, its children 2 k and 2 k + 1 for the halves of them.
  struct Node {
    Taken always;     // by pieces that live all through these times but not all through those of the parent
    Taken sometimes;  // by pieces that live at some of these times, as far as this node and those below it know
  };

  // Calls visit(node, whether the piece lives all through its times) for the nodes that decide about the piece.
  template <class Visit>
  void visit(int first, int last, const Visit& visit);

  int leaves_ = 1;
  std::vector<Node> nodes_;  // the root is 1
  std::int64_t steps_ = 0;
};

}  // namespace weft
