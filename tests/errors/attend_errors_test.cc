// What a user reads when attend() cannot take what it was given, or a layout splits what has to be whole.
#include "errors/lines.h"
#include "weft/attend.h"

namespace weft::attend_errors_test {
namespace {

using test::here;
using test::lines;

class AttendErrors : public ::testing::Test {
 protected:
  const Dim batch{"batch", 2}, length{"length", 4}, memory{"memory", 6}, heads{"heads", 2}, key{"key", 4};
  Graph g;
  Tensor q = g.input("q", {batch, length, heads, key}), k = g.input("k", {batch, memory, heads, key}),
         v = g.input("v", {batch, memory, heads, key});
  const std::string all =
      "attend of q [batch=2 length=4 heads=2 key=4], k [batch=2 memory=6 heads=2 key=4] and v [batch=2 memory=6 "
      "heads=2 "
      "key=4]: ";
};

TEST_F(AttendErrors, NeedsItsDims) {
  EXPECT_USER_ERROR(attend(q, k, v, {"memory", 5}, key),
                    lines("attend: k [batch=2 memory=6 heads=2 key=4] lacks dim memory=5", "attend at " + here(),
                          "give q and k the dim d_key, and k and v the memory dim"));
  EXPECT_USER_ERROR(attend(Tensor(), k, v, memory, key), "attend: q is empty and lacks dim key=4", here());
  const Tensor wide = g.input("wide", {batch, memory, heads, key, {"more", 2}});
  EXPECT_USER_ERROR(
      attend(q, k, wide, memory, key),
      lines("attend: v [batch=2 memory=6 heads=2 key=4 more=2] has 2 dims that replace d_key; q is [batch=2 "
            "length=4 heads=2 key=4]",
            "attend at " + here(), "give v exactly one dim in place of d_key: reshape() several dims to one"));
}

TEST_F(AttendErrors, SharesDimsOfKeysAndValues) {
  const Tensor other = g.input("other", {{"batch", 3}, memory, heads, key});
  EXPECT_USER_ERROR(attend(q, other, v, memory, key), ": q lacks dim batch=3", here(),
                    "fix:   dims of k and v other than their own are q's too", "code:  attend.q-lacks-dim");
  const Tensor alone = g.input("alone", {batch, memory, key});
  EXPECT_USER_ERROR(attend(q, alone, v, memory, key),
                    lines("attend of q [batch=2 length=4 heads=2 key=4], k [batch=2 memory=6 key=4] and v [batch=2 "
                          "memory=6 heads=2 key=4]: dim heads=2 is in one of k and v alone",
                          "attend at " + here(), "broadcast() the other to it, or rename() it"));
}

TEST_F(AttendErrors, NeedsOneDtype) {
  const Tensor half = g.input("half", v.shape(), DType::kBF16);
  EXPECT_USER_ERROR(attend(q, k, half, memory, key),
                    lines(all + "they are f32, f32 and bf16", "attend at " + here(), "cast() them to one dtype"),
                    "code:  attend.dtypes-differ");
}

TEST_F(AttendErrors, CausalNeedsPositions) {
  const Tensor grouped = g.input("grouped", {length, {"group", 2}, batch, heads, key});
  EXPECT_USER_ERROR(attend(grouped, k, v, memory, key, {.causal = true}),
                    "causal, but it is not clear which dim of q has its positions", here(),
                    "fix:   name a dim of q that k lacks in AttendOptions::length");
  EXPECT_USER_ERROR(attend(q, k, v, memory, key, {.causal = true, .length = "heads"}), "causal, but it is not clear");
}

TEST_F(AttendErrors, MasksFitTheScores) {
  const Tensor bias = g.input("bias", {heads, key});
  EXPECT_USER_ERROR(attend(q, k, v, memory, key, {.bias = bias}),
                    lines(all + "dim key=4 of the bias [heads=2 key=4] has no place there", "attend at " + here(),
                          "its dims may be: batch=2, length=4, heads=2, memory=6"));
  const Tensor ids = g.input("ids", {batch, length}, DType::kI32), seen = g.input("seen", {batch, memory});
  EXPECT_USER_ERROR(attend(q, k, v, memory, key, {.query_segments = ids}),
                    lines("attend was given only one of query_segments and memory_segments", "attend at " + here(),
                          "give both; in self-attention memory_segments is query_segments with its length renamed"));
  EXPECT_USER_ERROR(attend(q, k, v, memory, key, {.query_segments = ids, .memory_segments = seen}),
                    all + "the memory segments are f32, not whole numbers", "fix:   cast() them to i32");
  EXPECT_USER_ERROR(attend(q, k, v, memory, key, {.query_segments = ids, .memory_segments = ids}),
                    "dim length=4 of the memory segments [batch=2 length=4] has no place there");
}

TEST_F(AttendErrors, TheMemorysEndAndSourcesFitTheMemory) {
  const Tensor end = g.input("end", {batch}), per_query = g.input("per_query", {length}, DType::kI32);
  EXPECT_USER_ERROR(attend(q, k, v, memory, key, {.memory_end = end}),
                    all + "the values of memory_end are f32, not whole numbers", "fix:   cast() them to i32");
  EXPECT_USER_ERROR(attend(q, k, v, memory, key, {.memory_end = per_query}),
                    lines(all + "dim length=4 of the values of memory_end [length=4] has no place there",
                          "attend at " + here(), "its dims may be: batch=2, heads=2"));
  const Tensor table = g.input("table", {batch, memory}, DType::kI32);
  EXPECT_USER_ERROR(attend(q, k, v, memory, key, {.sources = table}),
                    lines("attend was given only one of sources and source_dim", "attend at " + here(),
                          "give both: the table, and the dim of k and v that its numbers index"));
  EXPECT_USER_ERROR(attend(q, k, v, memory, key, {.source_dim = "batch"}), "only one of sources and source_dim");
  EXPECT_USER_ERROR(
      attend(q, k, v, memory, key, {.sources = table, .source_dim = "heads"}),
      lines(all + "the sources [batch=2 memory=6] need the dims 'memory' and 'heads', the source_dim, which "
                  "q, k and v have too",
            "attend at " + here(), "name a dim of q, k, v and the sources in AttendOptions::source_dim"));
  const Tensor wrong = g.input("wrong", {batch, memory});
  EXPECT_USER_ERROR(attend(q, k, v, memory, key, {.sources = wrong, .source_dim = "batch"}),
                    all + "the sources are f32, not whole numbers");
  const Tensor y = attend(q, k, v, memory, key, {.sources = table, .source_dim = "batch"});
  EXPECT_USER_ERROR(Session(Mesh::parse("m:2")).compile(g, Layout::parse("batch:m"), {.fetch = {y}}),
                    "needs dim 'batch' whole, but it is split over axis 'm'");
}

TEST_F(AttendErrors, StoredScoresHaveTheSameRules) {
  const Tensor bias = g.input("bias", {heads, key});
  EXPECT_USER_ERROR(attend(q, k, v, memory, key, {.bias = bias, .extra_logit = 0}),
                    all + "dim key=4 of the bias [heads=2 key=4] has no place there", "attend at " + here());
  for (const double keep : {0.0, 1.5})
    EXPECT_USER_ERROR(attend(q, k, v, memory, key, {.keep = keep}),
                      lines(str("attend keeps weights with probability ", keep), "attend at " + here(),
                            "give AttendOptions::keep a probability above 0 and at most 1"));
  EXPECT_USER_ERROR(attend(q, k, v, memory, key, {.keep = 0.5, .same_draw = {"key"}}), "has no dim 'key'");
}

TEST_F(AttendErrors, SomeDimsStayWhole) {
  const auto [y, line] = std::pair(attend(q, k, v, memory, key), here());
  const auto compile = [&, y = y](const char* layout) {
    Session(Mesh::parse("m:2")).compile(g, Layout::parse(layout), {.fetch = {y}});
  };
  EXPECT_USER_ERROR(
      compile("memory:m"),
      lines("attend 'attend' needs dim 'memory' whole, but it is split over axis 'm'",
            "attend at " + line + ", layout \"memory:m\", mesh m:2",
            "leave 'memory' out of the layout, or rename() the dim before attend to a name that the layout does "
            "not split: the rename gathers the tensor"));
  EXPECT_USER_ERROR(compile("key:m"), "attend 'attend' needs dim 'key' whole, but it is split over axis 'm'");
  EXPECT_NO_THROW(compile("length:m"));
}

TEST(StackedErrors, NeedADimOfTheirParts) {
  Graph g;
  const Init init = init::stacked(init::ones(), "qkv", {"q", "k", "v"});
  EXPECT_USER_ERROR(g.variable("w", {{"qkv", 2}, {"a", 4}}, init),
                    lines("variable 'w' [qkv=2 a=4] cannot be stacked of 3 parts along 'qkv'", here(),
                          "give it a dim of that name with one index for each part"));
}

}  // namespace
}  // namespace weft::attend_errors_test
