// A small network with dropout and Adam, trained under any mesh, layout and storage, for tests of checkpoints.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "weft/checkpoint.h"
#include "weft/detail/checkpoint_hook.h"
#include "weft/nn.h"
#include "weft/optim.h"
#include "weft/weft.h"

namespace weft::test {

inline bool same_bits(const Array& a, const Array& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.bytes(), b.bytes(), static_cast<std::size_t>(a.elements()) * size_of(a.dtype())) == 0;
}

// A folder of this process, new and empty.
inline std::string new_folder(const std::string& name) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / ("weft_checkpoint_" + std::to_string(getpid())) / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder.parent_path());
  return folder.string();
}

inline std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

// The names in a folder, sorted.
inline std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

struct TrainingOptions {
  std::string mesh = "", layout = "";
  Store store = {};
  DType dtype = DType::kF32;        // of the weights
  std::optional<DType> slice = {};  // in which they are updated
};

class Training {
 public:
  static Session open(const TrainingOptions& o) {
    return Session(Mesh::parse(o.mesh), wire::threads(), device::reference(), {.seed = 7, .store = o.store});
  }

  explicit Training(const TrainingOptions& o = {}) : Training(open(o), o) {}

  // In a session of any kind. All weights but `scale` have several dims; sizes divide by 8.
  Training(const Session& own, const TrainingOptions& o) : session(own) {
    const Dim batch{"batch", 8}, in{"in", 8}, qkv{"qkv", 3}, hidden{"hidden", 16};
    x_ = graph.input("x", {batch, in});
    const VariableOptions as{.stored = o.dtype, .slice = o.slice, .activation = DType::kF32};
    const Tensor w = graph.variable("first/w", {in, qkv, hidden}, init::fan_in(in), as);
    const Tensor v = graph.variable("second/v", {hidden, in}, init::fan_in(hidden), as);
    const Tensor scale = graph.variable("scale", {}, init::ones(), as);
    const Tensor h = reduce_sum(relu(einsum({x_, w}, {batch, qkv, hidden})), {qkv});
    loss_ = mean(square(einsum({dropout(h, 0.5, {batch, hidden}), v}, {batch, in}) * scale - x_));
    adam_ = std::make_unique<optim::Adam>(loss_, graph.variables());
    step_ = std::make_unique<Executable>(
        session.compile(graph, Layout::parse(o.layout), {.fetch = {loss_}, .update = adam_->updates()}));
  }

  // The losses of so many steps.
  std::vector<double> train(int steps) {
    std::vector<double> losses;
    for (int i = 0; i < steps; ++i) {
      Array values(x_.shape(), DType::kF32);
      for (std::int64_t k = 0; k < values.elements(); ++k) values.set(k, std::sin(static_cast<double>(k + done)));
      Feeds feeds = adam_->feeds(done + 1, 0.01);
      feeds.emplace_back(x_, values);
      losses.push_back(step_->run(feeds).scalar(loss_));
      ++done;
    }
    return losses;
  }

  void resume(const Checkpoint& checkpoint) {
    checkpoint.load(session);
    done = checkpoint.state().step;
    step_->set_step(done);
  }

  CheckpointState state() const { return {done, {{"config.toml", "[model]\n"}, {"data.json", "{\"at\": 3}"}}}; }

  std::map<std::string, Array> values() const {
    std::map<std::string, Array> all;
    for (const std::string& name : session.variables()) all[name] = session.value(name);
    return all;
  }

  Graph graph;
  Session session;
  std::int64_t done = 0;

 private:
  Tensor x_, loss_;
  std::unique_ptr<optim::Adam> adam_;
  std::unique_ptr<Executable> step_;
};

inline void expect_equal(const std::map<std::string, Array>& a, const std::map<std::string, Array>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, array] : a) {
    ASSERT_TRUE(b.contains(name)) << name;
    EXPECT_TRUE(same_bits(array, b.at(name))) << name;
  }
}

}  // namespace weft::test
