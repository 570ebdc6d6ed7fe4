#include "program/memory_plan.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <unordered_map>

#include "base/index.h"
#include "language/shape_math.h"
#include "program/builder.h"
#include "program/packing.h"

namespace weft {

namespace {

constexpr std::size_t kNoLoop = static_cast<std::size_t>(-1);

class Planner {
 public:
  Planner(const Program& program, const Target& target, std::size_t carried)
      : p_(program),
        target_(target),
        carried_(carried),
        strides_(strides_of(program)),
        done_at_(program.body.size(), -1) {
    plan_.storage_of.assign(p_.values.size(), MemoryPlan::kExternal);
    dense_.resize(p_.values.size());
    root_ = identity<ValueId>(p_.values.size());
    for (const ValueId id : p_.values.ids()) dense_[id] = is_dense(p_.values[id].shape, strides_[id]);
  }

  MemoryPlan run() {
    find_last_uses();
    find_next_contents();
    for (std::size_t i = 0; i < p_.inputs.size(); ++i)
      if (carried_ == kNoLoop || i == 0) make(p_.inputs[i].value, -1);
    for (int i = 0; i < static_cast<int>(p_.body.size()); ++i) visit(i);
    if (carried_ == kNoLoop) save_views();
    else order_moves();
    place();
    for (auto& [position, inner] : plan_.loops) inner.offset = plan_.storages[at(loop_storage_.at(position))].offset;
    find_fullest();
    return std::move(plan_);
  }

 private:
  // Per value, the last position that reads it or a view of it.
  void find_last_uses() {
    last_use_.assign(p_.values.size(), -1);
    const int end = static_cast<int>(p_.body.size());
    ByValue<int> defined_at(p_.values.size(), -1);
    for (int i = 0; i < end; ++i) {
      for (ValueId id : p_.body[at(i)].outputs) defined_at[id] = i;
      if (p_.body[at(i)].is<Done>()) done_at_[at(defined_at[p_.body[at(i)].inputs[0]])] = i;
    }
    for (const ProgramOutput& output : p_.outputs) last_use_[output.value] = end;
    for (const ProgramVariable& variable : p_.variables)
      if (variable.update) last_use_[*variable.update] = end;
    last_read_ = last_use_;
    for (int i = end - 1; i >= 0; --i) {
      const Instr& instr = p_.body[at(i)];
      for (ValueId id : instr.inputs) {
        const int used = is_view(instr) ? std::max(last_use_[instr.outputs[0]], i) : ends_at(i);
        const int read = is_view(instr) ? std::max(last_read_[instr.outputs[0]], i) : i;
        last_use_[id] = std::max(last_use_[id], used);
        last_read_[id] = std::max(last_read_[id], read);
      }
    }
  }

  void find_next_contents() {
    if (carried_ == kNoLoop) {
      for (const ProgramVariable& variable : p_.variables)
        if (variable.update) next_of_[*variable.update].push_back(variable.value);
    } else {
      for (std::size_t k = 0; k < carried_; ++k) next_of_[p_.outputs[k].value].push_back(p_.inputs[k + 1].value);
    }
  }

  // Where an instruction is over: for a collective, at its done.
  int ends_at(int i) const { return std::max(i, done_at_[at(i)]); }

  std::int64_t aligned(std::int64_t bytes) const { return aligned_bytes(bytes, target_.alignment); }

  std::int64_t workspace_bytes(const Instr& instr) const {
    return target_.workspace_bytes ? target_.workspace_bytes(p_, instr, strides_) : 0;
  }

  int add_storage(int first, int last, std::int64_t bytes) {
    plan_.storages.push_back({first, last, aligned(bytes), 0});
    filled_.push_back(bytes);
    read_until_.push_back(last);
    return static_cast<int>(plan_.storages.size()) - 1;
  }

  void make(ValueId id, int position) {
    const int last = std::max(position < 0 ? position : ends_at(position), last_use_[id]);
    plan_.storage_of[id] = add_storage(position, last, bytes_of(p_.values[id]));
    read_until_.back() = last_read_[id];
  }

  void plan_loop(int i, const Instr& instr, const Program& body) {
    MemoryPlan inner = Planner(body, target_, instr.outputs.size()).run();
    loop_storage_[i] = add_storage(i, i, inner.arena_bytes);
    plan_.loops[i].plan.push_back(std::move(inner));
  }

  void visit(int i) {
    const Instr& instr = p_.body[at(i)];
    if (is_view(instr)) {
      root_[instr.outputs[0]] = root_[instr.inputs[0]];
      plan_.storage_of[instr.outputs[0]] = plan_.storage_of[instr.inputs[0]];
      return;
    }
    if (const auto* loop = instr.as<Loop>()) plan_loop(i, instr, *loop->body);
    else if (const std::int64_t bytes = workspace_bytes(instr); bytes > 0)
      plan_.workspaces[i] = add_storage(i, ends_at(i), bytes);
    for (std::size_t k = 0; k < instr.outputs.size(); ++k) {
      const ValueId out = instr.outputs[k];
      if (write_over_carried(i, instr, out) || write_over_variable(i, instr, out)) continue;
      const int taken = storage_to_take(i, instr, k);
      if (taken == MemoryPlan::kExternal) {
        make(out, i);
        continue;
      }
      plan_.storage_of[out] = taken;
      Storage& storage = plan_.storages[at(taken)];
      storage.last = std::max(storage.last, last_use_[out]);
      read_until_[at(taken)] = std::max(read_until_[at(taken)], last_read_[out]);
    }
  }

  // Updates and outputs that share a variable's memory are saved before any variable is written at the end.
  void save_views() {
    const auto is_written = [](const ProgramVariable& v) { return v.update && *v.update != v.value; };
    if (std::ranges::none_of(p_.variables, is_written)) return;
    std::set<ValueId> variables, saved;
    for (const ProgramVariable& variable : p_.variables) variables.insert(variable.value);
    for (const ProgramVariable& variable : p_.variables)
      if (is_written(variable) && variables.contains(root_[*variable.update])) saved.insert(*variable.update);
    for (const ProgramOutput& output : p_.outputs)
      if (variables.contains(root_[output.value])) saved.insert(output.value);
    const int end = static_cast<int>(p_.body.size());
    for (const ValueId id : saved) plan_.saved_views[id] = add_storage(end, end, bytes_of(p_.values[id]));
  }

  // The storage that the k-th output may write over, or kExternal.
  int storage_to_take(int i, const Instr& instr, std::size_t k) const {
    if (instr.is<AllReduce>() || instr.is<Loop>())
      return fits(i, instr, k, k) ? plan_.storage_of[instr.inputs[k]] : MemoryPlan::kExternal;
    if (instr.is<Permute>() || instr.is<DynamicUpdate>())
      return fits(i, instr, 0, 0) ? plan_.storage_of[instr.inputs[0]] : MemoryPlan::kExternal;
    if (!instr.is<Map>() && !instr.is<Fused>()) return MemoryPlan::kExternal;
    for (std::size_t operand = 0; operand < instr.inputs.size(); ++operand)
      if (fits(i, instr, operand, k)) return plan_.storage_of[instr.inputs[operand]];
    return MemoryPlan::kExternal;
  }

  // Whether an operand dies here, fills its storage, and lies element for element as the output will. No other operand
  // may read that storage in another order.
  bool fits(int i, const Instr& instr, std::size_t operand, std::size_t output) const {
    const ValueId in = instr.inputs[operand];
    const Value &from = p_.values[in], &to = p_.values[instr.outputs[output]];
    const int storage = plan_.storage_of[in];
    if (storage == MemoryPlan::kExternal || plan_.storages[at(storage)].last > ends_at(i)) return false;
    if (read_until_[at(storage)] > i) return false;  // by others, while this is in flight
    if (from.shape != to.shape || size_of(from.dtype) != size_of(to.dtype) || !dense_[in]) return false;
    if (filled_[at(storage)] != bytes_of(to)) return false;
    for (std::size_t other = 0; other < instr.inputs.size(); ++other)
      if (other != operand && plan_.storage_of[instr.inputs[other]] == storage) return false;
    for (std::size_t other = 0; other < output; ++other)
      if (plan_.storage_of[instr.outputs[other]] == storage) return false;
    return true;
  }

  // The k-th next value may be written over the k-th carried one where that dies and nothing else reads it.
  bool write_over_carried(int i, const Instr& instr, ValueId out) {
    if (carried_ == kNoLoop || !(instr.is<Map>() || instr.is<Fused>() || instr.is<DynamicUpdate>())) return false;
    const auto next = next_of_.find(out);
    if (next == next_of_.end()) return false;
    return std::ranges::any_of(next->second, [&](ValueId last) { return write_over_held(i, instr, out, last); });
  }

  // A variable's new contents may be written over the old ones where these die and nothing else reads them.
  bool write_over_variable(int i, const Instr& instr, ValueId out) {
    const bool may_read = instr.is<Map>() || instr.is<Fused>() || instr.is<DynamicUpdate>();
    const auto next = next_of_.find(out);
    if (carried_ != kNoLoop || next == next_of_.end()) return false;
    for (const ValueId variable : next->second) {
      if (may_read && write_over_held(i, instr, out, variable)) return true;
      if (!instr.is<Loop>() && last_use_[variable] < i && same_storage(out, variable)) {
        plan_.over[out] = variable;
        return true;
      }
    }
    return false;
  }

  bool same_storage(ValueId a, ValueId b) const {
    return p_.values[a].shape == p_.values[b].shape && p_.values[a].dtype == p_.values[b].dtype;
  }

  bool write_over_held(int i, const Instr& instr, ValueId out, ValueId held) {
    if (last_use_[held] > i) return false;
    const auto reads =
        std::count_if(instr.inputs.begin(), instr.inputs.end(), [&](ValueId id) { return root_[id] == held; });
    const auto whole = std::find(instr.inputs.begin(), instr.inputs.end(), held);
    if (reads != 1 || whole == instr.inputs.end() || (instr.is<DynamicUpdate>() && whole != instr.inputs.begin()))
      return false;
    if (!same_storage(out, held)) return false;
    plan_.over[out] = held;
    return true;
  }

  // The carried value that a next one is, or is a view of, if it is still to be written over by another; else kNoLoop.
  std::size_t read_by_move(std::size_t next, const std::set<std::size_t>& open) const {
    const ValueId root = root_[p_.outputs[next].value];
    for (std::size_t k : open)
      if (p_.inputs[k + 1].value == root) return k;
    return kNoLoop;
  }

  // The next values that lie elsewhere than the carried ones are moved there as if all at once: a place is written when
  // nobody is to read it any more. Where every place is to be read, they form rings; saving one value opens a ring.
  void order_moves() {
    std::set<std::size_t> open;  // carried values whose next one is to be moved
    for (std::size_t k = 0; k < carried_; ++k) {
      const ValueId last = p_.inputs[k + 1].value, next = p_.outputs[k].value;
      const auto written = plan_.over.find(next);
      const bool is_over = written != plan_.over.end() && written->second == last;
      if (!is_over && !(root_[next] == last && dense_[next])) open.insert(k);
    }
    std::map<std::size_t, std::size_t> reads;  // by the carried value whose next one reads it
    for (std::size_t k : open)
      if (const std::size_t read = read_by_move(k, open); read != kNoLoop) reads[k] = read;
    const auto is_read = [&](std::size_t k) {
      return std::any_of(reads.begin(), reads.end(), [&](const auto& read) { return read.second == k; });
    };
    std::size_t saved = kNoLoop;
    while (!open.empty()) {
      const auto free = std::find_if_not(open.begin(), open.end(), is_read);
      if (free == open.end()) {
        saved = *open.begin();
        plan_.moves.push_back({saved, MemoryPlan::Move::How::kSave});
        make_saved(bytes_of(p_.values[p_.outputs[saved].value]));
        reads.erase(saved);
        continue;
      }
      plan_.moves.push_back(
          {*free, *free == saved ? MemoryPlan::Move::How::kPlaceSaved : MemoryPlan::Move::How::kPlace});
      reads.erase(*free);
      open.erase(free);
    }
  }

  // One place after the body's end for all that moves save: a ring is closed before another is opened.
  void make_saved(std::int64_t bytes) {
    const int end = static_cast<int>(p_.body.size());
    if (plan_.ring_storage == MemoryPlan::kExternal) plan_.ring_storage = add_storage(end, end, bytes);
    Storage& storage = plan_.storages[at(plan_.ring_storage)];
    storage.bytes = std::max(storage.bytes, aligned(bytes));
  }

  // The largest first, each at the lowest offset where nothing that lives at the same time lies.
  void place() {
    std::vector<std::size_t> order(plan_.storages.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return plan_.storages[a].bytes > plan_.storages[b].bytes; });
    Packing packing(static_cast<int>(p_.body.size()) + 2);  // from -1 to the end
    for (std::size_t s : order) {
      Storage& storage = plan_.storages[s];
      storage.offset = packing.place(storage.first + 1, storage.last + 1, storage.bytes);
      plan_.arena_bytes = std::max(plan_.arena_bytes, storage.offset + storage.bytes);
    }
  }

  void find_fullest() {
    std::vector<std::int64_t> change(p_.body.size() + 3, 0);
    for (const Storage& storage : plan_.storages) {
      change[at(storage.first + 1)] += storage.bytes;
      change[at(storage.last + 2)] -= storage.bytes;
    }
    std::int64_t live = 0;
    for (std::size_t i = 0; i < change.size(); ++i) {
      live += change[i];
      if (live <= plan_.live_bytes) continue;
      plan_.live_bytes = live;
      plan_.peak_position = static_cast<int>(i) - 1;
    }
  }

  const Program& p_;
  const Target& target_;
  const std::size_t carried_;  // of the loop whose body it is
  ByValue<std::vector<std::int64_t>> strides_;
  ByValue<bool> dense_;
  ByValue<ValueId> root_;  // what a value is a view of, in the end; itself, if it is none
  ByValue<int> last_use_;
  ByValue<int> last_read_;                                     // the same, but for a collective where it starts
  std::vector<int> done_at_;                                   // per instruction: where its done stands, if it has one
  std::unordered_map<ValueId, std::vector<ValueId>> next_of_;  // by new contents: the variables, or carried values
  std::map<int, int> loop_storage_;                            // by position: what holds the arena of its body
  std::vector<std::int64_t> filled_;                           // per storage, without the rounding up
  std::vector<int> read_until_;                                // per storage
  MemoryPlan plan_;
};

}  // namespace

MemoryPlan plan_memory(const Program& program, const Target& target) { return Planner(program, target, kNoLoop).run(); }

std::int64_t bytes_of(const Value& value) {
  return value.shape.elements() * static_cast<std::int64_t>(size_of(value.dtype));
}

std::int64_t variable_bytes(const Program& program) {
  std::int64_t bytes = 0;
  for (const ProgramVariable& variable : program.variables) bytes += bytes_of(program.values[variable.value]);
  return bytes;
}

}  // namespace weft
