#include <algorithm>
#include <sstream>
#include <utility>

#include "base/index.h"
#include "base/str.h"
#include "program/each_field.h"
#include "program/text.h"
#include "program/text_detail.h"

namespace weft {

namespace {

using text::number_text;
using text::quoted;
using text::word_or_quoted;

// Axes by name; a position outside the mesh prints as "?7".
std::string axes_text(const Axes& axes, const Mesh& mesh) {
  if (axes.empty()) return "-";
  std::vector<std::string> names;
  for (int axis : axes) {
    const bool known = axis >= 0 && at(axis) < mesh.axes().size();
    names.push_back(known ? mesh.axes()[at(axis)].name : str("?", axis));
  }
  return join(names, "+");
}

std::string sharding_text(const Sharding& sharding, const Shape& shape, const Mesh& mesh) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < sharding.dims.size(); ++i)
    if (!sharding.dims[i].empty())
      words.push_back(str(i < shape.rank() ? shape[i].name : "?", ":", axes_text(sharding.dims[i], mesh)));
  if (sharding.is_partial()) words.push_back(str("| ", sharding.pending, ":", axes_text(sharding.partial, mesh)));
  return str("{", join(words, " "), "}");
}

std::string shape_text(const Shape& shape) {
  std::string out = "[";
  for (const Dim& dim : shape) out += (out.size() > 1 ? " " : "") + dim.name + "=" + std::to_string(dim.size);
  return out + "]";
}

// --- One overload per kind of field ---

std::string field_text(const std::string& word, const Mesh&) { return word_or_quoted(word); }
std::string field_text(const Axes& axes, const Mesh& mesh) { return axes_text(axes, mesh); }
std::string field_text(Reduce how, const Mesh&) { return std::string(name_of(how)); }
std::string field_text(Distribution distribution, const Mesh&) { return name_of(distribution); }
std::string field_text(Direction direction, const Mesh&) { return name_of(direction); }
std::string field_text(PoolKind kind, const Mesh&) { return name_of(kind); }
std::string field_text(const WindowDim& w, const Mesh&) {
  const std::string filter = w.filter.empty() ? "" : ":" + word_or_quoted(w.filter);
  return str("{", word_or_quoted(w.dim), filter, " size=", w.size, " stride=", w.stride, " dilation=", w.dilation,
             " before=", w.before, "}");
}
std::string field_text(bool yes, const Mesh&) { return yes ? "true" : "false"; }
std::string field_text(double number, const Mesh&) { return number_text(number); }
std::string field_text(const Number& number, const Mesh&) { return number_text(number); }
std::string field_text(std::int64_t number, const Mesh&) { return std::to_string(number); }
std::string field_text(std::uint64_t number, const Mesh&) { return std::to_string(number); }
std::string field_text(const std::vector<MapNode>& nodes, const Mesh&) { return text::expression_text(nodes); }

template <class Item>
std::string field_text(const std::vector<Item>& numbers, const Mesh& mesh) {
  std::vector<std::string> words;
  for (const Item& number : numbers) words.push_back(field_text(number, mesh));
  return str("[", join(words, " "), "]");
}

std::string fields_text(const Operation& operation, const Mesh& mesh) {
  std::string out;
  each_field(operation, [&](const char* name, const auto& field) {
    out += std::string(" ") + name + "=" + field_text(field, mesh);
  });
  return out;
}

std::string value_text(const Program& p, ValueId id) {
  if (!p.values.has(id)) return str("%", id, "?");
  const std::string& name = p.values[id].name;
  return name.empty() ? str("%", id) : str("%", id, ".", word_or_quoted(name));
}

std::string definition_text(const Program& p, ValueId id) {
  if (!p.values.has(id)) return value_text(p, id);
  const Value& v = p.values[id];
  return str(value_text(p, id), " ", v.dtype, " ", shape_text(v.shape), " ",
             sharding_text(v.sharding, v.shape, p.mesh));
}

std::string left_side(const Program& p, const Instr& instr) {
  std::vector<std::string> outputs;
  for (ValueId id : instr.outputs) outputs.push_back(definition_text(p, id));
  return join(outputs, ", ");
}

std::string right_side(const Program& p, const Instr& instr) {
  std::vector<std::string> inputs;
  for (ValueId id : instr.inputs) inputs.push_back(value_text(p, id));
  std::string out = name_of(instr);
  if (!inputs.empty()) out += " " + join(inputs, ", ");
  out += str(fields_text(instr.operation, p.mesh), "  @", name_of(instr.origin.phase));
  if (instr.origin.recompute) out += str("#", instr.origin.recompute);
  for (const std::string& cause : instr.origin.causes) out += " " + weft::quoted(cause);
  return out;
}

std::string line_text(const Program& p, const Instr& instr, std::string left, std::size_t width) {
  if (instr.outputs.empty()) return right_side(p, instr);
  if (left.size() < width) left.resize(width, ' ');
  return str(left, " = ", right_side(p, instr));
}

// The equals signs stand below each other, but for lines whose left side is longer than this.
constexpr std::size_t kWidestLeftSide = 80;

}  // namespace

std::string to_text(const Program& program, const Instr& instr) {
  return line_text(program, instr, left_side(program, instr), 0);
}

std::string work_text(const Program& program, const Instr& instr) {
  return name_of(instr) + fields_text(instr.operation, program.mesh);
}

namespace {

void print_lines(std::ostream& out, const Program& p, const std::string& indent) {
  for (const ProgramInput& input : p.inputs)
    out << indent << "input " << word_or_quoted(input.name) << " " << definition_text(p, input.value) << "\n";
  for (const ProgramVariable& variable : p.variables) {
    out << indent << "variable " << word_or_quoted(variable.name) << " " << definition_text(p, variable.value);
    out << (variable.trainable ? " trainable" : " fixed");
    if (variable.update) out << " update=" << value_text(p, *variable.update);
    out << "\n";
  }
  std::size_t width = 0;
  std::vector<std::string> left;
  for (const Instr& instr : p.body) {
    left.push_back(left_side(p, instr));
    if (left.back().size() <= kWidestLeftSide) width = std::max(width, left.back().size());
  }
  for (std::size_t i = 0; i < p.body.size(); ++i) {
    out << indent << line_text(p, p.body[i], std::move(left[i]), width) << "\n";
    if (const Program* body = body_of(p.body[i])) print_lines(out, *body, indent + "  ");
  }
  for (const ProgramOutput& output : p.outputs)
    out << indent << "output " << word_or_quoted(output.name) << " " << value_text(p, output.value) << "\n";
  out << indent << "end\n";
}

}  // namespace

std::string to_text(const Program& p) {
  std::ostringstream out;
  out << "weft program 1\nmesh " << p.mesh.text() << "\nlayout " << weft::quoted(p.layout) << "\n";
  print_lines(out, p, "");
  return out.str();
}

}  // namespace weft
