// A storage layout changes where variables lie, never the result.
#include <gtest/gtest.h>

#include "base/str.h"
#include "store/models.h"

namespace weft::equal_test {
namespace {

using test::build_model;
using test::build_optimizer;

constexpr int kSteps = 3;

struct Outcome {
  std::vector<double> losses;
  std::map<std::string, Array> variables;
};

Outcome trained(const std::string& model, const std::string& optimizer, const std::string& mesh,
                const std::string& layout, const Store& store, std::optional<DType> as) {
  const test::TestModel m = build_model(model);
  const test::TestOptimizer optim = build_optimizer(optimizer, m);
  Session session(Mesh::parse(mesh), wire::threads(), device::reference(), {.seed = 7, .store = store});
  Executable step =
      session.compile(m.g, Layout::parse(layout), {.fetch = {m.loss}, .update = optim.updates, .compute_as = as});
  Outcome outcome;
  for (int t = 1; t <= kSteps; ++t) {
    Feeds feeds = m.feeds;
    for (const auto& feed : optim.feeds(t)) feeds.push_back(feed);
    outcome.losses.push_back(step.run(feeds).scalar(m.loss));
  }
  for (const std::string& name : session.variables()) outcome.variables[name] = session.value(name);
  return outcome;
}

void expect_equal(const Outcome& got, const Outcome& want, double tolerance) {
  for (std::size_t i = 0; i < want.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], tolerance * std::max(1.0, want.losses[i])) << "step " << i;
  ASSERT_EQ(got.variables.size(), want.variables.size());
  for (const auto& [name, array] : want.variables)
    EXPECT_LE(relative_difference(got.variables.at(name), array), tolerance) << name;
}

struct Place {
  std::string mesh, layout, store;
};

using Case = std::tuple<std::string, std::string>;  // model, optimizer

std::vector<Place> places_of(const std::string& model) {
  std::vector<Place> places = {{"data:2", "batch:data", "*:data"},
                               {"data:4", "batch:data", "*:data"},
                               {"data:2", "", "*:data"},
                               {"pod:2 data:2", "batch:pod+data", "*:pod+data"},
                               {"pod:2 data:2", "batch:pod+data", "*:data"}};
  const auto add = [&](const Place& place) { places.push_back(place); };
  if (model == "two_layer") {
    add({"data:2 model:2", "batch:data hidden:model", "*:data"});
    add({"data:2 model:2", "batch:data hidden:model", "hidden:data"});
    add({"data:2 model:2", "batch:data io:model", "*:data"});
    add({"data:2 model:2", "batch:data hidden:model", "*:model"});  // idle: every weight is split over model already
    add({"data:2 model:2", "batch:data", "*:model"});
    add({"data:2 model:2", "batch:data", "io:model hidden:data"});
  }
  if (model == "mlp") {
    add({"data:2 model:2", "batch:data hidden:model", "*:data"});
    add({"data:2 model:2", "batch:data width:model", "hidden:model *:data"});
  }
  if (model == "digits") {
    add({"data:4 model:2", "batch:data hidden:model", "*:data"});
    add({"data:2 model:3", "batch:data", "pixel:- *:data"});
  }
  if (model == "transformer") {
    add({"data:2 model:2", "batch:data heads,d_ff,vocab:model", "*:data"});
    add({"data:2 model:2", "batch:data heads,d_ff,vocab:model", "d_ff,vocab:data"});
    add({"data:2 model:2", "batch:data length:model", "*:data+model"});
    add({"data:2 model:2", "batch:data d_model:model", "*:data"});
  }
  return places;
}

class FullStore : public ::testing::TestWithParam<Case> {};

TEST_P(FullStore, LevelsGiveTheNumbersOfOneProcessor) {
  const auto& [model, optimizer] = GetParam();
  const Outcome want = trained(model, optimizer, "", "", {}, DType::kF64);
  for (const Place& place : places_of(model))
    for (int level = 0; level <= 3; ++level) {
      SCOPED_TRACE(
          str("mesh ", place.mesh, ", layout \"", place.layout, "\", store \"", place.store, "\", level ", level));
      const Store store = level == 0 ? Store() : Store::parse(place.store, level);
      expect_equal(trained(model, optimizer, place.mesh, place.layout, store, DType::kF64), want, 1e-9);
    }
}

TEST_P(FullStore, FloatStaysNearDouble) {
  const auto& [model, optimizer] = GetParam();
  const Outcome want = trained(model, optimizer, "", "", {}, DType::kF64);
  for (int level = 1; level <= 3; ++level) {
    SCOPED_TRACE(str("level ", level));
    const Outcome got = trained(model, optimizer, "data:2", "batch:data", Store::parse("*:data", level), {});
    for (std::size_t i = 0; i < want.losses.size(); ++i)
      EXPECT_NEAR(got.losses[i], want.losses[i], 1e-4) << "step " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, FullStore,
                         ::testing::Combine(::testing::Values("two_layer", "mlp", "digits", "transformer"),
                                            ::testing::Values("sgd", "momentum", "adam", "adafactor")),
                         [](const auto& info) { return str(std::get<0>(info.param), "_", std::get<1>(info.param)); });

}  // namespace
}  // namespace weft::equal_test
