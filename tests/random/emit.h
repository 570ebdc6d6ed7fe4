// A recipe as C++: the graph in calls of the public functions, and a test that checks it as the random graphs are checked.
#pragma once

#include <cctype>
#include <cstdio>

#include "base/str.h"
#include "check.h"

namespace weft::random_graphs {

inline std::string code_of(const Ref& ref) { return str("v", ref.step); }
inline std::string code_of(const Refs& refs) {
  std::vector<std::string> names;
  for (const Ref& ref : refs) names.push_back(code_of(ref));
  return str("Tensors{", join(names, ", "), "}");
}
inline std::string code_of(const Dim& dim) { return str("Dim{\"", dim.name, "\", ", dim.size, "}"); }
inline std::string code_of(const Shape& shape) {
  std::vector<std::string> dims;
  for (const Dim& dim : shape) dims.push_back(code_of(dim));
  return str("Shape{", join(dims, ", "), "}");
}
inline std::string code_of(double number) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", number);
  return std::string(text).find_first_of(".en") == std::string::npos ? str(text, ".0") : text;
}
inline std::string code_of(std::int64_t number) { return std::to_string(number); }
inline std::string code_of(bool flag) { return flag ? "true" : "false"; }
inline std::string code_of(const std::string& text) { return str("\"", text, "\""); }
inline std::string code_of(DType dtype) {
  std::string name(name_of(dtype));
  if (dtype == DType::kBool) return "DType::kBool";
  for (char& c : name) c = static_cast<char>(std::toupper(c));
  return "DType::k" + name;
}
inline std::string code_of(const Arg& arg) {
  return std::visit([](const auto& value) { return code_of(value); }, arg);
}

// The step's call with its arguments in the place of "a.kind(n)".
inline std::string code_of(const Step& step) {
  const std::string& code = call_of(step).code;
  std::string text;
  for (std::size_t i = 0; i < code.size();) {
    const bool starts = code.compare(i, 2, "a.") == 0 &&
                        (i == 0 || !(std::isalnum(static_cast<unsigned char>(code[i - 1])) || code[i - 1] == '_'));
    if (!starts) {
      text += code[i++];
      continue;
    }
    const std::size_t open = code.find('(', i), close = code.find(')', open);
    text += code_of(step.args.at(static_cast<std::size_t>(std::stoi(code.substr(open + 1, close - open - 1)))));
    i = close + 1;
  }
  return text;
}

constexpr const char* kEmittedTop = R"(#include <gtest/gtest.h>

#include "random/check.h"

)";
constexpr const char* kEmittedGraph = R"( {
namespace {

Built built_graph() {
  Built built;
  Graph& g = built.graph;
)";

inline std::string ends_code(const Recipe& recipe) {
  std::string text = str("  built.fetch = ", code_of(recipe.outputs), ";\n");
  if (recipe.loss.step >= 0) {
    text += str("  differentiate(built, ", code_of(recipe.loss), ", ", code_of(recipe.by), ");\n");
    if (recipe.second)
      text += str("  if (const Tensor curved = curvature(built.differentiated[0].derivatives))\n",
                  "    differentiate(built, curved, ", code_of(recipe.by), ");\n");
    text += str("  built.update = optim::sgd(", code_of(recipe.loss), ", ",
                code_of(reached(recipe, build(recipe).values)), ", ", code_of(kRate), ");\n");
  }
  for (const Change& change : recipe.changes)
    text += str("  built.update.push_back(", change.how, "(", code_of(change.variable), ", ", code_of(change.value),
                "));\n");
  for (std::size_t i = 0; i < recipe.metrics.size(); ++i)
    text += str("  scalar_metric(\"m", i, "\", ", code_of(recipe.metrics[i]), ");\n");
  std::vector<std::string> feeds;
  for (std::size_t i = 0; i < recipe.steps.size(); ++i) {
    const Step& step = recipe.steps[i];
    if (!is_input(step)) continue;
    const bool extreme = step.function == "input_extreme";
    std::vector<std::string> args;
    for (std::size_t k = 1; k < step.args.size(); ++k)
      if (!extreme || k != 5) args.push_back(code_of(step.args[k]));  // extreme numbers are not whole
    feeds.push_back(str("{v", i, extreme ? ", extremes(" : ", filled(", join(args, ", "), ")}"));
  }
  return str(text, "  built.feeds = {", join(feeds, ",\n                 "), "};\n  return built;\n}\n\n");
}

inline std::string conditions_code(const Conditions& c) {
  std::string text = str("{.wide = ", code_of(c.wide));
  if (c.on_reference) text += ", .on_reference = true";
  if (c.extreme) text += ", .extreme = true";
  if (c.own_layouts) text += ", .own_layouts = true";
  if (c.own_derivatives) text += ", .own_derivatives = true";
  text += str(", .mesh = \"", c.mesh, "\", .layout = \"", c.layout, "\"");
  if (!c.store.empty()) text += str(", .store = \"", c.store, "\", .store_level = ", c.store_level);
  return text + "}";
}

// `failure` is what was found, for the comment on top.
inline std::string emit(const Recipe& recipe, const std::string& kind, const std::string& detail) {
  std::string text = str("// Graph ", recipe.seed, " of tests/random, cut down. Found: ", kind, ".\n");
  for (const std::string& line : split_words(detail, "\n")) text += str("//   ", line, "\n");
  text += "// To run it again, copy it to tests/random/<name>_test.cc.\n// clang-format off\n";
  const std::string place = str("namespace weft::random_graphs::graph_", recipe.seed);
  text += str(kEmittedTop, place, kEmittedGraph);
  for (std::size_t i = 0; i < recipe.steps.size(); ++i)
    text += str("  [[maybe_unused]] const Tensor v", i, " = ", code_of(recipe.steps[i]), ";\n");
  text += ends_code(recipe);
  text += str("TEST(FailingGraph, Seed", recipe.seed, ") {\n  const Verdict verdict = check(built_graph(), ",
              conditions_code(conditions_of(recipe)), ", Passes::kAll);\n");
  text += "  EXPECT_FALSE(verdict.failure) << verdict.failure->kind << \"\\n\" << verdict.failure->detail;\n";
  return str(text, "}\n\n}  // namespace\n}  // ", place, "\n");
}

}  // namespace weft::random_graphs
