// CompileOptions::check_ids names the first id that is out of range.
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "weft/weft.h"

namespace weft::ids_test {
namespace {

struct Classifier {
  Graph g;
  Dim batch{"batch", 4}, vocab{"vocab", 6}, width{"width", 2}, classes{"classes", 3};
  Tensor tokens = g.input("tokens", {batch}, DType::kI32), labels = g.input("labels", {batch}, DType::kI32);
  Tensor table = g.variable("table", {vocab, width}, init::normal(1));
  Tensor w = g.variable("w", {width, classes}, init::normal(1));
  Tensor logits = einsum({gather(table, tokens, vocab), w}, {batch, classes});
  Tensor loss = mean(cross_entropy(logits, labels, classes));
  Updates updates = optim::sgd(loss, g.variables(), 0.1);
};

double loss_of(const std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& labels, bool check,
               const std::string& mesh = "", const std::string& layout = "",
               const device::Choice& device = device::cpu()) {
  const Classifier c;
  Session session(Mesh::parse(mesh), wire::threads(), device);
  Executable e =
      session.compile(c.g, Layout::parse(layout), {.fetch = {c.loss}, .update = c.updates, .check_ids = check});
  return e.run({{c.tokens, Array({c.batch}, tokens)}, {c.labels, Array({c.batch}, labels)}}).scalar(c.loss);
}

TEST(CheckIds, PassesWhatIsInRange) {
  EXPECT_EQ(loss_of({0, 5, 3, 1}, {0, 2, 1, -1}, true), loss_of({0, 5, 3, 1}, {0, 2, 1, -1}, false));
}

TEST(CheckIds, UnlessAskedNothingIsLookedAt) { EXPECT_NO_THROW(loss_of({0, 6, -1, 1}, {0, 2, 3, 1}, false)); }

TEST(CheckIds, NamesTheTensorTheIdAndTheRange) {
  for (const auto& device : {device::cpu(), device::reference()}) {
    EXPECT_RUN_ERROR(loss_of({0, 6, 3, 1}, {0, 2, 1, 1}, true, "", "", device),
                     "'tokens' has the id 6 at [batch=1], but dim vocab=6 has 0 to 5", "ids_test.cc");
    EXPECT_RUN_ERROR(loss_of({0, 5, -7, 1}, {0, 2, 1, 1}, true, "", "", device),
                     "'tokens' has the id -7 at [batch=2], but dim vocab=6 has 0 to 5");
    EXPECT_RUN_ERROR(loss_of({0, 5, 3, 1}, {0, 2, 1, 3}, true, "", "", device),
                     "'labels' has the id 3 at [batch=3], but dim classes=3 has 0 to 2", "ids_test.cc");
  }
}

// A shard of the table is not the table: ids of other processors' rows are in range.
TEST(CheckIds, LooksAtWholeTablesUnderEveryLayout) {
  const double want = loss_of({0, 5, 3, 1}, {0, 2, 1, 1}, false);
  for (const char* layout : {"batch:all", "vocab:all", "width:all"}) {
    EXPECT_NEAR(loss_of({0, 5, 3, 1}, {0, 2, 1, 1}, true, "all:2", layout), want, 1e-6) << layout;
    EXPECT_RUN_ERROR(loss_of({0, 5, 3, 8}, {0, 2, 1, 1}, true, "all:2", layout), "the id 8 at [batch=3]", "vocab=6");
  }
}

// The library's own ops gather by indices that may miss on purpose.
TEST(CheckIds, ShiftsAreNotLookups) {
  Graph g;
  const Dim a{"a", 4};
  const Tensor x = g.input("x", {a}), by = g.input("by", {}, DType::kI32), y = dynamic_shift(x, by, a);
  Session session{Mesh()};
  Executable e = session.compile(g, {}, {.fetch = {y}, .check_ids = true});
  const Array shifted =
      e.run({{x, Array({a}, std::vector<float>{1, 2, 3, 4})}, {by, Array::scalar(2, DType::kI32)}})[y];
  EXPECT_EQ(shifted.values(), (std::vector<double>{0, 0, 1, 2}));
}

}  // namespace
}  // namespace weft::ids_test
