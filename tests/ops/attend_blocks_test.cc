// Attention with more scores than an engine keeps at a time, on the device under test against the reference. The device xla
// divides it into blocks along a dim that all operands have, or along the queries; the last block is smaller.
#include <gtest/gtest.h>

#include <cmath>

#include "support/processes.h"
#include "weft/attend.h"

namespace weft::attend_blocks_test {
namespace {

struct Sizes {
  std::int64_t batch, heads, length;
};

std::vector<Array> attended(const device::Choice& device, const Sizes& sizes) {
  const Dim batch{"batch", sizes.batch}, heads{"heads", sizes.heads}, length{"length", sizes.length},
      memory{"memory", sizes.length}, key{"key", 4};
  Graph g;
  const auto operand = [&](const char* name, const Dim& along) {
    return g.variable(name, {batch, heads, along, key}, init::normal(1));
  };
  const Tensor q = operand("q", length), k = operand("k", memory), v = operand("v", memory),
               bias = g.variable("bias", {heads, memory}, init::normal(1));
  const Tensor y = attend(q, k, v, memory, key, {.causal = true, .bias = bias});
  Tensors fetch = {y};
  for (const Tensor& d : gradients({reduce_sum(y * y)}, {q, k, v, bias})) fetch.push_back(d);
  return test::in_every_process(
      Mesh::parse(""), {},
      [&](Session& session) {
        const Values values = session.compile(g, Layout(), {.fetch = fetch}).run();
        std::vector<Array> arrays;
        for (const Tensor& x : fetch) arrays.push_back(values[x]);
        return arrays;
      },
      device);
}

void expect_near(const Sizes& sizes) {
  const std::vector<Array> want = attended(device::reference(), sizes),
                           got = attended(test::device_under_test(), sizes);
  for (std::size_t i = 0; i < want.size(); ++i) {
    double largest = 0, off = 0;
    for (std::int64_t e = 0; e < want[i].elements(); ++e) {
      largest = std::max(largest, std::abs(want[i].at(e)));
      off = std::max(off, std::abs(want[i].at(e) - got[i].at(e)));
    }
    EXPECT_LT(off, 1e-5 * largest) << "result " << i << " of attention over " << want[0].shape();
  }
}

// 16 MiB are 4,194,304 scores.
TEST(AttendBlocks, AlongTheBatch) { expect_near({.batch = 5, .heads = 2, .length = 680}); }
TEST(AttendBlocks, AlongTheHeads) { expect_near({.batch = 1, .heads = 3, .length = 1200}); }
TEST(AttendBlocks, AlongTheQueries) { expect_near({.batch = 1, .heads = 1, .length = 2100}); }

}  // namespace
}  // namespace weft::attend_blocks_test
