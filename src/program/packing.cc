#include "program/packing.h"

#include <algorithm>
#include <iterator>

namespace weft {

void Packing::Taken::add(std::int64_t begin, std::int64_t end) {
  auto next = ranges_.upper_bound(begin);
  if (next != ranges_.begin() && std::prev(next)->second >= begin) {
    --next;
    begin = next->first;
  }
  while (next != ranges_.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = ranges_.erase(next);
  }
  ranges_.emplace_hint(next, begin, end);
}

std::int64_t Packing::Taken::past(std::int64_t begin, std::int64_t bytes) const {
  const auto next = ranges_.lower_bound(begin + bytes);  // the first that begins behind the piece
  return next == ranges_.begin() ? begin : std::max(begin, std::prev(next)->second);
}

Packing::Packing(int times) {
  while (leaves_ < times) leaves_ *= 2;
  nodes_.resize(2 * static_cast<std::size_t>(leaves_));
}

template <class Visit>
void Packing::visit(int first, int last, const Visit& visit) {
  const auto from = [&](const auto& self, std::size_t node, int begin, int end) -> void {
    if (end <= first || last < begin) return;
    const bool inside = first <= begin && end - 1 <= last;
    visit(nodes_[node], inside);
    if (inside) return;
    self(self, 2 * node, begin, (begin + end) / 2);
    self(self, 2 * node + 1, (begin + end) / 2, end);
  };
  from(from, 1, 0, leaves_);
}

std::int64_t Packing::place(int first, int last, std::int64_t bytes) {
  std::vector<const Taken*> others;
  visit(first, last, [&](const Node& node, bool inside) { others.push_back(inside ? &node.sometimes : &node.always); });
  std::int64_t offset = 0;
  // Round and round, until none of them is in the way.
  for (std::size_t i = 0, free = 0; free < others.size(); i = (i + 1) % others.size(), ++steps_) {
    const std::int64_t past = others[i]->past(offset, bytes);
    free = past == offset ? free + 1 : 0;
    offset = past;
  }
  if (bytes > 0)
    visit(first, last, [&](Node& node, bool inside) {
      node.sometimes.add(offset, offset + bytes);
      if (inside) node.always.add(offset, offset + bytes);
    });
  return offset;
}

}  // namespace weft
