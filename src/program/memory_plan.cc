#include "program/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "program/builder.h"

namespace weft {

namespace {

constexpr std::int64_t kAlignment = 64;

std::size_t at(int id) { return static_cast<std::size_t>(id); }

std::int64_t bytes_of(const Value& value) {
  return value.shape.elements() * static_cast<std::int64_t>(size_of(value.dtype));
}

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

class Planner {
 public:
  explicit Planner(const Program& program) : p_(program), strides_(strides_of(program)) {
    plan_.storage_of.assign(p_.values.size(), MemoryPlan::kHeld);
    dense_.resize(p_.values.size());
    for (std::size_t i = 0; i < p_.values.size(); ++i) dense_[i] = strides_[i] == dense_strides(p_.values[i].shape);
  }

  MemoryPlan run() {
    find_last_uses();
    for (const ProgramInput& input : p_.inputs) make(input.value, -1);
    for (int i = 0; i < static_cast<int>(p_.body.size()); ++i) visit(i);
    place();
    plan_.live_bytes = most_live();
    return std::move(plan_);
  }

 private:
  // Per value, the last position that reads it or a view of it.
  void find_last_uses() {
    last_use_.assign(p_.values.size(), -1);
    const int end = static_cast<int>(p_.body.size());
    for (const ProgramOutput& output : p_.outputs) last_use_[at(output.value)] = end;
    for (const ProgramVariable& variable : p_.variables)
      if (variable.update) last_use_[at(*variable.update)] = end;
    for (int i = end - 1; i >= 0; --i) {
      const Instr& instr = p_.body[at(i)];
      for (ValueId id : instr.inputs) {
        const int used = is_view(instr) ? std::max(last_use_[at(instr.outputs[0])], i) : i;
        last_use_[at(id)] = std::max(last_use_[at(id)], used);
      }
    }
  }

  void make(ValueId id, int position) {
    plan_.storage_of[at(id)] = static_cast<int>(plan_.storages.size());
    plan_.storages.push_back(
        {position, std::max(position, last_use_[at(id)]), aligned(bytes_of(p_.values[at(id)])), 0});
    filled_.push_back(bytes_of(p_.values[at(id)]));
  }

  void visit(int i) {
    const Instr& instr = p_.body[at(i)];
    if (is_view(instr)) {
      plan_.storage_of[at(instr.outputs[0])] = plan_.storage_of[at(instr.inputs[0])];
      return;
    }
    for (std::size_t k = 0; k < instr.outputs.size(); ++k) {
      const ValueId out = instr.outputs[k];
      const int taken = storage_to_take(i, instr, k);
      if (taken == MemoryPlan::kHeld) {
        make(out, i);
        continue;
      }
      plan_.storage_of[at(out)] = taken;
      Storage& storage = plan_.storages[at(taken)];
      storage.last = std::max(storage.last, last_use_[at(out)]);
    }
  }

  // The storage that the k-th output may write over, or kHeld.
  int storage_to_take(int i, const Instr& instr, std::size_t k) const {
    if (instr.is<AllReduce>()) return fits(i, instr, k, k) ? plan_.storage_of[at(instr.inputs[k])] : MemoryPlan::kHeld;
    if (instr.is<Permute>()) return fits(i, instr, 0, 0) ? plan_.storage_of[at(instr.inputs[0])] : MemoryPlan::kHeld;
    if (!instr.is<Map>()) return MemoryPlan::kHeld;
    for (std::size_t operand = 0; operand < instr.inputs.size(); ++operand)
      if (fits(i, instr, operand, k)) return plan_.storage_of[at(instr.inputs[operand])];
    return MemoryPlan::kHeld;
  }

  // Whether an operand dies here, fills its storage, and lies element for element as the output will. No other operand
  // may read that storage in another order.
  bool fits(int i, const Instr& instr, std::size_t operand, std::size_t output) const {
    const ValueId in = instr.inputs[operand];
    const Value &from = p_.values[at(in)], &to = p_.values[at(instr.outputs[output])];
    const int storage = plan_.storage_of[at(in)];
    if (storage == MemoryPlan::kHeld || plan_.storages[at(storage)].last > i) return false;
    if (from.shape != to.shape || size_of(from.dtype) != size_of(to.dtype) || !dense_[at(in)]) return false;
    if (filled_[at(storage)] != bytes_of(to)) return false;
    for (std::size_t other = 0; other < instr.inputs.size(); ++other)
      if (other != operand && plan_.storage_of[at(instr.inputs[other])] == storage) return false;
    for (std::size_t other = 0; other < output; ++other)
      if (plan_.storage_of[at(instr.outputs[other])] == storage) return false;
    return true;
  }

  // The largest first, each at the lowest offset where nothing that lives at the same time lies.
  void place() {
    std::vector<std::size_t> order(plan_.storages.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return plan_.storages[a].bytes > plan_.storages[b].bytes; });
    std::vector<const Storage*> placed;  // by offset
    for (std::size_t s : order) {
      Storage& storage = plan_.storages[s];
      std::int64_t offset = 0;
      for (const Storage* other : placed) {
        const bool together = other->first <= storage.last && storage.first <= other->last;
        if (!together || other->offset + other->bytes <= offset) continue;
        if (other->offset >= offset + storage.bytes) break;
        offset = other->offset + other->bytes;
      }
      storage.offset = offset;
      plan_.arena_bytes = std::max(plan_.arena_bytes, offset + storage.bytes);
      placed.insert(std::upper_bound(placed.begin(), placed.end(), &storage,
                                     [](const Storage* a, const Storage* b) { return a->offset < b->offset; }),
                    &storage);
    }
  }

  std::int64_t most_live() const {
    std::vector<std::int64_t> change(p_.body.size() + 3, 0);
    for (const Storage& storage : plan_.storages) {
      change[at(storage.first + 1)] += storage.bytes;
      change[at(storage.last + 2)] -= storage.bytes;
    }
    std::int64_t live = 0, most = 0;
    for (std::int64_t by : change) most = std::max(most, live += by);
    return most;
  }

  const Program& p_;
  std::vector<std::vector<std::int64_t>> strides_;
  std::vector<bool> dense_;
  std::vector<int> last_use_;
  std::vector<std::int64_t> filled_;  // per storage, without the rounding up
  MemoryPlan plan_;
};

}  // namespace

MemoryPlan plan_memory(const Program& program) { return Planner(program).run(); }

}  // namespace weft
