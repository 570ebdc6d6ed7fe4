#include "comm/itinerary.h"

#include <algorithm>
#include <cstring>

#include "comm/reduce.h"

namespace weft::comm {

namespace {

std::size_t as_size(int n) { return static_cast<std::size_t>(n); }

void move_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (to != from && bytes > 0) std::memcpy(to, from, bytes);
}

bool reduces(Collective what) { return what == Collective::kAllReduce || what == Collective::kReduceScatter; }

std::size_t members_of(const Joint& joint) { return joint.in.size(); }
std::size_t in_bytes(const Joint& joint) { return joint.count * size_of(joint.dtype); }

// The bytes that one chunk is part of: a block, or the whole buffer.
std::size_t block_bytes(Collective what, DType dtype, std::size_t count, std::size_t members) {
  const bool in_blocks = what == Collective::kReduceScatter || what == Collective::kAllToAll;
  return count * size_of(dtype) / (in_blocks ? members : 1);
}
std::size_t block_bytes(const Joint& joint) {
  return block_bytes(joint.what, joint.dtype, joint.count, members_of(joint));
}

}  // namespace

Geography::Geography(const std::vector<int>& host_of_member, int rank) : rank(rank) {
  std::vector<int> known;
  for (int member = 0; member < static_cast<int>(host_of_member.size()); ++member) {
    const int name = host_of_member[as_size(member)];
    const auto found = std::find(known.begin(), known.end(), name);
    const int index = static_cast<int>(found - known.begin());
    if (found == known.end()) {
      known.push_back(name);
      members.emplace_back();
    }
    host.push_back(index);
    members[as_size(index)].push_back(member);
    if (runs.empty() || runs.back().host != index) runs.push_back({.host = index, .first = member, .last = member});
    else runs.back().last = member;
  }
  here = host[as_size(rank)];
}

// Elements of any dtype do not straddle chunks: a unit is a multiple of 64 bytes.
Itinerary::Cut Itinerary::cut(Collective what, DType dtype, std::size_t count) const {
  const std::size_t size = geography_.host.size(), block = block_bytes(what, dtype, count, size);
  Cut cut;
  cut.unit = kStaging;
  if (reduces(what)) cut.unit = kStaging / leg_size_of(dtype) * size_of(dtype);
  if (what == Collective::kPermute) {
    std::size_t most = 1;
    for (const std::vector<int>& members : geography_.members) most = std::max(most, members.size());
    cut.unit = std::max(kStaging / most / 64, std::size_t{1}) * 64;
  }
  cut.chunks = (block + cut.unit - 1) / cut.unit;
  const bool once = what == Collective::kAllReduce || what == Collective::kPermute;
  cut.items = cut.chunks * (once ? 1 : size);
  return cut;
}

std::uint32_t Itinerary::tags(Collective what, DType dtype, std::size_t count) const {
  const std::size_t kinds = what == Collective::kPermute ? geography_.host.size()
                            : reduces(what)              ? geography_.runs.size() + 1
                                                         : 1;
  return static_cast<std::uint32_t>(cut(what, dtype, count).items * kinds);
}

std::size_t Itinerary::items_here(const Joint& joint) const {
  const Cut cut = this->cut(joint);
  if (joint.what != Collective::kAllToAll) return cut.items;
  std::size_t pairs = 0;
  for (const int member : geography_.local())
    for (int peer = 0; peer < static_cast<int>(members_of(joint)); ++peer)
      pairs += peer >= member || !geography_.is_here(peer);
  return pairs * cut.chunks;
}

std::size_t Itinerary::my_items(const Joint& joint) const {
  const Cut cut = this->cut(joint);
  const std::vector<int>& local = geography_.local();
  const std::size_t mine =
      as_size(static_cast<int>(std::find(local.begin(), local.end(), geography_.rank) - local.begin()));
  if (joint.what != Collective::kAllToAll) return (cut.items + local.size() - 1 - mine) / local.size();
  std::size_t pairs = 0;
  for (int peer = 0; peer < static_cast<int>(members_of(joint)); ++peer)
    pairs += peer >= geography_.rank || !geography_.is_here(peer);
  return pairs * cut.chunks;
}

void Itinerary::steps(const Joint& joint, std::size_t k, std::byte* staging, std::vector<Step>& steps) const {
  steps.clear();
  if (joint.what == Collective::kAllToAll) return exchange_steps(joint, k, staging, steps);
  const std::vector<int>& local = geography_.local();
  const std::size_t mine =
      as_size(static_cast<int>(std::find(local.begin(), local.end(), geography_.rank) - local.begin()));
  const std::size_t item = k * local.size() + mine;
  if (joint.what == Collective::kAllGather) return gather_steps(joint, item, steps);
  if (joint.what == Collective::kPermute) return permute_steps(joint, item, staging, steps);
  reduce_steps(joint, item, staging, steps);
}

void Itinerary::reduce_steps(const Joint& joint, std::size_t item, std::byte* staging, std::vector<Step>& steps) const {
  const Cut cut = this->cut(joint);
  const std::size_t block = block_bytes(joint), chunk = item % cut.chunks;
  const std::size_t begin = chunk * cut.unit, bytes = std::min(cut.unit, block - begin);
  const std::size_t at = item / cut.chunks * block + begin,
                    passed = bytes / size_of(joint.dtype) * leg_size_of(joint.dtype);
  const std::size_t kinds = geography_.runs.size() + 1;
  const auto tag = [&](std::size_t kind) { return static_cast<std::uint32_t>(item * kinds + kind); };
  for (std::size_t run = 0; run < geography_.runs.size(); ++run) {
    if (geography_.runs[run].host != geography_.here) continue;
    const int number = static_cast<int>(run);
    if (run > 0) {
      if (!steps.empty()) steps.push_back({.kind = Step::Kind::kSettle});
      steps.push_back({.kind = Step::Kind::kReceive,
                       .peer = geography_.handler(geography_.runs[run - 1].host, item),
                       .tag = tag(run),
                       .data = staging,
                       .bytes = passed});
    }
    if (run + 1 == geography_.runs.size()) {
      steps.push_back({.kind = Step::Kind::kFinish, .bytes = bytes, .at = at, .where = begin, .run = number});
      steps.back().peer = joint.what == Collective::kReduceScatter ? static_cast<int>(item / cut.chunks) : -1;
      continue;
    }
    steps.push_back({.kind = Step::Kind::kFold, .bytes = bytes, .at = at, .run = number});
    steps.push_back({.kind = Step::Kind::kSend,
                     .peer = geography_.handler(geography_.runs[run + 1].host, item),
                     .tag = tag(run + 1),
                     .data = staging,
                     .bytes = passed});
  }
  result_steps(joint, item, begin, bytes, staging, steps);
}

// The result of an all_reduce goes from the last run's host to the next lower one, and so on round all of them; that of
// a reduce_scatter straight to the host that wants it.
void Itinerary::result_steps(const Joint& joint, std::size_t item, std::size_t at, std::size_t bytes,
                             std::byte* staging, std::vector<Step>& steps) const {
  const int hosts = geography_.hosts(), last = geography_.runs.back().host, here = geography_.here;
  const std::size_t kinds = geography_.runs.size() + 1;
  const std::uint32_t tag = static_cast<std::uint32_t>(item * kinds + kinds - 1);
  const auto message = [&](Step::Kind kind, int host, std::byte* data) {
    steps.push_back({.kind = kind, .peer = geography_.handler(host, item), .tag = tag, .data = data, .bytes = bytes});
  };
  if (joint.what == Collective::kReduceScatter) {
    const int owner = static_cast<int>(item / cut(joint).chunks), home = geography_.host[as_size(owner)];
    if (home == last) return;
    if (here == last) message(Step::Kind::kSend, home, staging);
    if (here != home) return;
    steps.push_back({.kind = Step::Kind::kSettle});
    message(Step::Kind::kReceive, last, staging);
    steps.push_back({.kind = Step::Kind::kUnstage, .peer = owner, .bytes = bytes, .where = at});
    return;
  }
  std::byte* mine = joint.out[as_size(geography_.rank)] + at;
  const int before = (here + 1) % hosts, next = (here + hosts - 1) % hosts;
  if (here != last) {
    message(Step::Kind::kReceive, before, mine);
    steps.push_back({.kind = Step::Kind::kSpread, .bytes = bytes, .where = at});
  }
  if (next != last) message(Step::Kind::kSend, next, mine);
}

void Itinerary::gather_steps(const Joint& joint, std::size_t item, std::vector<Step>& steps) const {
  const Cut cut = this->cut(joint);
  const std::size_t block = block_bytes(joint), from = item / cut.chunks, begin = item % cut.chunks * cut.unit;
  const std::size_t bytes = std::min(cut.unit, block - begin), where = from * block + begin;
  const int home = geography_.host[from];
  const std::uint32_t tag = static_cast<std::uint32_t>(item);
  if (home != geography_.here) {
    steps.push_back({.kind = Step::Kind::kReceive,
                     .peer = geography_.handler(home, item),
                     .tag = tag,
                     .data = joint.out[as_size(geography_.rank)] + where,
                     .bytes = bytes});
    steps.push_back({.kind = Step::Kind::kSpread, .bytes = bytes, .where = where});
    return;
  }
  steps.push_back(
      {.kind = Step::Kind::kGather, .peer = static_cast<int>(from), .bytes = bytes, .at = begin, .where = where});
  for (int host = 0; host < geography_.hosts(); ++host)
    if (host != home)
      steps.push_back({.kind = Step::Kind::kSend,
                       .peer = geography_.handler(host, item),
                       .tag = tag,
                       .data = const_cast<std::byte*>(joint.in[from]) + begin,
                       .bytes = bytes});
}

// What leaves is copied before anything is overwritten; what comes is asked for after that.
void Itinerary::permute_steps(const Joint& joint, std::size_t item, std::byte* staging,
                              std::vector<Step>& steps) const {
  const Cut cut = this->cut(joint);
  const std::size_t begin = item * cut.unit, bytes = std::min(cut.unit, in_bytes(joint) - begin),
                    size = members_of(joint);
  const auto tag = [&](std::size_t target) { return static_cast<std::uint32_t>(item * size + target); };
  std::size_t staged = 0;
  for (std::size_t target = 0; target < size; ++target) {
    const int source = joint.source[target];
    if (source < 0 || !geography_.is_here(source) || geography_.is_here(static_cast<int>(target))) continue;
    steps.push_back({.kind = Step::Kind::kStage, .peer = source, .bytes = bytes, .at = begin, .where = staged});
    staged += cut.unit;
  }
  steps.push_back({.kind = Step::Kind::kPermute, .bytes = bytes, .at = begin});
  staged = 0;
  for (std::size_t target = 0; target < size; ++target) {
    const int source = joint.source[target], home = geography_.host[target];
    if (source < 0 || geography_.is_here(source) == (home == geography_.here)) continue;
    const bool leaves = geography_.is_here(source);
    if (!leaves && home != geography_.here) continue;
    const int other = leaves ? home : geography_.host[as_size(source)];
    steps.push_back({.kind = leaves ? Step::Kind::kSend : Step::Kind::kReceive,
                     .peer = geography_.handler(other, item),
                     .tag = tag(target),
                     .data = leaves ? staging + staged : joint.out[target] + begin,
                     .bytes = bytes});
    if (leaves) staged += cut.unit;
  }
}

// My k-th item: a chunk of what I exchange with one peer. Between hosts the members talk directly.
void Itinerary::exchange_steps(const Joint& joint, std::size_t k, std::byte* staging, std::vector<Step>& steps) const {
  const Cut cut = this->cut(joint);
  const std::size_t block = block_bytes(joint), chunk = k % cut.chunks;
  const std::size_t begin = chunk * cut.unit, bytes = std::min(cut.unit, block - begin);
  const int me = geography_.rank;
  int peer = 0;
  for (std::size_t skip = k / cut.chunks;; ++peer) {
    if (peer < me && geography_.is_here(peer)) continue;
    if (skip-- == 0) break;
  }
  if (geography_.is_here(peer)) {
    steps.push_back({.kind = Step::Kind::kExchange, .peer = peer, .bytes = bytes, .at = begin});
    return;
  }
  const std::size_t mine = as_size(peer) * block + begin;
  const auto tag = [&](int from) { return static_cast<std::uint32_t>(as_size(from) * cut.chunks + chunk); };
  steps.push_back({.kind = Step::Kind::kStage, .peer = me, .bytes = bytes, .at = mine});
  steps.push_back({.kind = Step::Kind::kSend, .peer = peer, .tag = tag(me), .data = staging, .bytes = bytes});
  steps.push_back({.kind = Step::Kind::kReceive,
                   .peer = peer,
                   .tag = tag(peer),
                   .data = joint.out[as_size(me)] + mine,
                   .bytes = bytes});
}

// The permutation as the members of this host see it: what comes from others is left alone.
void Itinerary::permute_here(const Joint& joint, const Step& step, Pointers& pointers) {
  const std::vector<int>& local = geography_.local();
  for (std::size_t i = 0; i < local.size(); ++i) {
    const std::size_t member = as_size(local[i]);
    const int from = joint.source[member];
    pointers.in[i] = joint.in[member];
    pointers.out[i] = joint.out[member];
    source_[i] = from;
    if (from >= 0 && !geography_.is_here(from)) source_[i] = kElsewhere;
    else if (from >= 0) source_[i] = static_cast<int>(std::find(local.begin(), local.end(), from) - local.begin());
  }
  Joint here = joint;
  here.in = std::span(pointers.in).first(local.size());
  here.out = std::span(pointers.out).first(local.size());
  here.source = source_;
  run_permute(here, step.at, step.at + step.bytes);
}

void Itinerary::work(const Joint& joint, const Step& step, std::byte* staging, Pointers& pointers) {
  const std::vector<int>& local = geography_.local();
  const std::byte* mine = joint.out[as_size(geography_.rank)];
  switch (step.kind) {
    case Step::Kind::kFold:
    case Step::Kind::kFinish: {
      const Geography::Run& run = geography_.runs[as_size(step.run)];
      const std::size_t sources = as_size(run.last - run.first + 1);
      for (std::size_t i = 0; i < sources; ++i) pointers.in[i] = joint.in[as_size(run.first) + i] + step.at;
      std::size_t targets = 0;
      const bool last = step.kind == Step::Kind::kFinish, scatter = step.peer >= 0;
      if (last && scatter && !geography_.is_here(step.peer)) pointers.out[targets++] = staging;
      else if (last && scatter) pointers.out[targets++] = joint.out[as_size(step.peer)] + step.where;
      else if (last)
        for (const int member : local) pointers.out[targets++] = joint.out[as_size(member)] + step.where;
      return reduce_leg(joint.dtype, joint.reduce, step.run == 0 ? nullptr : staging,
                        std::span(pointers.in).first(sources), last ? nullptr : staging,
                        std::span(pointers.out).first(targets), step.bytes / size_of(joint.dtype));
    }
    case Step::Kind::kSpread:
      for (const int member : local) move_bytes(joint.out[as_size(member)] + step.where, mine + step.where, step.bytes);
      return;
    case Step::Kind::kGather:
      for (const int member : local)
        move_bytes(joint.out[as_size(member)] + step.where, joint.in[as_size(step.peer)] + step.at, step.bytes);
      return;
    case Step::Kind::kStage:
      return move_bytes(staging + step.where, joint.in[as_size(step.peer)] + step.at, step.bytes);
    case Step::Kind::kUnstage: return move_bytes(joint.out[as_size(step.peer)] + step.where, staging, step.bytes);
    case Step::Kind::kPermute: return permute_here(joint, step, pointers);
    case Step::Kind::kExchange:
      return run_exchange(joint, as_size(geography_.rank), as_size(step.peer), step.at, step.at + step.bytes);
    default: return;
  }
}

}  // namespace weft::comm
