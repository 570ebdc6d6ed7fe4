// docs/ops.md is the ledger of all primitives, written from their declarations. WEFT_WRITE_DOCS=1 writes it anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/str.h"
#include "ops/rules.h"
#include "support/sampling.h"

namespace weft::catalog_test {
namespace {

// What a split of some dim of the op means, over all samples.
std::string split_text(const OpDef& op) {
  std::set<std::string> words;
  for (const Sample& sample : op.samples) {
    const test::BuiltSample built = test::build_sample(op, sample);
    for (const Node& node : built.graph.data()->nodes) {
      if (node.op != &op) continue;
      OpCall call{.op = &op, .inputs = {}, .outputs = node.outputs, .attrs = &node.attrs, .site = node.site};
      for (TensorId id : node.inputs) call.inputs.push_back(built.graph.data()->type(id));
      const ShardingRule rule = op.sharding(call);
      if (rule.reshards_output) words.insert("laid out anew");
      for (const auto& [dim, how] : rule.dims)
        words.insert(how.kind == DimRule::Kind::kReduce  ? "joined dims leave a partial"
                     : how.kind == DimRule::Kind::kWhole ? "some dims stay whole"
                                                         : "talks along its dim");
    }
  }
  return words.empty() ? "every dim passes" : join(words, "; ");
}

std::string gradient_text(const OpDef& op) {
  if (!op.gradient) return str("none: ", op.no_gradient);
  const test::BuiltSample built = test::build_sample(op, op.samples[0]);
  for (const Node& node : built.graph.data()->nodes)
    if (node.op == &op && node.inputs.empty()) return "no operands";
  return "yes";
}

std::string ledger() {
  std::ostringstream out;
  out << "# The primitives\n\n"
         "Written from their declarations in `src/ops` by the test `OpCatalog` (`WEFT_WRITE_DOCS=1` writes it anew). "
         "Every\n"
         "one is checked against one processor on every layout of its samples, and its gradient against differences.\n"
         "All other functions of `ops.h` and `convolution.h` in `include/weft` are made of these.\n\n"
         "| primitive | what it is | gradient | a split dim | samples |\n|---|---|---|---|---|\n";
  for (const OpDef* op : op_catalog())
    out << "| `" << op->name << "` | " << op->doc << " | " << gradient_text(*op) << " | " << split_text(*op) << " | "
        << op->samples.size() << " |\n";
  return out.str();
}

TEST(OpCatalog, DocumentIsTrue) {
  const std::string path = str(WEFT_TEST_DATA, "/../docs/ops.md");
  if (std::getenv("WEFT_WRITE_DOCS")) std::ofstream(path) << ledger();
  std::ostringstream written;
  written << std::ifstream(path).rdbuf();
  EXPECT_EQ(written.str(), ledger()) << "run the test with WEFT_WRITE_DOCS=1 and commit docs/ops.md";
}

}  // namespace
}  // namespace weft::catalog_test
