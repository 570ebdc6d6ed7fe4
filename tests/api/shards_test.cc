// A session's shards, as the user's program sees them; agreement of processes; the number of the next run.
#include <gtest/gtest.h>

#include "support/compile.h"
#include "network.h"
#include "support/expect_error.h"
#include "support/processes.h"
#include "support/processor_list.h"
#include "weft/detail/session_access.h"

namespace weft::shards_test {
namespace {

const Dim kA{"a", 4}, kB{"b", 6};

Session opened(const std::string& mesh, const std::string& layout, const Store& store = {}) {
  Graph g;
  Array values({kA, kB}, DType::kF32);
  for (std::int64_t i = 0; i < values.elements(); ++i) values.set(i, static_cast<double>(i));
  const Tensor w = g.variable("w", {kA, kB}, init::values(values));
  const Tensor m = g.variable("w.m", {kA}, init::ones(), {.trainable = false, .slot_of = "w"});
  Session session(Mesh::parse(mesh), wire::threads(), device::reference(), {.store = store});
  session.compile(g, Layout::parse(layout), {.fetch = {w, m}});
  return session;
}

TEST(SessionShards, TileTheVariable) {
  for (const char* layout : {"", "a:x", "b:x", "a:x b:y", "b:x+y"})
    for (const int level : {0, 1, 3}) {
      Session session = opened("x:2 y:3", std::string(layout) == "a:x b:y" ? "a:x b:y" : layout,
                               level == 0 ? Store() : Store::parse("*:x", level));
      std::map<std::string, std::vector<int>> covered{{"w", std::vector<int>(24)}, {"w.m", std::vector<int>(4)}};
      const Array whole = session.value("w");
      for (const detail::VariableShard& shard : detail::shards(session)) {
        EXPECT_EQ(shard.slot_of, shard.variable == "w" ? "" : "w");
        EXPECT_EQ(shard.dtype, DType::kF32);
        std::vector<float> bytes(static_cast<std::size_t>(shard.elements()));
        detail::read_shard(session, shard, std::as_writable_bytes(std::span(bytes)));
        for (std::int64_t i = 0; i < shard.elements(); ++i) {
          const bool is_w = shard.variable == "w";
          const std::int64_t at = is_w ? (shard.begin[0] + i / shard.sizes[1]) * 6 + shard.begin[1] + i % shard.sizes[1]
                                       : shard.begin[0] + i;
          if (is_w) {
            EXPECT_EQ(bytes[static_cast<std::size_t>(i)], whole.at(at));
          }
          covered[shard.variable][static_cast<std::size_t>(at)] += shard.is_primary;
        }
      }
      for (const auto& [name, counts] : covered)
        for (const int count : counts) EXPECT_EQ(count, 1) << name << ", layout " << layout << ", level " << level;
    }
}

TEST(SessionShards, AreWritten) {
  Session session = opened("x:2 y:3", "a:x b:y");
  EXPECT_EQ(detail::processors(session), test::processors({0, 1, 2, 3, 4, 5}));
  for (const detail::VariableShard& shard : detail::shards(session)) {
    const std::vector<float> values(static_cast<std::size_t>(shard.elements()), static_cast<float>(shard.begin[0]));
    detail::write_shard(session, shard, std::as_bytes(std::span(values)));
  }
  const Array w = session.value("w");
  for (std::int64_t i = 0; i < 24; ++i) EXPECT_EQ(w.at(i), i < 12 ? 0 : 2);
  std::vector<std::byte> short_of(4);
  EXPECT_INTERNAL_ERROR(detail::read_shard(session, detail::shards(session)[0], short_of),
                        "a shard's bytes are not as many as it has");
}

TEST(SessionAgree, EveryProcessThrowsTheFirstError) {
  for (const int processes : {2, 3}) {
    std::atomic<int> heard = 0;
    const auto errors = test::as_processes(processes, 6, [&](int process, std::unique_ptr<comm::Wire> wire) {
      Session session = SessionState::open(Mesh::parse("x:6"), std::move(wire), engine_named("reference", ""), {});
      detail::agree(session, nullptr, "of a test");
      const ErrorText text{.code = "test.agree", .what = "at " + std::to_string(process), .where = "a", .fix = "b"};
      const auto error = [&](const auto& own) { return process == 0 ? nullptr : std::make_exception_ptr(own); };
      EXPECT_USER_ERROR(detail::agree(session, error(UserError(text)), "of a test"),
                        "error: at 1\nwhere: a\nfix:   b\ncode:  test.agree");
      EXPECT_RUN_ERROR(detail::agree(session, error(RunError(text)), "of a test"), "error: at 1\nwhere: a");
      const auto other = process == 1 ? std::make_exception_ptr(std::runtime_error("odd")) : nullptr;
      EXPECT_INTERNAL_ERROR(detail::agree(session, other, "of a test"),
                            "error: Weft broke one of its own rules: odd\n");
      const auto bug = process == 1 ? std::make_exception_ptr(InternalError("two owners")) : nullptr;
      EXPECT_INTERNAL_ERROR(detail::agree(session, bug, "of a test"),
                            "error: Weft broke one of its own rules: two owners\n",
                            "where: tests/api/shards_test.cc:", "code:  internal.broken-rule");
      detail::agree(session, nullptr, "of a test");
      ++heard;
    });
    EXPECT_EQ(heard, processes);
  }
  Session alone{Mesh()};
  detail::agree(alone, nullptr, "");
  EXPECT_THROW(detail::agree(alone, std::make_exception_ptr(std::out_of_range("x")), ""), std::out_of_range);
}

TEST(ExecutableStep, ChoosesTheRandomNumbers) {
  Graph g;
  const Tensor x = dropout(g.variable("x", {{"a", 64}}, init::ones()), 0.5, {{"a", 64}});
  Session session(Mesh(), wire::threads(), device::reference());
  Executable run = session.compile(g, Layout(), {.fetch = {x}});
  std::vector<Array> drawn;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(run.step(), i);
    drawn.push_back(run.run()[x]);
  }
  EXPECT_FALSE(same_bits(drawn[1], drawn[2]));
  Executable other = session.compile(g, Layout(), {.fetch = {x}});
  other.set_step(2);
  EXPECT_TRUE(same_bits(other.run()[x], drawn[2]));
  EXPECT_TRUE(same_bits(other.run()[x], drawn[3]));
  for (const std::int64_t step : {std::int64_t{-1}, std::int64_t{1} << 32})
    EXPECT_USER_ERROR(run.set_step(step), "there is no run number " + std::to_string(step),
                      "give a number from 0 to 4294967295");
}

}  // namespace
}  // namespace weft::shards_test
