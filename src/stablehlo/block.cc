#include "stablehlo/block.h"

#include <algorithm>
#include <tuple>

#include "base/index.h"
#include "base/str.h"
#include "language/shape_math.h"

namespace weft::stablehlo {

namespace {

template <class... F>
struct Overloads : F... {
  using F::operator()...;
};

}  // namespace

Block::Block(ModuleState& state, const Program& program, Term seed, Term step, bool in_loop)
    : program(program),
      state(state),
      w(state.writer),
      seed(std::move(seed)),
      step(std::move(step)),
      in_loop(in_loop),
      stored_(program.values.size()),
      dense_(program.values.size()),
      made_in_(program.values.size()) {}

Block::Block(Block& around, const Program& body) : Block(around.state, body, around.seed, around.step, around.in_loop) {
  is_fused_ = true;
}

void Block::define(ValueId id, const Term& term) {
  stored_[id] = stored({term.id, term.element, value(id).shape});
  dense_[id] = stored_[id]->root;
}

void Block::define(ValueId id, Stored stored) { stored_[id] = std::move(stored); }

Term Block::term(ValueId id) {
  if (!dense_[id]) {
    dense_[id] = dense_term(w, *stored_[id]);
    if (!dense_[id]) throw Refused{str("operand %", id, " is a view that leaves its shard")};
  }
  return *dense_[id];
}

// In 32 bits, and i64 at the end: TPUs divide 64 bits in hundreds of steps.
Term Block::coordinate(const Axes& axes) {
  const std::string key = str("coordinate", join(axes, "+"));
  if (const auto found = w.known().find(key); found != w.known().end()) return found->second;
  constexpr const char* kElement = "ui32";
  auto [own, is_new] = w.known().emplace("processor", Term{});
  if (is_new) {
    const char* op = state.options.mode == Mode::kReplicas ? "replica_id" : "partition_id";
    own->second = w.generic(op, {}, "", kElement, {});
  }
  const Term processor = own->second;
  std::optional<Term> sum;
  for (const int axis : axes) {
    std::int64_t below = 1;
    for (std::size_t i = at(axis) + 1; i < program.mesh.axes().size(); ++i) below *= program.mesh.axes()[i].size;
    const std::int64_t size = program.mesh.axes()[at(axis)].size;
    if (size == 1) continue;
    Term part = below == 1 ? processor : w.apply("divide", {processor, w.number(below, kElement)});
    if (below * size != program.mesh.size()) part = w.apply("remainder", {part, w.number(size, kElement)});
    sum = sum ? w.apply("add", {w.apply("multiply", {*sum, w.number(size, kElement)}), part}) : part;
  }
  const Term result = sum ? w.convert(*sum, "i64") : w.number(0, "i64");
  w.known()[key] = result;
  return result;
}

std::optional<Term> Block::shard_begin(ValueId id, const std::string& dim) {
  const Value& v = value(id);
  const std::size_t position = v.shape.position(dim);
  const Axes& axes = v.sharding.dims[position];
  if (program.mesh.size(axes) == 1) return std::nullopt;
  return w.apply("multiply", {coordinate(axes), w.number(v.shape[position].size, "i64")});
}

void Block::locate(const Instr& instr) {
  std::string text;
  for (const ValueId id : instr.outputs) text += str(text.empty() ? "" : ", ", value(id).name, " ", value(id).shape);
  w.locate(str(text, text.empty() ? "" : " = ", name_of(instr), instr.origin.causes.empty() ? "" : " @ ",
               join(instr.origin.causes, ", ")));
}

void Block::write() {
  for (const Instr& instr : program.body) {
    if (!instr.is<Fused>()) locate(instr);
    try {
      if (instr.origin.recompute > 0 && !is_fused_) write_again(instr);
      else write(instr);
      note(instr);
    } catch (const Refused& refused) {
      const std::string name =
          instr.outputs.empty() ? "" : str(" '", value(instr.outputs[0]).name, "' ", value(instr.outputs[0]).shape);
      state.refusals.push_back(str(name_of(instr), name, ": ", refused.reason));
      for (const ValueId id : instr.outputs) define(id, w.number(0, element_of(value(id).dtype), value(id).shape));
    }
  }
  w.locate("");
}

void Block::note(const Instr& instr) {
  for (const ValueId id : instr.outputs) made_in_[id] = instr.is<Constant>() ? -1 : instr.origin.recompute;
  if (instr.origin.recompute == 0 && instr.origin.phase == Phase::kBackward && !instr.outputs.empty() &&
      !instr.is<Constant>())
    last_gradient_ = stored_[instr.outputs[0]]->root;
}

Stored Block::behind_barrier(const Stored& operand, int recompute) {
  auto [awaited, is_first] = awaited_.try_emplace(recompute, last_gradient_);
  auto [found, is_new] = behind_.try_emplace({recompute, operand.root.id});
  if (is_new) {
    Terms both = {operand.root};
    if (awaited->second) both.push_back(*awaited->second);
    found->second = w.barrier(both)[0];
  }
  Stored moved = operand;
  moved.root = found->second;
  return moved;
}

void Block::write_again(const Instr& instr) {
  const int recompute = instr.origin.recompute;
  std::vector<std::pair<ValueId, std::pair<std::optional<Stored>, std::optional<Term>>>> kept;
  for (const ValueId id : instr.inputs) {
    if (made_in_[id] == recompute || made_in_[id] < 0) continue;
    if (std::any_of(kept.begin(), kept.end(), [&](const auto& of) { return of.first == id; })) continue;
    kept.push_back({id, {stored_[id], dense_[id]}});
    stored_[id] = behind_barrier(*stored_[id], recompute);
    dense_[id].reset();
  }
  write(instr);
  for (auto& [id, of] : kept) std::tie(stored_[id], dense_[id]) = std::move(of);
}

void Block::write(const Instr& instr) {
  const auto zero = [&](const auto& write_one) { write_one(*this, instr); };
  std::visit(Overloads{
                 [&](const Contract&) { zero(write_contract); },
                 [&](const Map& o) { write_map(*this, instr, o); },
                 [&](const ReduceDims& o) { write_reduce(*this, instr, o); },
                 [&](const Copy&) { zero(write_copy); },
                 [&](const Concat& o) { write_concat(*this, instr, o); },
                 [&](const DynamicSlice& o) { write_dynamic_slice(*this, instr, o); },
                 [&](const DynamicUpdate& o) { write_dynamic_update(*this, instr, o); },
                 [&](const Gather& o) { write_gather(*this, instr, o); },
                 [&](const ScatterAdd& o) { write_scatter_add(*this, instr, o); },
                 [&](const Scan& o) { write_scan(*this, instr, o); },
                 [&](const Sort& o) { write_sort(*this, instr, o); },
                 [&](const Convolve& o) { write_convolve(*this, instr, o); },
                 [&](const Pool& o) { write_pool(*this, instr, o); },
                 [&](const Attend& o) { write_attend(*this, instr, o); },
                 [&](const AttendBack& o) { write_attend_back(*this, instr, o); },
                 [&](const Random& o) { write_random(*this, instr, o); },
                 [&](const AxisIndex& o) { define(instr.outputs[0], coordinate(o.axes)); },
                 [&](const Constant& o) {
                   const Value& out = value(instr.outputs[0]);
                   define(instr.outputs[0], w.constant(o.data, element_of(out.dtype), out.shape));
                 },
                 [&](const Host& o) { write_host(*this, instr, o); },
                 [&](const View& o) { write_view(*this, instr, o); },
                 [&](const Shard& o) { write_shard(*this, instr, o); },
                 [&](const AllReduce& o) { write_all_reduce(*this, instr, o); },
                 [&](const ReduceScatter& o) { write_reduce_scatter(*this, instr, o); },
                 [&](const AllGather& o) { write_all_gather(*this, instr, o); },
                 [&](const AllToAll& o) { write_all_to_all(*this, instr, o); },
                 [&](const Permute& o) { write_permute(*this, instr, o); },
                 [&](const Done&) {},  // XLA orders and overlaps collectives itself
                 [&](const Loop& o) { write_loop(*this, instr, o); },
                 [&](const Fused& o) { write_fused(*this, instr, o); },
             },
             instr.operation);
}

}  // namespace weft::stablehlo
