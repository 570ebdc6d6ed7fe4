// A recipe as C++: a gtest that stands on the public headers alone.
#pragma once

#include <cctype>
#include <cstdio>

#include "base/str.h"
#include "build.h"
#include "calls.h"

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

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/weft.h"

namespace {

using namespace weft;

[[maybe_unused]] std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

[[maybe_unused]] Array filled(const Shape& shape, DType dtype, double low, double high, bool whole, std::uint64_t stream) {
  Array array(shape, dtype);
  for (std::int64_t i = 0; i < array.elements(); ++i) {
    const double unit = static_cast<double>(mixed(mixed(stream) + static_cast<std::uint64_t>(i)) >> 11) * 0x1p-53;
    const double value = low + unit * (high - low);
    array.set(i, whole ? std::floor(value) : value);
  }
  return array;
}

struct Built {
  Graph graph;
  Tensors fetch;
  Updates update;
  Feeds feeds;
};

Built build() {
  Built built;
  Graph& g = built.graph;
)";

constexpr const char* kEmittedRun = R"(
  return built;
}

// What two runs fetch, then the variables.
std::vector<Array> run(const std::string& mesh, const std::string& layout) {
  const Built built = build();
  Session session(Mesh::parse(mesh), wire::threads(), runtime::reference(), {.seed = 7});
  Executable step = session.compile(built.graph, Layout::parse(layout),
                                    {.fetch = built.fetch, .update = built.update, .metrics = true, .compute_as = DType::kF64});
  std::vector<Array> arrays;
  for (int i = 0; i < 2; ++i) {
    const Values values = step.run(built.feeds);
    for (const Tensor& x : built.fetch) arrays.push_back(values[x]);
    for (const auto& [name, value] : values.metrics()) arrays.push_back(Array::scalar(value, DType::kF64));
  }
  for (const std::string& name : session.variables()) arrays.push_back(session.value(name));
  return arrays;
}

)";

// With the storage layout in the session's options, if there is one: its rules may name absent axes.
inline std::string emitted_run(const Recipe& recipe) {
  std::string text = kEmittedRun;
  const std::string options = "{.seed = 7}";
  if (!recipe.store.empty())
    text.replace(text.find(options), options.size(),
                 str("{.seed = 7, .store = Store::parse(\"", recipe.store, "\", ", recipe.store_level, ")}"));
  return text;
}

inline std::string ends_code(const Recipe& recipe) {
  std::string text = str("  built.fetch = ", code_of(recipe.outputs), ";\n");
  if (recipe.loss.step >= 0) {
    text += str("  for (const Tensor& d : gradients({", code_of(recipe.loss), "}, ", code_of(recipe.by), "))\n",
                "    if (d) built.fetch.push_back(d);\n");
    text += str("  built.update = optim::sgd(", code_of(recipe.loss), ", ",
                code_of(reached(recipe, build(recipe).values)), ", ", code_of(kRate), ");\n");
  }
  for (const Change& change : recipe.changes)
    text += str("  built.update.push_back(", change.how, "(", code_of(change.variable), ", ", code_of(change.value),
                "));\n");
  for (std::size_t i = 0; i < recipe.metrics.size(); ++i)
    text += str("  scalar_metric(\"m", i, "\", ", code_of(recipe.metrics[i]), ");\n");
  std::vector<std::string> feeds;
  for (std::size_t i = 0; i < recipe.steps.size(); ++i)
    if (is_input(recipe.steps[i])) {
      std::vector<std::string> args;
      for (std::size_t k = 1; k < recipe.steps[i].args.size(); ++k) args.push_back(code_of(recipe.steps[i].args[k]));
      feeds.push_back(str("{v", i, ", filled(", join(args, ", "), ")}"));
    }
  return str(text, "  built.feeds = {", join(feeds, ",\n                 "), "};");
}

// `failure` is what was found, for the comment on top.
inline std::string emit(const Recipe& recipe, const std::string& kind, const std::string& detail) {
  std::string text = str("// Graph ", recipe.seed, " of tests/random, cut down. Found: ", kind, ".\n");
  for (const std::string& line : split_words(detail, "\n")) text += str("//   ", line, "\n");
  text +=
      "// To run it again, copy it to tests/random/<name>_test.cc, or link it with weft::weft and gtest_main.\n// "
      "clang-format off\n";
  text += kEmittedTop;
  for (std::size_t i = 0; i < recipe.steps.size(); ++i)
    text += str("  const Tensor v", i, " = ", code_of(recipe.steps[i]), ";\n");
  text += ends_code(recipe) + emitted_run(recipe);
  const std::string on = str("\"", recipe.mesh, "\", \"", recipe.layout, "\"");
  text += str("TEST(FailingGraph, Seed", recipe.seed, ") {\n");
  if (kind == "accepted") return str(text, "  EXPECT_THROW(run(", on, "), UserError);\n}\n\n}  // namespace\n");
  text += str("  const std::vector<Array> want = run(\"\", \"\"), got = run(", on, ");\n",
              "  ASSERT_EQ(got.size(), want.size());\n",
              "  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_LE(relative_difference(got[i], want[i]), 1e-9) "
              "<< \"result \" << i;\n",
              "}\n\n}  // namespace\n");
  return text;
}

}  // namespace weft::random_graphs
