// The cost table of the two-layer example (paper, section 3.2), with all constants: what explain reads off the program
// equals the formulas exactly, for six layouts, three sizes and meshes up to 16 x 32.
//
// h = x w; y = relu(h) v; and from dy: dv, dh, dw, dx. With b, i, h the sizes of batch, io and hidden every contraction
// has b i h multiply-adds: two of them forward, four backward.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "weft/explain.h"
#include "weft/detail/models.h"

namespace weft::two_layer_cost_test {
namespace {

using Json = nlohmann::json;
using Elements = std::map<std::string, std::int64_t>;  // axes of the group -> elements entering all_reduces

struct Size {
  std::int64_t b, i, h;
};

// What one processor does and sends under a layout, on a mesh of n processors or of r x c.
struct Row {
  std::string layout;
  std::vector<std::string> meshes;
  std::int64_t (*share)(int r, int c);            // by what the multiply-adds are divided
  Elements (*sent)(const Size& s, int r, int c);  // tensor by tensor
  std::int64_t (*parameters)(const Size& s, int r, int c);
};

const std::vector<std::string> kOneAxis = {"all:1", "all:2", "all:8", "all:512"};
const std::vector<std::string> kTwoAxes = {"rows:2 cols:2", "rows:4 cols:2", "rows:1 cols:8", "rows:16 cols:32"};

// One-axis meshes have r = n and c = 1.
const std::vector<Row> kTable = {
    {"", kOneAxis, [](int, int) -> std::int64_t { return 1; }, [](const Size&, int, int) -> Elements { return {}; },
     [](const Size& s, int, int) { return 2 * s.i * s.h; }},
    {"batch:all", kOneAxis, [](int n, int) -> std::int64_t { return n; },
     [](const Size& s, int, int) -> Elements {
       return {{"all", s.i * s.h /* dw */ + s.h * s.i /* dv */}};
     },
     [](const Size& s, int, int) { return 2 * s.i * s.h; }},
    {"hidden:all", kOneAxis, [](int n, int) -> std::int64_t { return n; },
     [](const Size& s, int, int) -> Elements {
       return {{"all", s.b * s.i /* y */ + s.b * s.i /* dx */}};
     },
     [](const Size& s, int n, int) { return 2 * s.i * s.h / n; }},
    {"io:all", kOneAxis, [](int n, int) -> std::int64_t { return n; },
     [](const Size& s, int, int) -> Elements {
       return {{"all", s.b * s.h /* h */ + s.b * s.h /* dh */}};
     },
     [](const Size& s, int n, int) { return 2 * s.i * s.h / n; }},
    {"batch:rows hidden:cols", kTwoAxes, [](int r, int c) -> std::int64_t { return r * c; },
     [](const Size& s, int r, int c) -> Elements {
       return {{"cols", s.b * s.i / r /* y */ + s.b * s.i / r /* dx */},
               {"rows", s.i * s.h / c /* dw */ + s.h * s.i / c /* dv */}};
     },
     [](const Size& s, int, int c) { return 2 * s.i * s.h / c; }},
    {"io:rows hidden:cols", kTwoAxes, [](int r, int c) -> std::int64_t { return r * c; },
     [](const Size& s, int r, int c) -> Elements {
       return {{"rows", s.b * s.h / c /* h */ + s.b * s.h / c /* dh */},
               {"cols", s.b * s.i / r /* y */ + s.b * s.i / r /* dx */}};
     },
     [](const Size& s, int r, int c) { return 2 * s.i * s.h / (r * c); }},
};

const std::vector<Size> kSizes = {{512, 512, 1024}, {2048, 1024, 4096}, {16384, 4096, 65536}};
const Machine kMachine = Machine::uniform(1e11, 1e10);

models::Model two_layer(const Size& s) {
  return models::build("two_layer", {{"batch", s.b}, {"io", s.i}, {"hidden", s.h}});
}

Json explained(const models::Model& model, const std::string& mesh, const std::string& layout) {
  return Json::parse(explain(model.graph, Mesh::parse(mesh), Layout::parse(layout), model.options, kMachine).json());
}

// Elements entering all_reduces, by the axes of their groups. Groups of one processor have nothing to say.
Elements all_reduced(const Json& json, const Mesh& mesh) {
  Elements sums;
  for (const Json& c : json["collectives"]) {
    EXPECT_EQ(c["kind"], "all_reduce");
    EXPECT_EQ(c["dtype"], "f32");
    EXPECT_EQ(c["bytes"].get<std::int64_t>(), 4 * c["elements"].get<std::int64_t>());
    EXPECT_FALSE(c["cause"].empty());
    const std::string axes = c["axes"].size() == 1 ? c["axes"][0].get<std::string>() : c["axes"].dump();
    if (mesh.axes()[static_cast<std::size_t>(mesh.find(axes))].size > 1)
      sums[axes] += c["elements"].get<std::int64_t>();
  }
  return sums;
}

TEST(TwoLayerCost, EqualsTheFormulasExactly) {
  for (const Row& row : kTable)
    for (const std::string& text : row.meshes)
      for (const Size& s : kSizes) {
        SCOPED_TRACE(row.layout + " on " + text + ", batch " + std::to_string(s.b));
        const Mesh mesh = Mesh::parse(text);
        const int r = mesh.axes()[0].size, c = mesh.axes().size() > 1 ? mesh.axes()[1].size : 1;
        const Json json = explained(two_layer(s), text, row.layout);

        const std::int64_t product = 2 * s.b * s.i * s.h / row.share(r, c);
        EXPECT_EQ(json["flops"]["contract"]["forward"].get<std::int64_t>(), 2 * product);   // h, y
        EXPECT_EQ(json["flops"]["contract"]["backward"].get<std::int64_t>(), 4 * product);  // dv, dh, dw, dx
        EXPECT_EQ(json["flops"]["contract"]["update"], 0);
        EXPECT_GE(json["flops"]["executed"].get<std::int64_t>(), 6 * product);

        Elements sent = row.sent(s, r, c);
        std::erase_if(sent, [&](const auto& item) {
          return mesh.axes()[static_cast<std::size_t>(mesh.find(item.first))].size == 1;
        });
        EXPECT_EQ(all_reduced(json, mesh), sent);

        EXPECT_EQ(json["parameters"]["total"].get<std::int64_t>(), 2 * s.i * s.h);
        EXPECT_EQ(json["parameters"]["per_processor"].get<std::int64_t>(), row.parameters(s, r, c));
        EXPECT_EQ(json["variable_bytes"].get<std::int64_t>(), 4 * row.parameters(s, r, c));
      }
}

// Nominal flops are those of the ops as written, whatever the layout.
TEST(TwoLayerCost, ModelFlopsKnowNoLayout) {
  const Size s = kSizes[0];
  const Json alone = explained(two_layer(s), "all:1", "");
  for (const Row& row : kTable)
    EXPECT_EQ(explained(two_layer(s), row.meshes.back(), row.layout)["flops"]["model"], alone["flops"]["model"]);
  const std::int64_t contractions = 6 * 2 * s.b * s.i * s.h;
  EXPECT_GE(alone["flops"]["model"].get<std::int64_t>(), contractions);
  EXPECT_LE(alone["flops"]["model"].get<std::int64_t>(), contractions + 8 * s.b * s.h);  // and relu, both ways
}

// Counted in flops alone (memory infinitely fast): without a layout every processor repeats everything; the paper's
// layouts repeat at most relu and its gradient, where all of h lies on several processors.
TEST(TwoLayerCost, WorkRatioSeesRepeatedWork) {
  const Machine only_flops = Machine::uniform(1, 1e30);
  const Size s = kSizes[0];
  const models::Model model = two_layer(s);
  const double contractions = 12.0 * static_cast<double>(s.b * s.i * s.h);
  for (const Row& row : kTable) {
    const Mesh mesh = Mesh::parse(row.meshes.back());
    const double ratio = explain(model.graph, mesh, Layout::parse(row.layout), model.options, only_flops).work_ratio;
    const double most = 8.0 * static_cast<double>(s.b * s.h * mesh.size()) / contractions;
    const double want = row.layout.empty() ? mesh.size() : 1;
    EXPECT_GE(ratio, want) << row.layout;
    EXPECT_LE(ratio, row.layout.empty() ? want : want + most) << row.layout;
  }
}

std::string golden_text() {
  std::ifstream file(std::string(WEFT_TEST_DATA) + "/golden/counters/counters.json");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> fields_of(const std::string& key) {
  std::vector<std::string> fields;
  std::size_t begin = 0;
  for (std::size_t end; (end = key.find(" | ", begin)) != std::string::npos; begin = end + 3)
    fields.push_back(key.substr(begin, end - begin));
  fields.push_back(key.substr(begin));
  return fields;
}

// The volumes that mesh-tensorflow counts for y, dw and dv; tests/golden/counters/README.md says what is compared.
TEST(TwoLayerCost, AllReducesAsMeshTensorflowCountsThem) {
  const Json golden = Json::parse(golden_text())["two_layer"];
  ASSERT_EQ(golden.size(), 28u);
  for (const auto& [key, counted] : golden.items()) {
    SCOPED_TRACE(key);
    const std::vector<std::string> fields = fields_of(key);
    ASSERT_EQ(fields.size(), 4u);
    models::Model model = two_layer(fields[0] == "small" ? Size{16, 32, 64} : Size{64, 128, 1024});
    model.options.fetch.resize(fields[3] == "forward" ? 1 : 3);  // y; or y, dw, dv
    const Mesh mesh = Mesh::parse(fields[1]);
    const Json json = explained(model, fields[1], fields[2] == "none" ? "" : fields[2]);
    Elements want;
    for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis) {
      const auto found = counted["total"].find("allreduce/[" + std::to_string(axis) + "]/einsum_op");
      if (found != counted["total"].end())
        want[mesh.axes()[static_cast<std::size_t>(axis)].name] = found->get<std::int64_t>() / mesh.size();
    }
    EXPECT_EQ(all_reduced(json, mesh), want);
  }
}

}  // namespace
}  // namespace weft::two_layer_cost_test
