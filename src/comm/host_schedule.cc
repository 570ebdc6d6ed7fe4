#include "comm/host_schedule.h"

#include <algorithm>
#include <cstring>

#include "base/index.h"
#include "comm/reduce.h"

namespace weft::comm {

namespace {

void move_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (to != from && bytes > 0) std::memcpy(to, from, bytes);
}

bool reduces(Collective what) { return what == Collective::kAllReduce || what == Collective::kReduceScatter; }

// The bytes that one chunk is part of: a block, or the whole buffer.
std::size_t block_bytes(Collective what, DType dtype, std::size_t count, std::size_t members) {
  const bool in_blocks = what == Collective::kReduceScatter || what == Collective::kAllToAll;
  return count * size_of(dtype) / (in_blocks ? members : 1);
}
std::size_t block_bytes(const Joint& joint) {
  return block_bytes(joint.what, joint.dtype, joint.count, members_of(joint));
}

}  // namespace

HostMap::HostMap(const std::vector<int>& host_of_member, int rank) : rank(rank) {
  std::vector<int> known;
  for (int member = 0; member < static_cast<int>(host_of_member.size()); ++member) {
    const int name = host_of_member[at(member)];
    const auto found = std::find(known.begin(), known.end(), name);
    const int index = static_cast<int>(found - known.begin());
    if (found == known.end()) {
      known.push_back(name);
      members.emplace_back();
    }
    host.push_back(index);
    members[at(index)].push_back(member);
    if (runs.empty() || runs.back().host != index) runs.push_back({.host = index, .first = member, .last = member});
    else runs.back().last = member;
  }
  here = host[at(rank)];
}

// Elements of any dtype do not straddle chunks: a unit is a multiple of 64 bytes.
HostSchedule::Cut HostSchedule::cut(Collective what, DType dtype, std::size_t count) const {
  const std::size_t size = hosts_.host.size(), block = block_bytes(what, dtype, count, size);
  Cut cut;
  cut.unit = kStaging;
  if (reduces(what)) cut.unit = kStaging / leg_size_of(dtype) * size_of(dtype);
  if (what == Collective::kPermute) {
    std::size_t most = 1;
    for (const std::vector<int>& members : hosts_.members) most = std::max(most, members.size());
    cut.unit = std::max(kStaging / most / 64, std::size_t{1}) * 64;
  }
  cut.chunks = (block + cut.unit - 1) / cut.unit;
  const bool once = what == Collective::kAllReduce || what == Collective::kPermute;
  cut.items = cut.chunks * (once ? 1 : size);
  return cut;
}

std::uint32_t HostSchedule::tags(Collective what, DType dtype, std::size_t count) const {
  const std::size_t kinds = what == Collective::kPermute ? hosts_.host.size()
                            : reduces(what)              ? hosts_.runs.size() + 1
                                                         : 1;
  return static_cast<std::uint32_t>(cut(what, dtype, count).items * kinds);
}

std::size_t HostSchedule::items_here(const Joint& joint) const {
  const Cut cut = this->cut(joint);
  if (joint.what != Collective::kAllToAll) return cut.items;
  std::size_t pairs = 0;
  for (const int member : hosts_.local())
    for (int peer = 0; peer < static_cast<int>(members_of(joint)); ++peer)
      pairs += peer >= member || !hosts_.is_here(peer);
  return pairs * cut.chunks;
}

std::size_t HostSchedule::my_items(const Joint& joint) const {
  const Cut cut = this->cut(joint);
  const std::vector<int>& local = hosts_.local();
  const std::size_t mine = at(std::find(local.begin(), local.end(), hosts_.rank) - local.begin());
  if (joint.what != Collective::kAllToAll) return (cut.items + local.size() - 1 - mine) / local.size();
  std::size_t pairs = 0;
  for (int peer = 0; peer < static_cast<int>(members_of(joint)); ++peer)
    pairs += peer >= hosts_.rank || !hosts_.is_here(peer);
  return pairs * cut.chunks;
}

void HostSchedule::actions(const Joint& joint, std::size_t k, std::byte* staging, std::vector<Action>& actions) const {
  actions.clear();
  if (joint.what == Collective::kAllToAll) return exchange_actions(joint, k, staging, actions);
  const std::vector<int>& local = hosts_.local();
  const std::size_t mine = at(std::find(local.begin(), local.end(), hosts_.rank) - local.begin());
  const std::size_t item = k * local.size() + mine;
  if (joint.what == Collective::kAllGather) return gather_actions(joint, item, actions);
  if (joint.what == Collective::kPermute) return permute_actions(joint, item, staging, actions);
  reduce_actions(joint, item, staging, actions);
}

void HostSchedule::reduce_actions(const Joint& joint, std::size_t item, std::byte* staging,
                                  std::vector<Action>& actions) const {
  const Cut cut = this->cut(joint);
  const std::size_t block = block_bytes(joint), chunk = item % cut.chunks;
  const std::size_t begin = chunk * cut.unit, bytes = std::min(cut.unit, block - begin);
  const std::size_t offset = item / cut.chunks * block + begin,
                    passed = bytes / size_of(joint.dtype) * leg_size_of(joint.dtype);
  const std::size_t kinds = hosts_.runs.size() + 1;
  const auto tag = [&](std::size_t kind) { return static_cast<std::uint32_t>(item * kinds + kind); };
  for (std::size_t run = 0; run < hosts_.runs.size(); ++run) {
    if (hosts_.runs[run].host != hosts_.here) continue;
    const int number = static_cast<int>(run);
    if (run > 0) {
      if (!actions.empty()) actions.push_back({.kind = Action::Kind::kSettle});
      actions.push_back({.kind = Action::Kind::kReceive,
                         .peer = hosts_.handler(hosts_.runs[run - 1].host, item),
                         .tag = tag(run),
                         .data = staging,
                         .bytes = passed});
    }
    if (run + 1 == hosts_.runs.size()) {
      actions.push_back({.kind = Action::Kind::kFinish, .bytes = bytes, .at = offset, .where = begin, .run = number});
      actions.back().peer = joint.what == Collective::kReduceScatter ? static_cast<int>(item / cut.chunks) : -1;
      continue;
    }
    actions.push_back({.kind = Action::Kind::kFold, .bytes = bytes, .at = offset, .run = number});
    actions.push_back({.kind = Action::Kind::kSend,
                       .peer = hosts_.handler(hosts_.runs[run + 1].host, item),
                       .tag = tag(run + 1),
                       .data = staging,
                       .bytes = passed});
  }
  result_actions(joint, item, begin, bytes, staging, actions);
}

// The result of an all_reduce goes from the last run's host to the next lower one, and so on round all of them; that of
// a reduce_scatter straight to the host that wants it.
void HostSchedule::result_actions(const Joint& joint, std::size_t item, std::size_t offset, std::size_t bytes,
                                  std::byte* staging, std::vector<Action>& actions) const {
  const int hosts = hosts_.hosts(), last = hosts_.runs.back().host, here = hosts_.here;
  const std::size_t kinds = hosts_.runs.size() + 1;
  const std::uint32_t tag = static_cast<std::uint32_t>(item * kinds + kinds - 1);
  const auto message = [&](Action::Kind kind, int host, std::byte* data) {
    actions.push_back({.kind = kind, .peer = hosts_.handler(host, item), .tag = tag, .data = data, .bytes = bytes});
  };
  if (joint.what == Collective::kReduceScatter) {
    const int owner = static_cast<int>(item / cut(joint).chunks), home = hosts_.host[at(owner)];
    if (home == last) return;
    if (here == last) message(Action::Kind::kSend, home, staging);
    if (here != home) return;
    actions.push_back({.kind = Action::Kind::kSettle});
    message(Action::Kind::kReceive, last, staging);
    actions.push_back({.kind = Action::Kind::kUnstage, .peer = owner, .bytes = bytes, .where = offset});
    return;
  }
  std::byte* mine = joint.out[at(hosts_.rank)] + offset;
  const int before = (here + 1) % hosts, next = (here + hosts - 1) % hosts;
  if (here != last) {
    message(Action::Kind::kReceive, before, mine);
    actions.push_back({.kind = Action::Kind::kSpread, .bytes = bytes, .where = offset});
  }
  if (next != last) message(Action::Kind::kSend, next, mine);
}

void HostSchedule::gather_actions(const Joint& joint, std::size_t item, std::vector<Action>& actions) const {
  const Cut cut = this->cut(joint);
  const std::size_t block = block_bytes(joint), from = item / cut.chunks, begin = item % cut.chunks * cut.unit;
  const std::size_t bytes = std::min(cut.unit, block - begin), where = from * block + begin;
  const int home = hosts_.host[from];
  const std::uint32_t tag = static_cast<std::uint32_t>(item);
  if (home != hosts_.here) {
    actions.push_back({.kind = Action::Kind::kReceive,
                       .peer = hosts_.handler(home, item),
                       .tag = tag,
                       .data = joint.out[at(hosts_.rank)] + where,
                       .bytes = bytes});
    actions.push_back({.kind = Action::Kind::kSpread, .bytes = bytes, .where = where});
    return;
  }
  actions.push_back(
      {.kind = Action::Kind::kGather, .peer = static_cast<int>(from), .bytes = bytes, .at = begin, .where = where});
  for (int host = 0; host < hosts_.hosts(); ++host)
    if (host != home)
      actions.push_back({.kind = Action::Kind::kSend,
                         .peer = hosts_.handler(host, item),
                         .tag = tag,
                         .data = const_cast<std::byte*>(joint.in[from]) + begin,
                         .bytes = bytes});
}

// Copies the outgoing data before it overwrites anything, and asks for the incoming data after that.
void HostSchedule::permute_actions(const Joint& joint, std::size_t item, std::byte* staging,
                                   std::vector<Action>& actions) const {
  const Cut cut = this->cut(joint);
  const std::size_t begin = item * cut.unit, bytes = std::min(cut.unit, in_bytes(joint) - begin),
                    size = members_of(joint);
  const auto tag = [&](std::size_t target) { return static_cast<std::uint32_t>(item * size + target); };
  std::size_t staged = 0;
  for (std::size_t target = 0; target < size; ++target) {
    const int source = joint.source[target];
    if (source < 0 || !hosts_.is_here(source) || hosts_.is_here(static_cast<int>(target))) continue;
    actions.push_back({.kind = Action::Kind::kStage, .peer = source, .bytes = bytes, .at = begin, .where = staged});
    staged += cut.unit;
  }
  actions.push_back({.kind = Action::Kind::kPermute, .bytes = bytes, .at = begin});
  staged = 0;
  for (std::size_t target = 0; target < size; ++target) {
    const int source = joint.source[target], home = hosts_.host[target];
    if (source < 0 || hosts_.is_here(source) == (home == hosts_.here)) continue;
    const bool leaves = hosts_.is_here(source);
    if (!leaves && home != hosts_.here) continue;
    const int other = leaves ? home : hosts_.host[at(source)];
    actions.push_back({.kind = leaves ? Action::Kind::kSend : Action::Kind::kReceive,
                       .peer = hosts_.handler(other, item),
                       .tag = tag(target),
                       .data = leaves ? staging + staged : joint.out[target] + begin,
                       .bytes = bytes});
    if (leaves) staged += cut.unit;
  }
}

// My k-th item: a chunk of what I exchange with one peer. Between hosts the members talk directly.
void HostSchedule::exchange_actions(const Joint& joint, std::size_t k, std::byte* staging,
                                    std::vector<Action>& actions) const {
  const Cut cut = this->cut(joint);
  const std::size_t block = block_bytes(joint), chunk = k % cut.chunks;
  const std::size_t begin = chunk * cut.unit, bytes = std::min(cut.unit, block - begin);
  const int me = hosts_.rank;
  int peer = 0;
  for (std::size_t skip = k / cut.chunks;; ++peer) {
    if (peer < me && hosts_.is_here(peer)) continue;
    if (skip-- == 0) break;
  }
  if (hosts_.is_here(peer)) {
    actions.push_back({.kind = Action::Kind::kExchange, .peer = peer, .bytes = bytes, .at = begin});
    return;
  }
  const std::size_t mine = at(peer) * block + begin;
  const auto tag = [&](int from) { return static_cast<std::uint32_t>(at(from) * cut.chunks + chunk); };
  actions.push_back({.kind = Action::Kind::kStage, .peer = me, .bytes = bytes, .at = mine});
  actions.push_back({.kind = Action::Kind::kSend, .peer = peer, .tag = tag(me), .data = staging, .bytes = bytes});
  actions.push_back({.kind = Action::Kind::kReceive,
                     .peer = peer,
                     .tag = tag(peer),
                     .data = joint.out[at(me)] + mine,
                     .bytes = bytes});
}

// The permutation as the members of this host see it: what comes from others is left alone.
void HostSchedule::permute_here(const Joint& joint, const Action& action, Pointers& pointers) {
  const std::vector<int>& local = hosts_.local();
  for (std::size_t i = 0; i < local.size(); ++i) {
    const std::size_t member = at(local[i]);
    const int from = joint.source[member];
    pointers.in[i] = joint.in[member];
    pointers.out[i] = joint.out[member];
    source_[i] = from;
    if (from >= 0 && !hosts_.is_here(from)) source_[i] = kElsewhere;
    else if (from >= 0) source_[i] = static_cast<int>(std::find(local.begin(), local.end(), from) - local.begin());
  }
  Joint here = joint;
  here.in = std::span(pointers.in).first(local.size());
  here.out = std::span(pointers.out).first(local.size());
  here.source = source_;
  run_permute(here, action.at, action.at + action.bytes);
}

void HostSchedule::work(const Joint& joint, const Action& action, std::byte* staging, Pointers& pointers) {
  const std::vector<int>& local = hosts_.local();
  const std::byte* mine = joint.out[at(hosts_.rank)];
  switch (action.kind) {
    case Action::Kind::kFold:
    case Action::Kind::kFinish: {
      const HostMap::Run& run = hosts_.runs[at(action.run)];
      const std::size_t sources = at(run.last - run.first + 1);
      for (std::size_t i = 0; i < sources; ++i) pointers.in[i] = joint.in[at(run.first) + i] + action.at;
      std::size_t targets = 0;
      const bool last = action.kind == Action::Kind::kFinish, scatter = action.peer >= 0;
      if (last && scatter && !hosts_.is_here(action.peer)) pointers.out[targets++] = staging;
      else if (last && scatter) pointers.out[targets++] = joint.out[at(action.peer)] + action.where;
      else if (last)
        for (const int member : local) pointers.out[targets++] = joint.out[at(member)] + action.where;
      return reduce_leg(joint.dtype, joint.reduce, action.run == 0 ? nullptr : staging,
                        std::span(pointers.in).first(sources), last ? nullptr : staging,
                        std::span(pointers.out).first(targets), action.bytes / size_of(joint.dtype));
    }
    case Action::Kind::kSpread:
      for (const int member : local)
        move_bytes(joint.out[at(member)] + action.where, mine + action.where, action.bytes);
      return;
    case Action::Kind::kGather:
      for (const int member : local)
        move_bytes(joint.out[at(member)] + action.where, joint.in[at(action.peer)] + action.at, action.bytes);
      return;
    case Action::Kind::kStage:
      return move_bytes(staging + action.where, joint.in[at(action.peer)] + action.at, action.bytes);
    case Action::Kind::kUnstage: return move_bytes(joint.out[at(action.peer)] + action.where, staging, action.bytes);
    case Action::Kind::kPermute: return permute_here(joint, action, pointers);
    case Action::Kind::kExchange:
      return run_exchange(joint, at(hosts_.rank), at(action.peer), action.at, action.at + action.bytes);
    default: return;
  }
}

}  // namespace weft::comm
