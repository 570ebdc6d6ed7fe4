// Ten steps of an optimizer on the golden language model: losses, weights and slots against the data of a folder.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "golden/lm.h"
#include "weft/optim.h"

namespace weft::test {

struct Tolerances {
  double loss;
  std::function<double(int step)> weight, slot;  // of the tensor's largest entry
};

// One variant of a case: make an optimizer on lm.loss, then train once.
class GoldenTraining {
 public:
  GoldenTraining(const GoldenFolder& golden, const std::string& variant)
      : options(golden.about.at("config").at("variants").at(variant)),
        lm(lm_sizes(golden.about.at("config").at("sizes").at(options.at("size").get<std::string>())), golden.data,
           str(std::string(options.at("size")), "/param/")),
        golden_(golden),
        variant_(variant) {}

  void train(Session session, const Layout& layout, const Updates& updates, const std::function<Feeds(int step)>& more,
             const Tolerances& tolerances) {
    Executable step = session.compile(lm.graph, layout, {.fetch = {lm.loss}, .update = updates});
    const std::vector<double> losses = golden_.about.at("results").at(variant_).at("losses");
    for (int t = 1; t <= static_cast<int>(losses.size()); ++t) {
      Feeds feeds = more(t);
      for (const auto& feed : lm.feeds(str(std::string(options.at("size")), "/"))) feeds.push_back(feed);
      const double want = losses[static_cast<std::size_t>(t - 1)];
      EXPECT_NEAR(step.run(feeds).scalar(lm.loss), want, tolerances.loss * want) << "step " << t;
      compare(session, str(variant_, "/after", t, "/"), tolerances.weight(t), tolerances.slot(t));
    }
    EXPECT_EQ(compared_, 2 * session.variables().size()) << "after steps 1 and 10, all that the session holds";
  }

  const nlohmann::json& options;
  Lm lm;

 private:
  void compare(const Session& session, const std::string& snapshot, double weight_tolerance, double slot_tolerance) {
    for (const std::string& name : golden_.data.names(snapshot)) {
      const bool is_slot = !lm.weights.contains(name);
      const Array got = session.value(name);
      const double difference = relative_difference(got, golden_.data.read(snapshot + name, got.shape().names()));
      EXPECT_LE(difference, is_slot ? slot_tolerance : weight_tolerance) << snapshot << name;
      ++compared_;
    }
  }

  const GoldenFolder& golden_;
  std::string variant_;
  std::size_t compared_ = 0;
};

}  // namespace weft::test
