#include <map>
#include <utility>

#include "base/index.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "program/pipeline.h"

namespace weft {

namespace {

constexpr std::int64_t kSmall = 16;  // an operand this many times smaller than a value may be kept beside its source
constexpr int kMostMaps = 16;        // between a value and its source

// What stands between two of these is one sweep, or a few.
bool is_heavy(const Instr& instr) { return !instr.is<Map>() && !instr.is<ReduceDims>() && !is_view(instr); }

class Recomputer {
 public:
  explicit Recomputer(Program program)
      : p_(std::move(program)), uses_(p_), segment_(p_.body.size()), made_at_(definitions_of(p_)) {
    for (std::size_t i = 1; i < p_.body.size(); ++i) segment_[i] = segment_[i - 1] + (is_heavy(p_.body[i - 1]) ? 1 : 0);
    for (const ValueId id : p_.values.ids()) sources_.add({id, 0});
    for (std::size_t i = 0; i < p_.body.size(); ++i) find_source(i);
  }

  Program run() {
    std::vector<Instr> old = std::move(p_.body), body;
    old_ = &old;
    for (std::size_t i = 0; i < old.size(); ++i) {
      Instr instr = old[i];
      if (!is_heavy(instr) && !is_view(instr) && instr.origin.phase == Phase::kBackward && !instr.origin.recompute)
        for (ValueId& id : instr.inputs) id = again(id, segment_[i], body);
      body.push_back(std::move(instr));
    }
    p_.body = std::move(body);
    return std::move(p_);
  }

 private:
  // The one large value that a value can be computed from by maps of single elements; itself if there is no other.
  struct Source {
    ValueId value;
    int maps = 0;
  };

  // Whether something reads the value that no sweep does, or that reads it in its own place: then it is in memory anyway.
  bool is_in_memory(ValueId id) const {
    if (uses_.kept[id]) return true;
    for (const int user : uses_.users(id)) {
      const Instr& instr = p_.body[at(user)];
      if (is_view(instr) || (is_heavy(instr) && instr.origin.phase == Phase::kBackward)) return true;
    }
    return false;
  }

  void find_source(std::size_t i) {
    const Instr& instr = p_.body[i];
    if (!instr.is<Map>() || instr.origin.recompute || is_in_memory(instr.outputs[0])) return;
    const ValueId id = instr.outputs[0];
    const std::int64_t bytes = bytes_of(p_, id);
    std::optional<ValueId> one;
    int maps = 1;
    for (const ValueId input : instr.inputs) {
      if (bytes_of(p_, input) * kSmall <= bytes) continue;
      const Source& source = sources_[input];
      if (one && *one != source.value) return;
      one = source.value;
      maps += source.maps;
    }
    if (one && maps <= kMostMaps && bytes_of(p_, *one) <= bytes) sources_[id] = {*one, maps};
  }

  // The value for a reader in that segment.
  ValueId again(ValueId id, int segment, std::vector<Instr>& body) {
    const int made_at = made_at_[id];
    if (sources_[id].value == id || segment_[at(made_at)] == segment) return id;
    const auto found = copies_.find({id, segment});
    if (found != copies_.end()) return found->second;
    Instr copy = (*old_)[at(made_at)];
    for (ValueId& input : copy.inputs) input = again(input, segment, body);
    const Value value = p_.values[id];
    copy.outputs = {add_value(p_, value.name, {value.dtype, value.shape, value.sharding})};
    copy.origin.phase = Phase::kBackward;
    copies_[{id, segment}] = copy.outputs[0];
    body.push_back(std::move(copy));
    return body.back().outputs[0];
  }

  Program p_;
  Uses uses_;
  std::vector<int> segment_;  // per instruction
  ByValue<int> made_at_;
  ByValue<Source> sources_;
  const std::vector<Instr>* old_ = nullptr;
  std::map<std::pair<ValueId, int>, ValueId> copies_;
};

}  // namespace

Program recompute_maps(Program program, const PassOptions& options) {
  return options.target.fusing.maps ? Recomputer(std::move(program)).run() : program;
}

}  // namespace weft
