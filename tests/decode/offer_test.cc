// What a step's graph offers: exact over any split of the vocabulary.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "train/candidates.h"
#include "weft/ops.h"

namespace weft::decode::offer_test {
namespace {

const Dim kBatch{"batch", 4}, kBeams{"beams", 2}, kVocab{"vocab", 8};
const std::vector<std::pair<std::string, std::string>> kDeployments = {
    {"", ""}, {"a:2", "vocab:a"}, {"a:4", "vocab:a"}, {"a:2 b:2", "batch:a vocab:b"}, {"a:2 b:2", "vocab:a beams:b"}};

std::vector<double> table() {
  std::vector<double> values;
  for (int i = 0; i < 4 * 2 * 8; ++i) values.push_back(3 * std::sin(1.7 * i + 0.3));
  return values;
}

struct Offered {
  std::vector<double> ids, log_probabilities;
};

std::vector<Offered> run(const Options& options, const std::string& mesh, const std::string& layout, int runs = 1) {
  Graph g;
  const Tensor logits = g.input("logits", {kBatch, kBeams, kVocab});
  const CandidateTensors offered = offer(logits, options, Site::current());
  Session session(Mesh::parse(mesh));
  Executable step = session.compile(g, Layout::parse(layout), {.fetch = {offered.ids, offered.log_probabilities}});
  std::vector<Offered> all;
  for (int i = 0; i < runs; ++i) {
    const Values values = step.run({{logits, Array(logits.shape(), table(), DType::kF32)}});
    all.push_back({values[offered.ids].values(), values[offered.log_probabilities].values()});
  }
  return all;
}

// The classes of one line, likeliest first, and all their log probabilities.
struct Line {
  explicit Line(std::size_t n) : logs(table()) {
    logs.assign(logs.begin() + static_cast<std::ptrdiff_t>(8 * n),
                logs.begin() + static_cast<std::ptrdiff_t>(8 * n + 8));
    double sum = 0;
    for (double logit : logs) sum += std::exp(logit);
    for (double& log : logs) log -= std::log(sum);
    for (std::size_t i = 0; i < 8; ++i) order.push_back(i);
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return logs[a] > logs[b]; });
  }
  std::vector<double> logs;
  std::vector<std::size_t> order;
};

TEST(CandidateTensors, BeamsGetTheLikeliestOnAnyLayout) {
  for (const auto& [mesh, layout] : kDeployments) {
    const Offered got = run({.beams = 2}, mesh, layout)[0];
    ASSERT_EQ(got.ids.size(), 4u * 2 * 4);
    for (std::size_t n = 0; n < 8; ++n)
      for (std::size_t j = 0; j < 4; ++j) {
        const Line line(n);
        EXPECT_EQ(got.ids[4 * n + j], static_cast<double>(line.order[j])) << mesh << " " << layout;
        EXPECT_NEAR(got.log_probabilities[4 * n + j], line.logs[line.order[j]], 2e-6);
      }
  }
}

TEST(CandidateTensors, GreedyIsTheLikeliest) {
  for (const auto& [mesh, layout] : kDeployments) {
    const Offered got = run({}, mesh, layout)[0];
    ASSERT_EQ(got.ids.size(), 8u);
    for (std::size_t n = 0; n < 8; ++n) {
      EXPECT_EQ(got.ids[n], static_cast<double>(Line(n).order[0]));
      EXPECT_NEAR(got.log_probabilities[n], Line(n).logs[Line(n).order[0]], 2e-6);
    }
  }
}

TEST(CandidateTensors, NeverTheEnd) {
  const Offered all = run({.beams = 4, .never_end = true}, "a:2", "vocab:a")[0];
  ASSERT_EQ(all.ids.size(), 8u * 8);
  for (std::size_t n = 0; n < 8; ++n) {
    EXPECT_EQ(all.ids[8 * n + 7], 1);  // the last of all
    EXPECT_LT(all.log_probabilities[8 * n + 7], -1e8);
    double sum = 0;
    for (std::size_t j = 0; j < 7; ++j) sum += std::exp(all.log_probabilities[8 * n + j]);
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

TEST(CandidateTensors, DrawsAreTheSameOnAnyLayout) {
  for (const Options& options : {Options{.temperature = 1, .seed = 3}, Options{.temperature = 0.7, .top_k = 4},
                                 Options{.temperature = 1.5, .top_p = 0.6}}) {
    const std::vector<Offered> want = run(options, "", "", 10);
    for (const auto& [mesh, layout] : kDeployments) {
      const std::vector<Offered> got = run(options, mesh, layout, 10);
      for (std::size_t i = 0; i < want.size(); ++i) {
        EXPECT_EQ(got[i].ids, want[i].ids) << mesh << " " << layout;
        for (std::size_t n = 0; n < 8; ++n) {
          const auto id = static_cast<std::size_t>(want[i].ids[n]);
          EXPECT_NEAR(got[i].log_probabilities[n], Line(n).logs[id], 2e-6);
        }
      }
    }
  }
}

TEST(CandidateTensors, DrawsComeFromTheLikeliest) {
  bool differ = false;
  const std::vector<Offered> of_two = run({.temperature = 2, .top_k = 2}, "", "", 40);
  for (const Offered& draw : of_two)
    for (std::size_t n = 0; n < 8; ++n) {
      const Line line(n);
      EXPECT_TRUE(draw.ids[n] == static_cast<double>(line.order[0]) ||
                  draw.ids[n] == static_cast<double>(line.order[1]));
      differ = differ || draw.ids[n] != of_two[0].ids[n];
    }
  EXPECT_TRUE(differ);
  for (const Offered& draw : run({.temperature = 1, .top_p = 0.5}, "", "", 40))
    for (std::size_t n = 0; n < 8; ++n) {
      const Line line(n);
      double above = 0;  // of those likelier than the one drawn
      for (std::size_t j = 0; static_cast<double>(line.order[j]) != draw.ids[n]; ++j)
        above += std::exp(line.logs[line.order[j]]);
      EXPECT_LT(above, 0.5);
    }
}

TEST(CandidateTensors, AnotherSeedDrawsOtherwise) {
  const auto ids = [](std::uint64_t seed) {
    std::vector<double> all;
    for (const Offered& draw : run({.temperature = 2, .seed = seed}, "", "", 5))
      all.insert(all.end(), draw.ids.begin(), draw.ids.end());
    return all;
  };
  EXPECT_EQ(ids(5), ids(5));
  EXPECT_NE(ids(5), ids(6));
}

}  // namespace
}  // namespace weft::decode::offer_test
