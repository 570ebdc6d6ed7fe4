#include <algorithm>
#include <map>
#include <set>

#include "base/index.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "program/pipeline.h"

namespace weft {

namespace {

constexpr std::size_t kMostMaps = 32;  // maps run again for one value
constexpr std::int64_t kSmall = 8;  // a value with so many times fewer elements may be kept instead
constexpr int kMostStages = 2;  // in which a value is made again

bool is_sweep(const Instr& instr) { return instr.is<Map>() || instr.is<ReduceDims>(); }

class MapChooser {
 public:
  MapChooser(const Program& program, std::int64_t least_bytes)
      : p_(program), least_bytes_(least_bytes), uses_(program), defined_(definitions_of(program)), last_stage_(program.values.size()) {
    int stage = 0;
    for (const Instr& instr : p_.body) {
      stages_.push_back(stage);
      if (!is_sweep(instr) && !is_view(instr)) ++stage;
    }
    for (const ValueId id : p_.values.ids()) last_stage_[id] = last_use(id);
  }

  // For each value that is made again: the maps that make it, in order.
  std::map<ValueId, std::set<int>> choose() {
    std::map<ValueId, std::set<int>> chosen;
    for (const Instr& instr : p_.body) {
      if (!instr.is<Map>()) continue;
      const ValueId id = instr.outputs[0];
      if (std::set<int> chain = chain_of(id); !chain.empty()) {
        again_.insert(id);
        chosen[id] = std::move(chain);
      }
    }
    return chosen;
  }

  int stage(int position) const { return stages_[at(position)]; }

 private:
  ValueId root_of(ValueId id) const {
    while (defined_[id] >= 0 && is_view(p_.body[at(defined_[id])])) id = p_.body[at(defined_[id])].inputs[0];
    return id;
  }

  // The last stage in which the value is read, through views.
  int last_use(ValueId id) const {
    int last = -1;
    for (const int user : uses_.users(id))
      last = std::max(last, is_view(p_.body[at(user)]) ? last_use(p_.body[at(user)].outputs[0]) : stage(user));
    return uses_.kept[id] ? static_cast<int>(p_.body.size()) : last;
  }

  // It has to lie in memory, whatever becomes of its late uses.
  bool is_stored(ValueId id) const {
    if (defined_[id] < 0 || !p_.body[at(defined_[id])].is<Map>() || uses_.kept[id]) return true;
    if (std::ranges::any_of(uses_.users(id), [&](int user) { return !is_sweep(p_.body[at(user)]); })) return true;
    return last_stage_[id] > stage(defined_[id]) && !again_.contains(id);
  }

  bool lies_outside(ValueId id) const { return defined_[root_of(id)] < 0; }

  // Whether maps alone make it from what lies outside of the program.
  bool is_of_outside(ValueId id) const {
    if (lies_outside(id)) return true;
    const Instr& instr = p_.body[at(defined_[id])];
    return instr.is<Map>() && std::ranges::all_of(instr.inputs, [&](ValueId in) { return is_of_outside(in); });
  }

  struct Chain {
    std::set<int> maps;
    std::set<ValueId> leaves;  // that the chain reads
    std::int64_t most = 0;     // elements of the value it makes
  };

  bool extend(ValueId id, Chain& chain) const {
    if (chain.maps.size() >= kMostMaps) return false;
    if (!chain.maps.insert(defined_[id]).second) return true;
    for (const ValueId in : p_.body[at(defined_[id])].inputs) {
      const bool small = p_.values[in].shape.elements() * kSmall <= chain.most;
      const bool stays = defined_[in] < 0 || !p_.body[at(defined_[in])].is<Map>() ||
                         (small ? !is_of_outside(in) : is_stored(in));
      if (stays) chain.leaves.insert(in);
      else if (!extend(in, chain)) return false;
    }
    return true;
  }

  // The maps to run again for a value; none if that saves no memory traffic or makes more memory live.
  std::set<int> chain_of(ValueId id) const {
    if (bytes_of(p_, id) < least_bytes_ || uses_.kept[id]) return {};
    const int made = stage(defined_[id]);
    std::set<int> late;
    for (const int user : uses_.users(id)) {
      if (!is_sweep(p_.body[at(user)])) return {};
      if (stage(user) > made) late.insert(stage(user));
    }
    if (late.empty() || late.size() > kMostStages) return {};
    Chain chain{.maps = {}, .leaves = {}, .most = p_.values[id].shape.elements()};
    if (!extend(id, chain)) return {};
    std::int64_t more = 0;  // bytes that live longer for it
    std::set<ValueId> counted;
    for (const ValueId leaf : chain.leaves) {
      const ValueId root = root_of(leaf);
      if (defined_[root] >= 0 && last_stage_[root] < *late.rbegin() && counted.insert(root).second)
        more += bytes_of(p_, root);
    }
    return more <= bytes_of(p_, id) + bytes_of(p_, id) / kSmall ? chain.maps : std::set<int>();
  }

  const Program& p_;
  const std::int64_t least_bytes_;
  const Uses uses_;
  const ByValue<int> defined_;
  std::vector<int> stages_;      // by position: how many heavy instructions stand before it
  ByValue<int> last_stage_;      // by value
  std::set<ValueId> again_ = {};  // values that are made again
};

}  // namespace

Program recompute_maps(Program p, const PassOptions& options) {
  if (options.target.recomputed_bytes == 0) return p;
  MapChooser chooser(p, options.target.recomputed_bytes);
  const std::map<ValueId, std::set<int>> chosen = chooser.choose();
  if (chosen.empty()) return p;
  const ByValue<int> defined = definitions_of(p);
  std::vector<Instr> body;
  std::map<ValueId, ValueId> again;  // in the present stage
  int stage = 0;
  const std::vector<Instr> old = std::move(p.body);
  for (int i = 0; i < static_cast<int>(old.size()); ++i) {
    if (chooser.stage(i) != stage) again.clear();
    stage = chooser.stage(i);
    Instr instr = old[at(i)];
    for (ValueId& id : instr.inputs) {
      const auto found = chosen.find(id);
      if (found == chosen.end() || chooser.stage(defined[id]) == stage) continue;
      for (const int map : found->second) {
        Instr copy = old[at(map)];
        const ValueId made = copy.outputs[0];
        if (again.contains(made)) continue;
        for (ValueId& in : copy.inputs)
          if (again.contains(in)) in = again.at(in);
        copy.outputs[0] = again[made] = add_value(p, p.values[made].name, type_of(p, made));
        copy.origin.phase = instr.origin.phase;
        copy.origin.recompute = instr.origin.recompute;
        body.push_back(std::move(copy));
      }
      id = again.at(id);
    }
    body.push_back(std::move(instr));
  }
  p.body = std::move(body);
  return drop_dead_code(std::move(p), options);
}

}  // namespace weft
