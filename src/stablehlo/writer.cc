#include "stablehlo/writer.h"

#include <limits>
#include <numeric>

#include "base/index.h"
#include "base/str.h"

namespace weft::stablehlo {

std::string ids_text(const Terms& terms) {
  std::vector<std::string> ids;
  for (const Term& term : terms) ids.push_back(term.id);
  return join(ids, ", ");
}
std::string types_text(const Terms& terms) {
  std::vector<std::string> types;
  for (const Term& term : terms) types.push_back(type_text(term));
  return join(types, ", ");
}
std::string list_text(const Sizes& sizes) { return str("[", join(sizes, ", "), "]"); }
std::string array_text(const Sizes& sizes) {
  return sizes.empty() ? "array<i64>" : str("array<i64: ", join(sizes, ", "), ">");
}

Number start_of(Reduce how, Element element) {
  if (how == Reduce::kSum) return 0;
  if (how == Reduce::kProduct) return 1;
  const bool max = how == Reduce::kMax;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (is_float(element)) return max ? -kInf : kInf;
  if (element == "i1") return max ? 0 : 1;
  if (element == "ui8") return max ? 0 : 255;
  if (element == "i8") return max ? -128 : 127;
  if (element == "ui32") return max ? std::int64_t{0} : std::int64_t{0xFFFFFFFF};
  if (element == "i32")
    return max ? std::numeric_limits<std::int32_t>::min() : std::numeric_limits<std::int32_t>::max();
  return max ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
}

std::string_view join_of(Reduce how, Element element) {
  const bool truth = element == "i1";
  switch (how) {
    case Reduce::kSum: return truth ? "or" : "add";
    case Reduce::kProduct: return truth ? "and" : "multiply";
    case Reduce::kMax: return truth ? "or" : "maximum";
    case Reduce::kMin: return truth ? "and" : "minimum";
  }
  return "add";
}

std::string Writer::fresh() { return str("%", next_++); }

void Writer::line(const std::string& text) { lines_ += str(std::string(indent_ * 2, ' '), text, "\n"); }

Term Writer::emit(Element element, const Shape& shape, const std::string& operation) {
  Term term{fresh(), element, shape};
  line(str(term.id, " = ", operation, location_));
  return term;
}

Term Writer::argument(Element element, const Shape& shape) { return {fresh(), element, shape}; }

void Writer::locate(const std::string& text) {
  if (text.empty()) {
    location_.clear();
    return;
  }
  const auto [found, is_new] = locations_.emplace(text, static_cast<int>(locations_.size()));
  location_ = str(" loc(#loc", found->second, ")");
}

std::string Writer::locations() const {
  std::vector<std::string> texts(locations_.size());
  for (const auto& [text, number] : locations_) texts[at(number)] = str("#loc", number, " = loc(", quoted(text), ")\n");
  return join(texts, "");
}

// ---- elements

Term Writer::apply(std::string_view op, const Terms& operands) {
  const Term& x = operands[0];
  return emit(x.element, x.shape, str("stablehlo.", op, " ", ids_text(operands), " : ", type_text(x)));
}

Term Writer::compare(std::string_view direction, const Term& x, const Term& y) {
  const char* kind = is_float(x.element) ? "FLOAT" : is_unsigned(x.element) ? "UNSIGNED" : "SIGNED";
  return emit("i1", x.shape,
              str("stablehlo.compare ", direction, ", ", x.id, ", ", y.id, ", ", kind, " : (", types_text({x, y}),
                  ") -> ", type_text("i1", x.shape)));
}

Term Writer::select(const Term& condition, const Term& yes, const Term& no) {
  return emit(yes.element, yes.shape,
              str("stablehlo.select ", ids_text({condition, yes, no}), " : ", types_text({condition, yes})));
}

Term Writer::convert(const Term& x, Element element) {
  if (x.element == element) return x;
  return emit(element, x.shape,
              str("stablehlo.convert ", x.id, " : (", type_text(x), ") -> ", type_text(element, x.shape)));
}

Term Writer::number(const Number& number, Element element, const Shape& shape) {
  return emit(element, shape,
              str("stablehlo.constant dense<", literal_text(number, element), "> : ", type_text(element, shape)));
}

Term Writer::constant(const std::vector<Number>& numbers, Element element, const Shape& shape) {
  return emit(element, shape,
              str("stablehlo.constant ", dense_text(numbers, element, shape), " : ", type_text(element, shape)));
}

Term Writer::iota(const Shape& shape, std::string_view dim, Element element) {
  return emit(element, shape, str("stablehlo.iota dim = ", shape.position(dim), " : ", type_text(element, shape)));
}

Term Writer::generic(std::string_view op, const Terms& operands, std::string_view attributes, Element element,
                     const Shape& shape) {
  return emit(element, shape,
              str("\"stablehlo.", op, "\"(", ids_text(operands), ")", attributes.empty() ? "" : " ", attributes, " : (",
                  types_text(operands), ") -> ", type_text(element, shape)));
}

// ---- regions

std::string Writer::block(const Terms& arguments) const {
  std::vector<std::string> texts;
  for (const Term& term : arguments) texts.push_back(str(term.id, ": ", type_text(term)));
  return str("^bb0(", join(texts, ", "), "):");
}

Terms Writer::loop(const Terms& carried, const Terms& outside, const Condition& condition, const LoopBody& body) {
  Terms first = carried;
  first.insert(first.end(), outside.begin(), outside.end());
  const std::string loop_location = location_, id = fresh();
  line(str(id, ":", first.size(), " = \"stablehlo.while\"(", ids_text(first), ") ({"));
  const auto region = [&](const auto& write) {
    Terms arguments;
    for (const Term& term : first) arguments.push_back(argument(term.element, term.shape));
    line(block(arguments));
    scopes_.emplace_back();
    ++indent_;
    const Terms given = write(arguments);
    line(str("\"stablehlo.return\"(", ids_text(given), ") : (", types_text(given), ") -> ()"));
    --indent_;
    scopes_.pop_back();
  };
  const auto count = static_cast<std::ptrdiff_t>(carried.size());
  region([&](const Terms& all) { return Terms{condition(Terms(all.begin(), all.begin() + count))}; });
  line("}, {");
  region([&](const Terms& all) {
    const Terms unchanged(all.begin() + count, all.end());
    Terms next = body(Terms(all.begin(), all.begin() + count), unchanged);
    next.insert(next.end(), unchanged.begin(), unchanged.end());
    return next;
  });
  line(str("}) : (", types_text(first), ") -> (", types_text(first), ")", loop_location));
  Terms last = carried;
  for (std::size_t i = 0; i < last.size(); ++i) last[i].id = str(id, "#", i);
  return last;
}

Terms Writer::barrier(const Terms& values) {
  const std::string id = fresh();
  line(str(id, values.size() == 1 ? "" : str(":", values.size()), " = stablehlo.optimization_barrier ",
           ids_text(values), " : ", types_text(values), location_));
  Terms same = values;
  for (std::size_t i = 0; i < same.size(); ++i) same[i].id = values.size() == 1 ? id : str(id, "#", i);
  return same;
}

Terms Writer::library_call(std::string_view name, const Terms& operands, std::string_view description,
                           const Terms& results, const std::vector<Sizes>& orders) {
  const auto layout = [](const Sizes& order) {
    return str("dense<", list_text(order), "> : tensor<", order.size(), "xindex>");
  };
  std::vector<std::string> of_operands, of_results;
  for (const Term& operand : operands) {
    Sizes order(operand.shape.rank());
    std::iota(order.rbegin(), order.rend(), 0);
    of_operands.push_back(layout(order));
  }
  for (const Sizes& order : orders) of_results.push_back(layout(order));
  of_results.push_back(layout({0}));
  const std::string id = fresh();
  line(str(id, ":", results.size() + 1, " = stablehlo.custom_call @", name, "(", ids_text(operands),
           ") {api_version = 2 : i32, backend_config = ", quoted(description), ", operand_layouts = [",
           join(of_operands, ", "), "], result_layouts = [", join(of_results, ", "), "]} : (", types_text(operands),
           ") -> (", types_text(results), ", tensor<0xui8>)", location_));
  Terms named = results;
  for (std::size_t i = 0; i < named.size(); ++i) named[i].id = str(id, "#", i);
  return named;
}

Terms Writer::with_region(std::string_view op, const Terms& operands, const std::vector<Element>& elements,
                          const Region& region, std::string_view attributes, const Terms& results) {
  const std::string id = fresh();
  line(str(id, results.size() == 1 ? "" : str(":", results.size()), " = \"stablehlo.", op, "\"(", ids_text(operands),
           ") ({"));
  Terms arguments;
  for (const Element element : elements) arguments.push_back(argument(element, {}));
  line(block(arguments));
  ++indent_;
  scopes_.emplace_back();
  const Term given = region(arguments);
  line(str("\"stablehlo.return\"(", given.id, ") : (", type_text(given), ") -> ()"));
  scopes_.pop_back();
  --indent_;
  line(str("})", attributes.empty() ? "" : " ", attributes, " : (", types_text(operands), ") -> ",
           results.size() == 1 ? types_text(results) : str("(", types_text(results), ")"), location_));
  Terms named = results;
  for (std::size_t i = 0; i < named.size(); ++i) named[i].id = results.size() == 1 ? id : str(id, "#", i);
  return named;
}

}  // namespace weft::stablehlo
