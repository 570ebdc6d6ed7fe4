// Every golden op: its outputs, and the gradient of each output by itself, on one processor, with each of its input dims
// split over two, and on layouts of four processors; with WEFT_TEST_WIRE=mpi on the ranks of mpirun.
#include <gtest/gtest.h>

#include <algorithm>

#include "golden/folder.h"
#include "golden/op_cases.h"
#include "support/expect_error.h"
#include "support/sampling.h"

namespace weft::test::ops_test {
namespace {

using Json = nlohmann::json;
using Names = std::vector<std::string>;

const GoldenFolder& folder() {
  static const GoldenFolder kFolder("ops");
  return kFolder;
}

const Json& descriptions() {
  static const Json cases = [] {
    Json all = folder().about.at("results");
    // Cases that Mesh-TensorFlow cannot run are described as those of other sizes.
    for (const char* name : {"conv2d_same_stride2", "conv2d_valid_stride2"})
      for (const char* dims : {"inputs", "outputs"}) all[str(name, "_odd")][dims] = all[name][dims];
    return all;
  }();
  return cases;
}

const Safetensors& data() { return folder().data; }

constexpr double kTolerance = 1e-5;  // of the largest entry

// A case as a graph with its feeds, and what each fetched tensor must be.
class Built {
 public:
  explicit Built(const OpCase& op) : op_(op), about_(descriptions().at(op.name)) {
    Named inputs;
    for (const auto& [name, dims] : about_.at("inputs").items()) inputs[name] = fed("in/" + name, dims.get<Names>());
    const Named outputs = op.build(inputs);
    for (const auto& [name, y] : outputs) expect_output(name, y, inputs);
  }

  // The names of all input dims, and whether two processors can share each.
  std::map<std::string, bool> input_dims() const {
    std::map<std::string, bool> even;
    for (const auto& [tensor, array] : feeds_)
      if (tensor.name().starts_with("in/"))
        for (const Dim& dim : array.shape())
          even[dim.name] = (!even.contains(dim.name) || even[dim.name]) && dim.size % 2 == 0;
    return even;
  }

  // Layouts of the input dims that Weft must take.
  std::vector<std::string> legal_layouts(const Mesh& mesh) const {
    Names dims, legal;
    for (const auto& [dim, even] : input_dims()) dims.push_back(dim);
    for (const std::string& layout : test::every_layout(dims, mesh))
      if (test::is_legal(*graph_.data(), mesh, layout)) legal.push_back(layout);
    return legal;
  }

  void check(const std::string& mesh, const std::string& layout) const {
    SCOPED_TRACE(str("mesh \"", mesh, "\", layout \"", layout, "\""));
    const Values got = run(mesh, layout);
    for (const auto& [name, wanted] : wanted_) {
      const auto& [tensor, array] = wanted;
      ASSERT_EQ(got[tensor].shape(), array.shape()) << name;
      if (is_float(array.dtype())) EXPECT_LE(relative_difference(got[tensor], array), kTolerance) << name;
      else EXPECT_EQ(got[tensor].values(), array.values()) << name;
    }
  }

  Values run(const std::string& mesh, const std::string& layout) const {
    Session session = test::open_session(Mesh::parse(mesh), {});
    CompileOptions options;
    for (const auto& [name, wanted] : wanted_) options.fetch.push_back(wanted.first);
    Executable step = session.compile(graph_, Layout::parse(layout), options);
    const Names used = session.variables();
    for (const Tensor& w : graph_.all_variables())
      if (std::find(used.begin(), used.end(), variable_name(w)) != used.end())
        session.set_value(variable_name(w), read("var/" + golden_name(w), w.shape().names()));
    return step.run(feeds_);
  }

 private:
  Array read(const std::string& what, const Names& dims) const { return data().read(str(op_.name, "/", what), dims); }
  bool has(const std::string& what) const { return data().has(str(op_.name, "/", what)); }

  std::string golden_name(const Tensor& variable) const {
    const std::string ours = variable_name(variable);
    const auto found = op_.variables.find(ours);
    return found == op_.variables.end() ? ours : found->second;
  }

  Tensor fed(const std::string& what, const Names& dims) {
    const Array array = read(what, dims);
    const Tensor x = graph_.input(what, array.shape(), array.dtype());
    feeds_.emplace_back(x, array);
    return x;
  }

  void expect_output(const std::string& name, const Tensor& y, const Named& inputs) {
    const Names dims = about_.at("outputs").at(name).get<Names>();
    wanted_["out/" + name] = {y, read("out/" + name, dims)};
    if (!has("dy/" + name)) return;
    Names names;
    Tensors xs;
    for (const auto& [input, x] : inputs)
      if (is_float(x.dtype())) names.push_back(input), xs.push_back(x);
    for (const Tensor& w : graph_.variables()) names.push_back("var." + golden_name(w)), xs.push_back(w);
    const Tensors dxs = gradients({y}, xs, {fed("dy/" + name, dims)});
    for (std::size_t i = 0; i < xs.size(); ++i) {
      const std::string path = str("grad/", name, "/", names[i]), even = str("grad_even/", name, "/", names[i]);
      const bool known = has(path) || has(even);
      ASSERT_EQ(static_cast<bool>(dxs[i]), known || (dxs[i] && op_.stopped.contains(names[i]))) << path;
      if (known) wanted_[path] = {dxs[i], read(has(even) ? even : path, xs[i].shape().names())};
    }
  }

  const OpCase& op_;
  const Json& about_;
  Graph graph_;
  Feeds feeds_;
  std::map<std::string, std::pair<Tensor, Array>> wanted_;
};

class GoldenOp : public ::testing::TestWithParam<OpCase> {};

TEST_P(GoldenOp, OneProcessor) { Built(GetParam()).check("", ""); }

TEST_P(GoldenOp, EachInputDimSplitInTwo) {
  if (!test::can_have(Mesh::parse("all:2"))) GTEST_SKIP() << "needs 2 ranks";
  const Built built(GetParam());
  built.check("all:2", "");
  for (const auto& [dim, even] : built.input_dims())
    if (even && !GetParam().refused.contains(dim)) built.check("all:2", dim + ":all");
    else EXPECT_USER_ERROR(built.run("all:2", dim + ":all"), "cannot be split evenly", "dim " + dim + " of size");
}

// Some of the layouts, evenly drawn: four on an axis of four, six on two axes.
TEST_P(GoldenOp, FourProcessors) {
  if (!test::can_have(Mesh::parse("all:4"))) GTEST_SKIP() << "needs 4 ranks";
  const Built built(GetParam());
  std::size_t checked = 0, all = 0;
  for (const auto& [mesh, most] : {std::pair("all:4", 4), std::pair("rows:2 cols:2", 6)}) {
    const Names legal = built.legal_layouts(Mesh::parse(mesh));
    const std::size_t count = std::min(legal.size(), static_cast<std::size_t>(most));
    for (std::size_t i = 0; i < count; ++i) built.check(mesh, legal[i * legal.size() / count]);
    checked += count;
    all += legal.size();
  }
  EXPECT_TRUE(checked >= 5 || checked == all) << checked;  // with those of two processors six, unless sizes are odd
}

INSTANTIATE_TEST_SUITE_P(Ops, GoldenOp, ::testing::ValuesIn(op_cases()),
                         [](const auto& info) { return info.param.name; });

// Read by golden/tables_test.cc.
const Names kTables = {"packing", "schedules", "relative_buckets"};

TEST(GoldenOps, EveryCaseIsRunHereOrATable) {
  Names run;
  for (const OpCase& op : op_cases()) run.push_back(op.name);
  for (const auto& [name, about] : descriptions().items()) {
    const bool is_table =
        std::any_of(kTables.begin(), kTables.end(), [&](const auto& word) { return name.starts_with(word); });
    EXPECT_EQ(is_table, std::find(run.begin(), run.end(), name) == run.end()) << name;
  }
}

TEST(GoldenOps, EveryOutputIsCompared) {
  for (const OpCase& op : op_cases()) {
    Graph g;
    Named inputs;
    const Json& about = descriptions().at(op.name);
    for (const auto& [name, dims] : about.at("inputs").items()) {
      const Array array = data().read(str(op.name, "/in/", name), dims.get<Names>());
      inputs[name] = g.input(name, array.shape(), array.dtype());
    }
    const Named outputs = op.build(inputs);
    for (const auto& [name, dims] : about.at("outputs").items())
      EXPECT_TRUE(outputs.contains(name)) << op.name << " " << name;
  }
}

}  // namespace
}  // namespace weft::test::ops_test
