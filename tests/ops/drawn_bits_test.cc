// Random draws of the device under test equal those of the reference to the bit: integers, masks, and floats that hold the
// bits of a word exactly. scripts/check-xla runs this on a plugin, whose compiler sees Philox in integer operations.
#include <gtest/gtest.h>

#include <cstring>

#include "support/processes.h"

namespace weft::drawn_bits_test {
namespace {

// Rows of 12 and 8 share words by fours; rows of 7 and 6, and their shards, begin within four words.
const Dim kA{"a", 8}, kB{"b", 12}, kC{"c", 6}, kOdd{"odd", 7};

struct Draws {
  Graph g;
  Tensors all;
  Draws() {
    for (const Shape& shape : {Shape{kA, kB}, Shape{kA, kC}, Shape{kC, kOdd}, Shape{kB}, Shape{}}) {
      all.push_back(random_uniform(g, shape));  // 24 bits of a word
      all.push_back(random_uniform(g, shape, -1e6, 1e6, DType::kI32));
      all.push_back(random_uniform(g, shape, 0, 200, DType::kU8));
      all.push_back(random_bernoulli(g, shape, 0.3, DType::kBool));
      all.push_back(random_bernoulli(g, shape, 0.7));
    }
    all.push_back(dropout(constant(g, 1, {kA, kB}), 0.5));
    const LoopResult looped = loop(g, 3, {}, [&](const Tensor&, const Tensors&) -> LoopStep {
      return {.carried = {},
              .sums = {},
              .kept = {random_uniform(g, {kA, kC}), random_uniform(g, {kB}, 0, 1 << 20, DType::kI32)},
              .stop = {}};
    });
    all.insert(all.end(), looped.kept.begin(), looped.kept.end());
  }
};

constexpr std::int64_t kLateStep = (std::int64_t{1} << 32) - 2;

// At the first step and at the last two of all.
std::vector<Array> drawn(const device::Choice& device, const std::string& mesh, const std::string& layout,
                         std::uint64_t seed) {
  const Draws draws;
  return test::in_every_process(
      Mesh::parse(mesh), {.seed = seed},
      [&](Session& session) {
        Executable step = session.compile(draws.g, Layout::parse(layout), {.fetch = draws.all});
        std::vector<Array> arrays;
        for (const std::int64_t number : {std::int64_t{0}, kLateStep, kLateStep + 1}) {
          step.set_step(number);
          const Values values = step.run();
          for (const Tensor& x : draws.all) arrays.push_back(values[x]);
        }
        return arrays;
      },
      device);
}

void expect_equal(const std::string& mesh, const std::string& layout, std::uint64_t seed) {
  SCOPED_TRACE(testing::Message() << "mesh " << mesh << ", layout \"" << layout << "\", seed " << seed);
  const std::vector<Array> want = drawn(device::reference(), "", "", seed);
  const std::vector<Array> got = drawn(test::device_under_test(), mesh, layout, seed);
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(got[i].dtype(), want[i].dtype());
    ASSERT_EQ(got[i].shape(), want[i].shape());
    const std::size_t bytes = static_cast<std::size_t>(want[i].elements()) * size_of(want[i].dtype());
    EXPECT_EQ(std::memcmp(got[i].bytes(), want[i].bytes(), bytes), 0)
        << "draw " << i << ", " << want[i].dtype() << " " << want[i].shape();
  }
}

constexpr std::uint64_t kLargeSeed = 0xFEDC'BA98'7654'3210;

TEST(DrawnBits, OfOneProcessor) {
  for (const std::uint64_t seed : {std::uint64_t{0}, kLargeSeed}) expect_equal("", "", seed);
}

TEST(DrawnBits, OfShards) {
  if (!test::can_have(Mesh::parse("p:2 q:2"))) GTEST_SKIP() << "needs 4 ranks";
  for (const char* layout : {"a:p c:q", "b:p+q", "c:p b:q"}) expect_equal("p:2 q:2", layout, kLargeSeed);
}

}  // namespace
}  // namespace weft::drawn_bits_test
