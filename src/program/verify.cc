#include "program/verify.h"

#include <algorithm>
#include <set>

#include "base/index.h"
#include "base/str.h"
#include "language/shape_math.h"
#include "program/partial.h"
#include "program/text.h"
#include "program/verify_rules.h"
#include "weft/error.h"

namespace weft {

namespace {

// The rule is given in parts: its text is made only where it is broken.
template <class... Parts>
void demand(bool holds, const Parts&... rule) {
  if (!holds) throw BrokenRule{str(rule...)};
}

// Where a value's first element lies in the storage of its root, in elements: the same place on every processor, or
// anywhere between two if it is a shard.
struct Extent {
  ValueId root;
  std::int64_t first = 0, last = 0;
  std::vector<std::int64_t> strides;
};

class Verifier {
 public:
  explicit Verifier(const Program& program)
      : p_(program),
        defined_(program.values.size()),
        in_flight_(program.values.size()),
        extents_(program.values.size()) {}

  void run() {
    for (const ProgramInput& input : p_.inputs)
      within([&] { return str("input ", input.name); }, [&] { define(input.value); });
    for (const ProgramVariable& variable : p_.variables)
      within([&] { return str("variable ", variable.name); }, [&] { define(variable.value); });
    within([] { return "the inputs and variables"; }, [&] { unlike_names(); });
    find_dones();
    for (const Instr& instr : p_.body) within([&] { return to_text(p_, instr); }, [&] { instruction(instr); });
    for (const ProgramVariable& variable : p_.variables)
      if (variable.update) within([&] { return str("variable ", variable.name); }, [&] { update(variable); });
    for (const ProgramOutput& output : p_.outputs)
      within([&] { return str("output ", output.name); }, [&] { this->output(output.value); });
    within([] { return "the loops"; },
           [&] { demand(loops_stop_together(p_), "what ends a loop is the same on every processor"); });
  }

 private:
  // A loop's body. What it carries may wait for a sum; the loop has checked the types.
  void run_body() {
    demand(p_.variables.empty(), "a body has no variables");
    for (const ProgramInput& input : p_.inputs)
      within([&] { return str("input ", input.name); }, [&] { define(input.value); });
    find_dones();
    for (const Instr& instr : p_.body) within([&] { return to_text(p_, instr); }, [&] { instruction(instr); });
    for (const ProgramOutput& output : p_.outputs)
      within([&] { return str("output ", output.name); },
             [&] {
               used(output.value);
               demand(is_dense(output.value), "what a body gives is dense");
             });
  }

  void find_dones() {
    for (const Instr& instr : p_.body)
      if (instr.is<Done>())
        for (ValueId id : instr.inputs)
          if (p_.values.has(id)) has_done_.insert(id);
  }

  void done(const Instr& instr) {
    demand(instr.outputs.empty(), "gives 0 values");
    for (ValueId id : instr.inputs) demand(p_.values.has(id), "%", id, " is a value of the program");
    demand(!instr.inputs.empty() && in_flight_[instr.inputs[0]] != nullptr, "finishes a collective");
    demand(in_flight_[instr.inputs[0]]->outputs == instr.inputs, "names all that its collective gives, in order");
    for (ValueId id : instr.inputs) in_flight_[id] = nullptr;
  }

  void loop(const Instr& instr, const Loop& loop) {
    const Program& body = *loop.body;
    const std::size_t carried = instr.outputs.size();
    demand(loop.trips >= 1 && loop.trips <= kMostTrips, "runs 1 to ", kMostTrips, " times");
    demand(instr.inputs.size() >= carried, "takes a first value for everything it carries");
    demand(body.mesh == p_.mesh, "a body has the mesh of the program around it");
    demand(body.inputs.size() == instr.inputs.size() + 1, "a body's inputs are the iteration and the loop's operands");
    demand(body.outputs.size() == carried + (loop.stops ? 1 : 0), "a body gives the next of all that is carried");
    demand(has_type(body, body.inputs[0].value, {"", DType::kI64, {}, {}}), "the iteration is an i64 scalar");
    for (std::size_t i = 0; i < instr.inputs.size(); ++i) {
      const Value& v = p_.values[instr.inputs[i]];
      demand(has_type(body, body.inputs[i + 1].value, v), "operand ", i, " has the type of the body's input");
      demand(is_dense(instr.inputs[i]), "operand ", i, " is dense");
    }
    for (std::size_t k = 0; k < carried; ++k) {
      const Value& v = p_.values[instr.inputs[k]];
      demand(!v.sharding.is_partial() || v.sharding.pending == Reduce::kSum, "what is carried waits for sums only");
      demand(has_type(body, body.outputs[k].value, v) && has_type(p_, instr.outputs[k], v),
             "the first, next and last of carried value ", k, " have one type");
    }
    if (loop.stops)
      demand(has_type(body, body.outputs.back().value, {"", DType::kBool, {}, {}}),
             "what ends a loop is a bool scalar");
    Verifier(body).run_body();
  }

  void fused(const Instr& instr, const Fused& operation) {
    const Program& body = *operation.body;
    demand(body.mesh == p_.mesh, "a body has the mesh of the program around it");
    demand(body.inputs.size() == instr.inputs.size(), "a fused body's inputs are the operands");
    demand(body.outputs.size() == instr.outputs.size(), "a fused body gives the outputs");
    for (std::size_t i = 0; i < instr.inputs.size(); ++i)
      demand(has_type(body, body.inputs[i].value, p_.values[instr.inputs[i]]), "operand ", i,
             " has the type of the body's input");
    for (std::size_t k = 0; k < instr.outputs.size(); ++k)
      demand(has_type(body, body.outputs[k].value, p_.values[instr.outputs[k]]), "output ", k,
             " has the type of the body's output");
    for (const Instr& inner : body.body)
      demand(inner.is<Map>() || inner.is<ReduceDims>(), "a fused body has maps and reductions alone");
    Verifier(body).run_body();
  }

  static bool has_type(const Program& p, ValueId id, const Value& v) {
    if (!p.values.has(id)) return false;
    const Value& have = p.values[id];
    return have.dtype == v.dtype && have.shape == v.shape && have.sharding == v.sharding;
  }

  // Runs a check; the line is made only where it fails. What a rule asks of shapes may be refused by these themselves.
  template <class Line, class Check>
  void within(Line line, Check check) {
    try {
      check();
    } catch (const BrokenRule& broken) {
      throw Violation{broken.rule, line()};
    } catch (const Error& error) {
      throw Violation{error.text().what, line()};
    }
  }

  void instruction(const Instr& instr) {
    if (instr.is<Done>()) return done(instr);
    for (ValueId id : instr.inputs) used(id);
    for (ValueId id : instr.outputs) define(id);
    if (const auto* operation = instr.as<Loop>()) return loop(instr, *operation);
    if (const auto* operation = instr.as<Fused>()) return fused(instr, *operation);
    if (is_collective(instr))
      for (ValueId id : instr.outputs)
        if (has_done_.contains(id)) in_flight_[id] = &instr;
    check_instruction({p_, instr});
    if (instr.is<Host>()) whole(instr.inputs[0], "what the host gets");
    // The types of shards and collectives are fixed by result_of, what is pending included.
    else if (!is_collective(instr) && !instr.is<Shard>()) partials(instr);
    if (is_view(instr)) view(instr);
  }

  void used(ValueId id) const {
    demand(p_.values.has(id), "%", id, " is a value of the program");
    demand(defined_[id], "%", id, " is defined before it is used");
    demand(in_flight_[id] == nullptr, "%", id, " is used after its collective is done");
  }

  void define(ValueId id) {
    demand(p_.values.has(id), "%", id, " is a value of the program");
    demand(!defined_[id], "%", id, " is defined once");
    defined_[id] = true;
    const Value& v = p_.values[id];
    demand(v.sharding.dims.size() == v.shape.rank(), "%", id, " has axes for each of its dims");
    std::set<int> seen;
    const auto add = [&](const Axes& axes) {
      for (int axis : axes) {
        demand(axis >= 0 && at(axis) < p_.mesh.axes().size(), "axes of %", id, " are in the mesh");
        demand(seen.insert(axis).second, "an axis occurs once in the sharding of %", id);
      }
    };
    for (const Axes& axes : v.sharding.dims) add(axes);
    add(v.sharding.partial);
    demand(std::is_sorted(v.sharding.partial.begin(), v.sharding.partial.end()), "pending axes of %", id, " ascend");
    demand(v.sharding.is_partial() || v.sharding.pending == Reduce::kSum, "%", id,
           " waits for nothing and so for no kind of reduction");
    extents_[id] = {id, 0, 0, dense_strides(v.shape)};
  }

  void unlike_names() const {
    std::set<std::string> names;
    for (const ProgramInput& input : p_.inputs) demand(names.insert(input.name).second, "names occur once");
    for (const ProgramVariable& variable : p_.variables) demand(names.insert(variable.name).second, "names occur once");
  }

  void whole(ValueId id, const char* what) const {
    used(id);
    demand(!p_.values[id].sharding.is_partial(), what, " waits for no reduction");
  }

  // The host reads an output as it lies.
  void output(ValueId id) const {
    whole(id, "an output");
    demand(is_dense(id), "an output is dense");
  }

  bool is_dense(ValueId id) const {
    const Shape& shape = p_.values[id].shape;
    const std::vector<std::int64_t> dense = dense_strides(shape);
    for (std::size_t i = 0; i < shape.rank(); ++i)
      if (shape[i].size != 1 && extents_[id].strides[i] != dense[i]) return false;
    return true;
  }

  void update(const ProgramVariable& variable) const {
    whole(*variable.update, "an update");
    const Value &have = p_.values[variable.value], &want = p_.values[*variable.update];
    demand(have.dtype == want.dtype && have.shape == want.shape && have.sharding == want.sharding,
           "an update has the variable's type");
  }

  // What waits for a reduction over an axis passes only where lets_pass allows, and then the output waits too.
  void partials(const Instr& instr) const {
    std::set<int> axes;
    for (ValueId id : instr.inputs)
      for (int axis : p_.values[id].sharding.partial)
        if (p_.mesh.axes()[at(axis)].size > 1) axes.insert(axis);
    for (int axis : axes) pending_along(instr, axis);
  }

  void pending_along(const Instr& instr, int axis) const {
    const std::string& name = p_.mesh.axes()[at(axis)].name;
    std::vector<bool> pending;
    std::optional<Reduce> how;
    for (ValueId id : instr.inputs) {
      const Sharding& sharding = p_.values[id].sharding;
      const bool waits = std::find(sharding.partial.begin(), sharding.partial.end(), axis) != sharding.partial.end();
      pending.push_back(waits);
      demand(waits || !sharding.uses(axis), "%", id, " is split over axis '", name, "', pending in another operand");
      if (!waits) continue;
      demand(!how || *how == sharding.pending, "operands wait for one kind of reduction over axis '", name, "'");
      how = sharding.pending;
    }
    demand(lets_pass(instr, *how, pending), "a ", *how, " pending over axis '", name, "' cannot pass this");
    for (ValueId id : instr.outputs) {
      const Sharding& sharding = p_.values[id].sharding;
      const bool waits = std::find(sharding.partial.begin(), sharding.partial.end(), axis) != sharding.partial.end();
      demand(waits && sharding.pending == *how, "the ", *how, " over axis '", name, "' is pending in %", id, " too");
    }
  }

  void view(const Instr& instr) {
    const Extent& x = extents_[instr.inputs[0]];
    Extent& y = extents_[instr.outputs[0]];
    y = x;
    const Shape& shape = p_.values[instr.outputs[0]].shape;
    if (const auto* shard = instr.as<Shard>()) {
      const std::size_t position = shape.position(shard->dim);
      const std::int64_t reach = (p_.mesh.size(shard->axes) - 1) * shape[position].size * x.strides[position];
      (reach < 0 ? y.first : y.last) += reach;
      return;
    }
    const View& view = *instr.as<View>();
    __int128 first = x.first + view.offset, last = x.last + view.offset;
    for (std::size_t i = 0; i < shape.rank(); ++i) {
      const __int128 reach = static_cast<__int128>(shape[i].size - 1) * view.strides[i];
      (reach < 0 ? first : last) += reach;
    }
    demand(first >= 0 && last < p_.values[x.root].shape.elements(), "a view stays inside its operand's storage");
    y.first += view.offset;
    y.last += view.offset;
    y.strides = view.strides;
  }

  const Program& p_;
  ByValue<bool> defined_;
  std::set<ValueId> has_done_;       // what a done names
  ByValue<const Instr*> in_flight_;  // per value: the collective that gives it and is not done yet
  ByValue<Extent> extents_;
};

}  // namespace

std::optional<Violation> find_breach(const Program& program) {
  try {
    Verifier(program).run();
  } catch (Violation& breach) {
    return std::move(breach);
  }
  return std::nullopt;
}

void verify(const Program& program, std::string_view after) {
  if (const std::optional<Violation> breach = find_breach(program))
    throw InternalError(str("after pass '", after, "': ", breach->rule, "\n  in: ", breach->line));
}

Program parse_verified(std::string_view text) {
  Program program = parse_program(text);
  if (const std::optional<Violation> breach = find_breach(program))
    throw UserError({.code = "program.broken-rule",
                     .what = str("the program breaks a rule: ", breach->rule),
                     .where = str("program text: ", breach->line.substr(0, 200)),
                     .fix = "compare the line with what weft explain --program writes"});
  return program;
}

}  // namespace weft
