// The golden tables of folder ops: packed rows, learning-rate schedules, buckets of relative positions.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "data/files.h"
#include "golden/folder.h"
#include "weft/data.h"
#include "weft/nn.h"
#include "weft/schedule.h"

namespace weft::test::tables_test {
namespace {

const GoldenFolder& folder() {
  static const GoldenFolder kFolder("ops");
  return kFolder;
}

// --- Packing ---

// The examples as a text file of pairs. The byte of an id is one that text has: id 2 is '!'.
constexpr int kFirstByte = '!' - 2, kByteId = 3;

class GoldenPacking : public ::testing::TestWithParam<std::string> {
 protected:
  std::string text() const {
    const Array inputs = read("in/inputs", {"example", "place"}), targets = read("in/targets", {"example", "place"});
    std::string text;
    for (std::int64_t e = 0; e < inputs.shape()[0].size; ++e) text += line(inputs, e) + '\t' + line(targets, e) + '\n';
    return text;
  }

  Array read(const std::string& tensor, const std::vector<std::string>& dims) const {
    return folder().data.read(str("packing_", GetParam(), "/", tensor), dims);
  }

  const nlohmann::json about_ = folder().about.at("config").at("packing").at(GetParam());

 private:
  static std::string line(const Array& ids, std::int64_t example) {
    std::string line;
    for (std::int64_t i = example * ids.shape()[1].size; ids.at(i) != data::Vocabulary::kEnd; ++i)
      line += static_cast<char>(ids.at(i) + kFirstByte);
    return line;
  }
};

TEST_P(GoldenPacking, RowsSegmentsAndPositions) {
  const std::int64_t rows = folder().about.at("results").at("packing_" + GetParam()).at("rows");
  data::Batches batches({.files = {file_with(GetParam() + ".tsv", text())},
                         .batch = rows,
                         .length = about_.at("length").at("targets"),
                         .inputs_length = about_.at("length").at("inputs"),
                         .pack = about_.at("pack"),
                         .ensure_end = about_.at("ensure_eos"),
                         .shuffle = false,
                         .repeat = false});
  const data::Batch batch = *batches.next();
  EXPECT_FALSE(batches.next());
  std::size_t compared = 0;
  for (const std::string& theirs : folder().data.names(str("packing_", GetParam(), "/out/"))) {
    SCOPED_TRACE(theirs);
    std::string ours = theirs;
    if (const auto at = ours.find("_segmentation"); at != std::string::npos) ours.replace(at, 13, "_segments");
    if (const auto at = ours.find("_position"); at != std::string::npos) ours.replace(at, 9, "_positions");
    ASSERT_TRUE(batch.contains(ours));
    Array got = batch.at(ours);
    if (ours == "inputs" || ours == "targets")
      for (std::int64_t i = 0; i < got.elements(); ++i)
        if (got.at(i) > data::Vocabulary::kEnd) got.set(i, got.at(i) - kByteId - kFirstByte);
    EXPECT_EQ(got.values(), read("out/" + theirs, got.shape().names()).values());
    ++compared;
  }
  EXPECT_EQ(compared, batch.size());
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenPacking, ::testing::ValuesIn(folder().names("packing")),
                         [](const auto& info) { return info.param; });

// --- Schedules ---

// By the parameters in case.json.
const std::map<std::string, std::string> kSchedules = {
    {"linear_decay_0.1", "linear_decay 0.1"},
    {"linear_decay_abs", "linear_decay 300"},
    {"linear_warmup_0.05", "linear_warmup 0.05"},
    {"linear_warmup_abs", "linear_warmup 100"},
    {"truncated_rsqrt_100", "truncated_rsqrt 100"},
    {"noam", "constant 0.7 * noam 100 0.1"},
    {"noam_offset", "noam 100 0.2 * offset 50"},
    {"slanted_triangular", "constant 0.01 * slanted_triangular 0.1 32"},
    {"linear_decay_learning_rate", "constant 0.1 * linear_decay 950"},
    {"product", "constant 0.5 * truncated_rsqrt 100 * linear_warmup 100"},
};

TEST(GoldenSchedules, EveryStep) {
  const Array steps = folder().data.read("schedules/in/step", {"step"});
  const std::vector<std::string> names = folder().data.names("schedules/out/");
  EXPECT_EQ(names.size(), kSchedules.size());
  for (const std::string& name : names) {
    ASSERT_TRUE(kSchedules.contains(name)) << name;
    const auto schedule = optim::Schedule::parse(kSchedules.at(name), folder().about.at("config").at("total_steps"));
    const Array want = folder().data.read("schedules/out/" + name, {"step"});
    for (std::int64_t i = 0; i < steps.elements(); ++i)
      EXPECT_NEAR(schedule.at(static_cast<std::int64_t>(steps.at(i))), want.at(i), 1e-6 * std::abs(want.at(i)))
          << name << " at step " << steps.at(i);
  }
}

// --- Buckets of relative positions ---

class GoldenBuckets : public GoldenPlaceTest {};

// All pairs of places, whose distances are those of the table and a few more.
TEST_P(GoldenBuckets, OfEveryDistance) {
  const Array distances = folder().data.read("relative_buckets/in/relative_position", {"n"});
  const Dim query{"query", 204}, memory{"memory", 204};
  Graph g;
  const Tensor distance = transpose(iota(g, memory) - iota(g, query), {query, memory});
  Tensors buckets;
  const std::vector<std::string> names = folder().data.names("relative_buckets/out/");
  for (const std::string& name : names) {  // both_<buckets>_<max distance>, causal_…
    const std::size_t first = name.find('_'), second = name.rfind('_');
    buckets.push_back(nn::relative_buckets(distance, {.buckets = std::stoll(name.substr(first + 1)),
                                                      .max_distance = std::stoll(name.substr(second + 1)),
                                                      .both_ways = name.starts_with("both"),
                                                      .reach = memory.size - 1}));
  }
  Session session = open();
  const Values got = session.compile(g, layout_, {.fetch = buckets}).run({});
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Array want = folder().data.read("relative_buckets/out/" + names[i], {"n"});
    const Array& ours = got[buckets[i]];
    ASSERT_EQ(ours.shape(), (Shape{query, memory}));
    std::map<std::int64_t, double> table;
    for (std::int64_t n = 0; n < want.elements(); ++n) table[static_cast<std::int64_t>(distances.at(n))] = want.at(n);
    std::set<std::int64_t> seen;
    for (std::int64_t q = 0; q < query.size; ++q)
      for (std::int64_t m = 0; m < memory.size; ++m)
        if (table.contains(m - q)) {
          ASSERT_EQ(ours.at(q * memory.size + m), table.at(m - q)) << names[i] << " of distance " << m - q;
          seen.insert(m - q);
        }
    EXPECT_EQ(seen.size(), table.size()) << names[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, GoldenBuckets,
                         ::testing::Values(Where{"OneProcessor", "", ""}, Where{"Query2", "p:2", "query:p"},
                                           Where{"Memory2", "p:2", "memory:p"}, Where{"Query4", "p:4", "query:p"},
                                           Where{"Query2Memory2", "p:2 q:2", "query:p memory:q"},
                                           Where{"BothAxes", "p:2 q:2", "memory:q+p"}),
                         place_name);

}  // namespace
}  // namespace weft::test::tables_test
