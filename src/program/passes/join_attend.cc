#include <algorithm>

#include "program/attend.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

namespace weft {

namespace {

// An attend_back, what puts its results side by side, and the views in between.
struct Found {
  int back = -1;
  std::vector<int> dropped;  // positions: views and the concat
};

class Finder {
 public:
  explicit Finder(const Program& program)
      : p_(program), uses_(program), defined_(definitions_of(program)), strides_(program) {}

  // The pattern that ends in the concat at `position`; `back` is -1 if there is none.
  Found at_concat(int position) const {
    const Instr& concat = p_.body[at(position)];
    if (concat.inputs.size() != 3) return {};
    Found found{-1, {position}};
    for (int i = 0; i < 3; ++i) {
      const int back = source(concat, i, position, found);
      if (back < 0 || (i > 0 && back != found.back)) return {};
      found.back = back;
    }
    return found;
  }

 private:
  // The attend_back whose i-th result is the i-th operand, through views that only rename; -1 if it is none.
  int source(const Instr& concat, int i, int user, Found& found) const {
    const ValueId operand = concat.inputs[at(i)];
    ValueId id = operand;
    while (uses_.only_user(id) == user) {
      const int position = defined_[id];
      if (position < 0) return -1;
      const Instr& instr = p_.body[at(position)];
      if (const auto* operation = instr.as<AttendBack>())
        return operation->joined.empty() && instr.outputs[at(i)] == id && fits(*operation, instr, concat, i) ? position
                                                                                                             : -1;
      if (!instr.is<View>()) return -1;
      found.dropped.push_back(position);
      user = position;
      id = instr.inputs[0];
    }
    return -1;
  }

  // Whether the operand is the result as it lies, with q's names and one index more.
  bool fits(const AttendBack& operation, const Instr& back, const Instr& concat, int i) const {
    const std::string& dim = concat.as<Concat>()->dim;
    const ValueId operand = concat.inputs[at(i)];
    const Shape &shape = p_.values[operand].shape, &made = p_.values[back.outputs[at(i)]].shape;
    if (operation.length.empty() || shape.size_of(dim) != 1 || made.has(dim)) return false;
    if (!strides_.is_dense(operand)) return false;
    const Shape rest = shape.minus({shape.dim(dim)});
    if (!rest.has(operation.length) || !rest.has(operation.key)) return false;
    AttendBack joined = operation;
    joined.joined = dim;
    return joined_part(joined, shape, i) == made;
  }

  const Program& p_;
  Uses uses_;
  ByValue<int> defined_;
  ValueStrides strides_;
};

}  // namespace

Program join_attend(Program program, const PassOptions&) {
  const auto is_back = [](const Instr& instr) { return instr.is<AttendBack>(); };
  if (std::none_of(program.body.begin(), program.body.end(), is_back)) return program;
  const Finder finder(program);
  std::vector<bool> dropped(program.body.size());
  for (int i = 0; i < static_cast<int>(program.body.size()); ++i) {
    const auto* concat = program.body[at(i)].as<Concat>();
    if (!concat) continue;
    const Found found = finder.at_concat(i);
    if (found.back < 0) continue;
    Instr& back = program.body[at(found.back)];
    std::vector<ValueId> outputs = program.body[at(i)].outputs;
    if (const int of_bias = bias_derivative(back); of_bias >= 0) outputs.push_back(back.outputs[at(of_bias)]);
    std::get<AttendBack>(back.operation).joined = concat->dim;
    back.outputs = std::move(outputs);
    for (int position : found.dropped) dropped[at(position)] = true;
  }
  std::vector<Instr> kept;
  for (std::size_t i = 0; i < program.body.size(); ++i)
    if (!dropped[i]) kept.push_back(std::move(program.body[i]));
  program.body = std::move(kept);
  return program;
}

}  // namespace weft
