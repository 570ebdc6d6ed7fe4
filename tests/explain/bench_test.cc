// The bench and the doctor through the public headers.
#include "weft/detail/bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "support/expect_error.h"
#include "weft/detail/doctor.h"
#include "weft/detail/models.h"

namespace weft::bench_test {
namespace {

TEST(Bench, MeasuresEveryCollectiveAskedFor) {
  const auto times =
      bench::collectives({.kinds = {"all_reduce", "permute"}, .processors = {1, 2}, .bytes = {4096}, .repeats = 1});
  ASSERT_EQ(times.size(), 4u);
  for (const bench::CollectiveTime& t : times) {
    EXPECT_EQ(t.bytes, 4096u);
    EXPECT_GT(t.median_seconds, 0);
    EXPECT_LE(t.p10_seconds, t.median_seconds);
    EXPECT_LE(t.median_seconds, t.p90_seconds);
  }
  const auto json = nlohmann::json::parse(bench::json(times));
  ASSERT_EQ(json.size(), 4u);
  EXPECT_EQ(json[0]["collective"], "all_reduce");
  EXPECT_THAT(bench::table(times), testing::HasSubstr("permute"));
}

TEST(Bench, RefusesWhatCannotBeMeasured) {
  EXPECT_USER_ERROR(bench::collectives({.kinds = {"all_redcue"}}), "there is no collective 'all_redcue'",
                    "did you mean 'all_reduce'?");
  EXPECT_USER_ERROR(bench::collectives({.processors = {0}}), "cannot measure on 0 processors",
                    "give from 1 to 1024 processors");
  EXPECT_USER_ERROR(bench::collectives({.bytes = {0}}), "cannot measure with buffers of 0 bytes",
                    "from 1 byte to 16 GiB");
  EXPECT_USER_ERROR(bench::collectives({.repeats = 0}), "cannot measure with 0 repeats",
                    "give from 1 to 100000 repeats");
}

TEST(CompileBench, TimesEveryPassAndCountsBytes) {
  const models::Model model = models::build("two_layer");
  const bench::CompileTime time = bench::compile(model.graph, model.mesh, model.layout, model.options, {}, 3);
  EXPECT_GT(time.plan_s, 0);
  EXPECT_GT(time.bind_s, 0);
  EXPECT_GT(time.instructions, 4);
  EXPECT_GE(time.arena_bytes, time.live_bytes);
  EXPECT_GT(time.variable_bytes + time.arena_bytes, 0);
  ASSERT_FALSE(time.passes.empty());
  EXPECT_EQ(time.passes.front().first, "partition");
  EXPECT_EQ(time.passes.back().first, "memory plan");
  EXPECT_THAT(bench::json(time), testing::HasSubstr("\"plan_s\""));
  EXPECT_THAT(bench::json(time), testing::HasSubstr("\"bind_s\""));
  EXPECT_THAT(bench::table(time), testing::HasSubstr("memory plan"));
  EXPECT_USER_ERROR(bench::compile(model.graph, model.mesh, model.layout, model.options, {}, 0),
                    "cannot measure a compilation with 0 repeats", "give from 1 to 1000 repeats");
}

TEST(Doctor, FindsCoresAndBackends) {
  std::map<std::string, std::string> found;
  for (const auto& [what, text] : doctor()) found[what] = text;
  EXPECT_THAT(found["wires"], testing::StartsWith("threads"));
  EXPECT_THAT(found["cores"], testing::HasSubstr("in the affinity mask"));
  for (const char* what : {"devices", "simd", "memory", "compiler", "one thread"})
    EXPECT_FALSE(found[what].empty()) << what;
}

}  // namespace
}  // namespace weft::bench_test
