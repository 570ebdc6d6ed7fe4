#include "runtime/cuda/row_registers.h"

#include "base/index.h"

namespace weft::cuda {

namespace {

constexpr std::size_t kNarrow = 2;        // bytes of a number

class RegisterChooser {
 public:
  explicit RegisterChooser(const RowPasses& passes) : p_(passes) {
    for (const Instr& instr : p_.body.body) maker_[instr.outputs[0]] = &instr;
  }

  RowRegisters run(std::int64_t elements, std::int64_t most_bytes, const std::function<bool(ValueId)>& loads_packs) {
    const auto bytes_of = [&](ValueId id) {
      return elements * static_cast<std::int64_t>(size_of(p_.body.values[id].dtype));
    };
    std::int64_t bytes = 0;
    for (const Instr& instr : p_.body.body) {
      const ValueId id = instr.outputs[0];
      const std::vector<int> in = passes_with(id);
      const bool narrow = size_of(p_.body.values[id].dtype) == kNarrow;
      if (!instr.is<Map>() || !narrow || in.size() < 2 || bytes + bytes_of(id) > most_bytes) continue;
      bytes += bytes_of(id);
      kept_.values[id] = in.front();
    }
    for (const ProgramInput& input : p_.body.inputs) {
      const ValueId id = input.value;
      if (passes_with(id).size() < 2 || !loads_packs(id) || bytes + bytes_of(id) > most_bytes) continue;
      bytes += bytes_of(id);
      kept_.operands.insert(id);
    }
    return kept_;
  }

 private:
  // The passes that compute or load the value.
  std::vector<int> passes_with(ValueId id) const {
    std::vector<int> found;
    if (p_.plan.extents[id] != Extent::kFull) return found;
    for (int pass = 0; pass < p_.count; ++pass) {
      std::set<ValueId> needed;
      for (const ValueId target : targets(pass)) need(target, pass, needed);
      if (needed.contains(id)) found.push_back(pass);
    }
    return found;
  }

  // What the elements of a pass are computed for.
  std::vector<ValueId> targets(int pass) const {
    std::vector<ValueId> all;
    const bool last = pass + 1 == p_.count;
    for (const Instr& instr : p_.body.body) {
      const ValueId id = instr.outputs[0];
      if (!instr.is<ReduceDims>()) continue;
      const bool of_pass = p_.plan.extents[id] == Extent::kRow ? p_.level(id) == pass + 1 : last;
      if (of_pass) all.push_back(instr.inputs[0]);
    }
    if (last)
      for (const ProgramOutput& output : p_.body.outputs) all.push_back(output.value);
    return all;
  }

  void need(ValueId id, int pass, std::set<ValueId>& needed) const {
    if (p_.plan.extents[id] != Extent::kFull || !needed.insert(id).second) return;
    const auto kept = kept_.values.find(id);
    const auto maker = maker_.find(id);
    if (maker == maker_.end() || !maker->second->is<Map>() || (kept != kept_.values.end() && kept->second < pass)) return;
    for (const ValueId input : maker->second->inputs) need(input, pass, needed);
  }

  const RowPasses& p_;
  std::map<ValueId, const Instr*> maker_;
  RowRegisters kept_;
};

}  // namespace

RowRegisters choose_registers(const RowPasses& passes, std::int64_t elements, std::int64_t most_bytes,
                              const std::function<bool(ValueId)>& loads_packs) {
  return RegisterChooser(passes).run(elements, most_bytes, loads_packs);
}

}  // namespace weft::cuda
