#include <algorithm>
#include <unordered_map>

#include "base/index.h"
#include "base/str.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "program/pipeline.h"
#include "program/text.h"

namespace weft {

namespace {

// The bytes that enter one joined reduce_scatter or all_gather: the large side of the first waits for the last.
constexpr std::int64_t kMostScattered = std::int64_t{1} << 20;

// Collectives that become one. A view of what they give is no use of it: it follows them.
struct Bucket {
  std::int64_t bytes = 0;
  bool open = true;
  std::vector<std::size_t> members;    // positions in the body
  std::vector<std::size_t> followers;  // of views that stand before the last member
};

bool may_join(const Program& p, const Instr& instr) {
  if (!instr.is<AllReduce>() && !instr.is<ReduceScatter>() && !instr.is<AllGather>()) return false;
  return std::none_of(instr.outputs.begin(), instr.outputs.end(),
                      [&](ValueId id) { return p.values[id].sharding.is_partial(); });
}

// What members have in common: all of the work, the dtype, and the phase, since a forward result is not kept waiting
// for the backward pass.
std::string key_of(const Program& p, const Instr& instr) {
  return str(work_text(p, instr), " ", p.values[instr.inputs[0]].dtype, " ", name_of(instr.origin.phase));
}

class CollectiveJoiner {
 public:
  CollectiveJoiner(Program program, std::int64_t limit)
      : p_(std::move(program)), limit_(limit), bucket_of_(p_.values.size(), -1) {}

  Program run() {
    for (std::size_t i = 0; i < p_.body.size(); ++i) visit(i);
    // A view that stands after the last member may stay there.
    for (Bucket& bucket : buckets_)
      std::erase_if(bucket.followers, [&](std::size_t i) { return i > bucket.members.back(); });
    return emit();
  }

 private:
  void visit(std::size_t i) {
    const Instr& instr = p_.body[i];
    if (is_view(instr) && bucket_of_[instr.inputs[0]] >= 0) {
      const int bucket = bucket_of_[instr.inputs[0]];
      if (buckets_[at(bucket)].open) return follow(i, bucket);
    }
    for (ValueId id : instr.inputs)
      if (bucket_of_[id] >= 0) buckets_[at(bucket_of_[id])].open = false;
    if (may_join(p_, instr)) take(i);
  }

  void follow(std::size_t i, int bucket) {
    buckets_[at(bucket)].followers.push_back(i);
    bucket_of_[p_.body[i].outputs[0]] = bucket;
  }

  void take(std::size_t i) {
    const Instr& instr = p_.body[i];
    std::int64_t bytes = 0;
    for (ValueId id : instr.inputs) bytes += bytes_of(p_, id);
    const std::int64_t limit = instr.is<AllReduce>() ? limit_ : std::min(limit_, kMostScattered);
    if (bytes >= limit) return;
    std::vector<std::size_t>& alike = open_[key_of(p_, instr)];
    std::erase_if(alike, [&](std::size_t b) { return !buckets_[b].open; });
    const auto found = std::ranges::find_if(alike, [&](std::size_t b) { return buckets_[b].bytes + bytes <= limit; });
    const std::size_t bucket = found == alike.end() ? buckets_.size() : *found;
    if (found == alike.end()) {
      alike.push_back(bucket);
      buckets_.emplace_back();
    }
    buckets_[bucket].bytes += bytes;
    buckets_[bucket].members.push_back(i);
    for (ValueId id : instr.outputs) bucket_of_[id] = static_cast<int>(bucket);
  }

  Program emit() {
    std::vector<std::vector<Instr>> instead(p_.body.size());
    std::vector<bool> moved(p_.body.size());
    for (const Bucket& bucket : buckets_) {
      if (bucket.members.size() < 2) continue;
      Instr one{p_.body[bucket.members[0]].operation, {}, {}, p_.body[bucket.members[0]].origin};
      for (std::size_t i : bucket.members) {
        const Instr& member = p_.body[i];
        one.inputs.insert(one.inputs.end(), member.inputs.begin(), member.inputs.end());
        one.outputs.insert(one.outputs.end(), member.outputs.begin(), member.outputs.end());
        one.origin = joined(std::move(one.origin), member.origin);
        moved[i] = true;
      }
      std::vector<Instr>& here = instead[bucket.members.back()];
      here.push_back(std::move(one));
      for (std::size_t i : bucket.followers) {
        here.push_back(p_.body[i]);
        moved[i] = true;
      }
    }
    std::vector<Instr> body;
    body.reserve(p_.body.size());
    for (std::size_t i = 0; i < p_.body.size(); ++i) {
      for (Instr& instr : instead[i]) body.push_back(std::move(instr));
      if (!moved[i]) body.push_back(std::move(p_.body[i]));
    }
    p_.body = std::move(body);
    return std::move(p_);
  }

  Program p_;
  std::int64_t limit_;
  std::vector<Bucket> buckets_;
  std::unordered_map<std::string, std::vector<std::size_t>> open_;  // those with members of one key, in order
  ByValue<int> bucket_of_;  // of each value that a bucket gives, by itself or through views
};

}  // namespace

Program join_collectives(Program p, const PassOptions& options) {
  return CollectiveJoiner(std::move(p), options.join_limit).run();
}

}  // namespace weft
