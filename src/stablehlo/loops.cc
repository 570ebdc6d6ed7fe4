// loop and fused: the blocks inside of instructions.
#include "base/index.h"
#include "base/str.h"
#include "stablehlo/block.h"

namespace weft::stablehlo {

// Carried: the iteration, whether the loop goes on if it can stop, and the instruction's carried values.
void write_loop(Block& block, const Instr& instr, const Loop& operation) {
  Writer& w = block.w;
  const std::size_t values = instr.outputs.size(), before = operation.stops ? 2 : 1;
  const Element counter = index_element(operation.trips);
  Terms carried = {w.number(0, counter)}, outside;
  if (operation.stops) carried.push_back(w.number(1, "i1"));
  for (std::size_t i = 0; i < instr.inputs.size(); ++i)
    (i < values ? carried : outside).push_back(block.term(instr.inputs[i]));
  outside.push_back(block.seed);
  outside.push_back(block.step);
  const auto condition = [&](const Terms& now) {
    const Term more = w.compare("LT", now[0], w.number(operation.trips, counter));
    return operation.stops ? w.apply("and", {more, now[1]}) : more;
  };
  const auto body = [&](const Terms& now, const Terms& around) {
    Block inner(block.state, *operation.body, around[around.size() - 2], around.back(), true);
    const std::vector<ProgramInput>& inputs = operation.body->inputs;
    inner.define(inputs[0].value, w.convert(now[0], element_of(inner.value(inputs[0].value).dtype)));
    for (std::size_t i = 0; i < instr.inputs.size(); ++i)
      inner.define(inputs[i + 1].value, i < values ? now[before + i] : around[i - values]);
    inner.write();
    Terms next = {w.apply("add", {now[0], w.number(1, counter)})};
    if (operation.stops) next.push_back(w.apply("not", {inner.term(operation.body->outputs.back().value)}));
    for (std::size_t i = 0; i < values; ++i) next.push_back(inner.term(operation.body->outputs[i].value));
    return next;
  };
  const Terms last = w.loop(carried, outside, condition, body);
  for (std::size_t i = 0; i < values; ++i) block.define(instr.outputs[i], last[before + i]);
}

// XLA fuses by itself.
void write_fused(Block& block, const Instr& instr, const Fused& operation) {
  Block inner(block, *operation.body);
  for (std::size_t i = 0; i < instr.inputs.size(); ++i)
    inner.define(operation.body->inputs[i].value, block.term(instr.inputs[i]));
  inner.write();
  for (std::size_t i = 0; i < instr.outputs.size(); ++i)
    block.define(instr.outputs[i], inner.term(operation.body->outputs[i].value));
}

}  // namespace weft::stablehlo
