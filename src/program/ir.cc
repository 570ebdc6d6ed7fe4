#include "program/ir.h"

#include <array>

namespace weft {

Body::Body() : program_(std::make_unique<Program>()) {}
Body::Body(Program program) : program_(std::make_unique<Program>(std::move(program))) {}
Body::Body(const Body& other) : program_(std::make_unique<Program>(*other)) {}
Body::Body(Body&& other) noexcept = default;
Body::~Body() = default;
Body& Body::operator=(Body other) noexcept {
  program_.swap(other.program_);
  return *this;
}

Program* body_of(const Instr& instr) {
  if (const auto* loop = instr.as<Loop>()) return &*loop->body;
  if (const auto* fused = instr.as<Fused>()) return &*fused->body;
  return nullptr;
}

bool is_view(const Instr& instr) { return instr.is<View>() || instr.is<Shard>(); }

bool is_collective(const Instr& instr) { return !axes_of(instr).empty(); }

Axes axes_of(const Instr& instr) {
  if (const auto* w = instr.as<AllReduce>()) return w->axes;
  if (const auto* w = instr.as<ReduceScatter>()) return w->axes;
  if (const auto* w = instr.as<AllGather>()) return w->axes;
  if (const auto* w = instr.as<AllToAll>()) return w->axes;
  if (const auto* w = instr.as<Permute>()) return w->axes;
  return {};
}

const char* name_of(const Instr& instr) {
  return std::visit([](const auto& operation) { return std::decay_t<decltype(operation)>::kName; }, instr.operation);
}

const char* name_of(Distribution distribution) {
  static constexpr std::array kNames = {"uniform", "normal", "truncated_normal", "bernoulli", "bits"};
  return kNames[at(distribution)];
}

const char* name_of(Direction direction) {
  static constexpr std::array kNames = {"forward", "to_input", "to_filter"};
  return kNames[at(direction)];
}

WindowRoles roles_of(const Instr& instr) {
  const std::vector<ValueId>&in = instr.inputs, &out = instr.outputs;
  if (const auto* w = instr.as<Convolve>()) {
    if (w->direction == Direction::kForward) return {in[0], out[0], in[1]};
    if (w->direction == Direction::kToInput) return {out[0], in[0], in[1]};
    return {in[0], in[1], out[0]};
  }
  const Pool& w = std::get<Pool>(instr.operation);
  if (w.kind == PoolKind::kWinners) return {in[0], in[1], {}};
  return w.direction == Direction::kForward ? WindowRoles{in[0], out[0], {}} : WindowRoles{out[0], in[0], {}};
}

const char* name_of(PoolKind kind) {
  static constexpr std::array kNames = {"max", "sum", "winners"};
  return kNames[at(kind)];
}

}  // namespace weft
