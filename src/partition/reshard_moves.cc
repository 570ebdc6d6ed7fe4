#include "partition/reshard_moves.h"

#include <algorithm>
#include <map>

#include "weft/error.h"

namespace weft {

namespace {

bool contains(const Axes& axes, int axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }

// Every non-empty selection of `axes` in every order.
void add_selections(const Axes& axes, Axes& chosen, std::vector<Axes>& result) {
  for (int axis : axes) {
    if (contains(chosen, axis)) continue;
    chosen.push_back(axis);
    result.push_back(chosen);
    add_selections(axes, chosen, result);
    chosen.pop_back();
  }
}

std::vector<Axes> ordered_selections(const Axes& axes) {
  std::vector<Axes> result;
  Axes chosen;
  add_selections(axes, chosen, result);
  return result;
}

Axes sorted(Axes axes) {
  std::sort(axes.begin(), axes.end());
  return axes;
}

// `axes` without its last `count`, and these last `count`.
Axes major_of(const Axes& axes, std::size_t count) { return {axes.begin(), axes.end() - static_cast<int>(count)}; }
Axes minor_of(const Axes& axes, std::size_t count) { return {axes.end() - static_cast<int>(count), axes.end()}; }

void settle(Sharding& sharding, const Axes& reduced) {
  std::erase_if(sharding.partial, [&](int axis) { return contains(reduced, axis); });
  if (sharding.partial.empty()) sharding.pending = Reduce::kSum;
}

// Removes the common major and minor axes of two different lists of equal product.
void trim(Axes& a, Axes& b) {
  while (!a.empty() && !b.empty() && a.back() == b.back()) {
    a.pop_back();
    b.pop_back();
  }
  while (!a.empty() && !b.empty() && a.front() == b.front()) {
    a.erase(a.begin());
    b.erase(b.begin());
  }
}

// The number, row-major, of the block that a processor holds of dims split over `lists`.
int block_number(ProcessorId processor, const std::vector<Axes>& lists, const Mesh& mesh) {
  int number = 0;
  for (const Axes& axes : lists) number = number * mesh.size(axes) + mesh.coordinate(processor, axes);
  return number;
}

std::int64_t divided_up(std::int64_t number, std::int64_t by) { return (number + by - 1) / by; }

}  // namespace

Moves::Moves(const Shape& global, DType dtype, const Mesh& mesh, const Sharding& have, const Sharding& want)
    : global_(global), mesh_(mesh), element_bytes_(static_cast<std::int64_t>(size_of(dtype))) {
  for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis)
    if (have.uses(axis) || want.uses(axis)) axes_.push_back(axis);
  for (int axis : have.partial)
    if (!contains(want.partial, axis)) reducible_.push_back(axis);
}

std::int64_t Moves::local_elements(const Sharding& sharding) const {
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < global_.rank(); ++i) elements *= global_[i].size / mesh_.size(sharding.dims[i]);
  return elements;
}

bool Moves::splits_evenly(const Sharding& sharding, std::size_t dim) const {
  return global_[dim].size % mesh_.size(sharding.dims[dim]) == 0;
}

Axes Moves::unused(const Sharding& sharding) const {
  Axes free;
  for (int axis : axes_)
    if (!sharding.uses(axis)) free.push_back(axis);
  return free;
}

std::vector<Move> Moves::from(const Sharding& sharding) const {
  std::vector<Move> moves;
  add_shards(sharding, moves);
  add_gathers(sharding, moves);
  add_reductions(sharding, moves);
  add_permutes(sharding, moves);
  return moves;
}

void Moves::add_shards(const Sharding& from, std::vector<Move>& moves) const {
  for (const Axes& axes : ordered_selections(unused(from)))
    for (std::size_t dim = 0; dim < global_.rank(); ++dim) {
      Sharding to = from;
      append(to.dims[dim], axes);
      if (splits_evenly(to, dim)) moves.push_back({Shard{global_[dim].name, axes}, 0, to});
    }
}

void Moves::add_gathers(const Sharding& from, std::vector<Move>& moves) const {
  const std::int64_t local = local_elements(from) * element_bytes_;
  for (std::size_t dim = 0; dim < global_.rank(); ++dim)
    for (std::size_t count = 1; count <= from.dims[dim].size(); ++count) {
      const Axes axes = minor_of(from.dims[dim], count);
      const std::int64_t n = mesh_.size(axes);
      Sharding gathered = from;
      gathered.dims[dim] = major_of(from.dims[dim], count);
      moves.push_back({AllGather{global_[dim].name, axes}, local * (n - 1), gathered});
      for (std::size_t other = 0; other < global_.rank(); ++other) {
        Sharding to = gathered;
        append(to.dims[other], axes);
        if (other != dim && splits_evenly(to, other))
          moves.push_back({AllToAll{global_[other].name, global_[dim].name, axes}, local / n * (n - 1), to});
      }
    }
}

void Moves::add_reductions(const Sharding& from, std::vector<Move>& moves) const {
  const std::int64_t local = local_elements(from) * element_bytes_;
  Axes pending = reducible_;
  std::erase_if(pending, [&](int axis) { return !contains(from.partial, axis); });
  for (const Axes& axes : ordered_selections(pending)) {
    const std::int64_t n = mesh_.size(axes);
    Sharding reduced = from;
    settle(reduced, axes);
    if (axes == sorted(axes))
      moves.push_back({AllReduce{from.pending, axes}, divided_up(2 * local * (n - 1), n), reduced});
    for (std::size_t dim = 0; dim < global_.rank(); ++dim) {
      Sharding to = reduced;
      append(to.dims[dim], axes);
      if (splits_evenly(to, dim))
        moves.push_back({ReduceScatter{from.pending, global_[dim].name, axes}, local / n * (n - 1), to});
    }
  }
}

void Moves::add_permutes(const Sharding& from, std::vector<Move>& moves) const {
  Sharding to = from;
  for (Axes& axes : to.dims) axes.clear();
  add_permutes(from, to, 0, moves);
}

// `to` is final for the dims before `dim`; tries every list of the same product for `dim`.
void Moves::add_permutes(const Sharding& from, Sharding& to, std::size_t dim, std::vector<Move>& moves) const {
  if (dim == global_.rank()) {
    if (!(to == from)) moves.push_back({Permute{}, local_elements(from) * element_bytes_, to});
    return;
  }
  const int parts = mesh_.size(from.dims[dim]);
  if (parts == 1) return add_permutes(from, to, dim + 1, moves);
  for (const Axes& axes : ordered_selections(unused(to))) {
    if (mesh_.size(axes) != parts) continue;
    to.dims[dim] = axes;
    add_permutes(from, to, dim + 1, moves);
    to.dims[dim].clear();
  }
}

// Both shardings cut the value into the same blocks and hold each on equally many processors, so there is a one-to-one
// map from holders to future holders. A processor that already holds the right block does not take part.
Operation Moves::completed(const Move& move, const Sharding& from) const {
  if (!std::holds_alternative<Permute>(move.operation)) return move.operation;
  Axes group_axes;
  std::vector<Axes> before, after;
  for (std::size_t dim = 0; dim < global_.rank(); ++dim) {
    Axes old_axes = from.dims[dim], new_axes = move.to.dims[dim];
    trim(old_axes, new_axes);
    for (const Axes& axes : {old_axes, new_axes})
      for (int axis : axes)
        if (!contains(group_axes, axis)) group_axes.push_back(axis);
    before.push_back(old_axes);
    after.push_back(new_axes);
  }
  std::sort(group_axes.begin(), group_axes.end());

  // The blocks that the ranks hold, and the blocks that they will hold.
  std::vector<int> held, wanted;
  for (ProcessorId processor : mesh_.group(ProcessorId(0), group_axes)) {
    held.push_back(block_number(processor, before, mesh_));
    wanted.push_back(block_number(processor, after, mesh_));
  }
  std::vector<std::int64_t> to(held.size(), -1);
  std::map<int, std::vector<std::size_t>> waiting;  // block -> ranks without it, descending
  for (std::size_t rank = held.size(); rank-- > 0;)
    if (held[rank] == wanted[rank]) to[rank] = static_cast<std::int64_t>(rank);
    else waiting[wanted[rank]].push_back(rank);
  for (std::size_t rank = 0; rank < held.size(); ++rank) {
    if (to[rank] >= 0) continue;
    std::vector<std::size_t>& takers = waiting[held[rank]];
    internal_check(!takers.empty(), "a permute between shardings with unlike blocks");
    to[rank] = static_cast<std::int64_t>(takers.back());
    takers.pop_back();
  }
  return Permute{group_axes, to};
}

}  // namespace weft
