// Many calls, many in flight, many groups; and what a wire tells of itself.
#include <random>
#include <string>
#include <vector>

#include "backends.h"
#include "base/str.h"
#include "comm/measure.h"
#include "local.h"
#include "support/processor_list.h"
#include "support/soak.h"

#include <gtest/gtest.h>

namespace weft::comm::stress_test {
namespace {

constexpr std::chrono::seconds kDeadline{60};

class CommStress : public testing::TestWithParam<Engine> {};
class SoakCommStress : public CommStress {};

// A random but common sequence of collectives of small and middle sizes, two buffers in turn.
void run_random_calls(const Engine& engine, int size, int calls) {
  on_one_group(engine, size, [&](Wire& wire, Group& group) {
    const Local<std::int32_t> x(wire, ProcessorId(group.rank()), 4096);
    std::mt19937 random(7);
    const std::size_t members = static_cast<std::size_t>(size), rank = static_cast<std::size_t>(group.rank());
    for (int call = 0; call < calls; ++call) {
      const std::size_t count = 1 + random() % (random() % 4 == 0 ? 4000 : 40) / members;
      for (std::size_t i = 0; i < count * members; ++i) x[i] = group.rank() + call + static_cast<int>(i);
      const int sum_of_ranks = size * (size - 1) / 2, at = static_cast<int>(rank * count);
      switch (random() % 4) {
        case 0:
          all_reduce(group, x.part(0, count), x.part(0, count), Reduce::kSum, "stress", kDeadline);
          ASSERT_EQ(x[count - 1], sum_of_ranks + size * (call + static_cast<int>(count) - 1));
          break;
        case 1:
          reduce_scatter(group, x.part(0, count * members), x.part(rank * count, count), Reduce::kSum, "", kDeadline);
          ASSERT_EQ(x[rank * count], sum_of_ranks + size * (call + at));
          break;
        case 2:
          all_gather(group, x.part(rank * count, count), x.part(0, count * members), "stress", kDeadline);
          for (std::size_t p = 0; p < members; ++p)
            ASSERT_EQ(x[p * count], static_cast<int>(p + p * count) + call) << "block " << p;
          break;
        default:
          all_to_all(group, x.part(0, count * members), x.part(0, count * members), "stress", kDeadline);
          for (std::size_t p = 0; p < members; ++p) ASSERT_EQ(x[p * count], static_cast<int>(p) + call + at);
      }
    }
  });
}

TEST_P(CommStress, ManyCalls) {
  for (const int size : {1, 2, 3}) run_random_calls(GetParam(), size, 3000);
  for (const int size : {8, 16}) run_random_calls(GetParam(), size, 300);
}

TEST_P(SoakCommStress, VeryManyCalls) {
  for (const int size : {2, 3, 4, 8, 16}) run_random_calls(GetParam(), size, test::soak_count(100'000) / size);
}

// More starts than a wire holds in flight, then waits in any order: a wait finishes all before it.
TEST_P(CommStress, ManyInFlight) {
  for (const std::size_t count : {10u, 3000u})
    on_one_group(GetParam(), 3, [&](Wire& wire, Group& group) {
      std::vector<Local<float>> xs;
      for (int i = 0; i < 50; ++i) xs.emplace_back(wire, ProcessorId(group.rank()), count);
      for (int round = 0; round < 5; ++round) {
        std::vector<Ticket> tickets;
        for (int i = 0; i < 50; ++i) {
          const Local<float>& x = xs[static_cast<std::size_t>(i)];
          for (std::size_t j = 0; j < count; ++j) x[j] = static_cast<float>(i + round);
          tickets.push_back(group.start(Collective::kAllReduce, x, x, {.label = "in flight"}));
        }
        group.wait(tickets[47], kDeadline);
        group.wait(tickets[3], kDeadline);
        group.wait(tickets[49], kDeadline);
        for (int i = 0; i < 50; ++i)
          for (std::size_t j = 0; j < count; ++j)
            ASSERT_EQ(xs[static_cast<std::size_t>(i)][j], 3.0f * static_cast<float>(i + round));
      }
    });
}

// The same list may be joined again: every join is a group of its own.
TEST_P(CommStress, JoinsOfOneListDoNotMix) {
  GetParam().run(3, [&](Wire& wire, ProcessorId processor) {
    for (int round = 0; round < 20; ++round) {
      const std::vector<ProcessorId> list = test::processors({2, 0, 1});
      const std::unique_ptr<Group> a = wire.join(processor, list), b = wire.join(processor, list);
      EXPECT_EQ(a->rank(), (processor.number() + 1) % 3);
      const Local<float> x(wire, processor, 4), y(wire, processor, 4);
      x[0] = 1, y[0] = 2;
      const Ticket first = a->start(Collective::kAllReduce, x, x, {}),
                   second = b->start(Collective::kAllReduce, y, y, {});
      b->wait(second, kDeadline);
      a->wait(first, kDeadline);
      ASSERT_EQ(x[0], 3.0f);
      ASSERT_EQ(y[0], 6.0f);
    }
  });
}

TEST_P(CommStress, TheBoardSaysWhatEveryoneDid) {
  on_one_group(GetParam(), 2, [&](Wire& wire, Group& group) {
    const auto mine = [&] {
      const std::vector<ProcessorStatus> board = wire.report();
      EXPECT_EQ(board.size(), 2u);
      return board.at(static_cast<std::size_t>(group.rank()));
    };
    EXPECT_EQ(mine().processor, ProcessorId(group.rank()));
    EXPECT_EQ(mine().stage, ProcessorStatus::Stage::kNothing);
    const Local<float> x(wire, ProcessorId(group.rank()), 5);
    all_reduce(group, x, x, Reduce::kSum, "norm", kDeadline);
    EXPECT_EQ(mine().stage, ProcessorStatus::Stage::kFinished);
    EXPECT_EQ(mine().what, Collective::kAllReduce);
    EXPECT_EQ(mine().label, "norm");
    EXPECT_EQ(mine().bytes, 20u);
    EXPECT_EQ(mine().calls, 1u);
    EXPECT_EQ(mine().members.processors, everyone(2));
    EXPECT_EQ(mine().host.empty(), GetParam().name == "threads");
    EXPECT_GT(wire.overhead_bytes(), 0u);
  });
}

TEST_P(CommStress, ArenasAreAlignedAndZero) {
  GetParam().run(2, [&](Wire& wire, ProcessorId processor) {
    for (const std::size_t bytes : {0u, 1u, 100u, 5u << 20}) {
      const Memory arena = allocate(wire, processor, bytes);
      EXPECT_EQ(arena.bytes(), bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.data()) % 64, 0u);
      for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(arena.data()[i], std::byte{0});
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, CommStress, testing::ValuesIn(engines()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Backends, SoakCommStress, testing::ValuesIn(engines()),
                         [](const auto& info) { return info.param.name; });

TEST(CommMeasure, GivesOneTimingPerCase) {
  const auto timings = measure_collectives({Collective::kAllReduce, Collective::kPermute}, {1, 3}, {8, 100'000}, 1);
  ASSERT_EQ(timings.size(), 8u);
  for (const CollectiveTiming& timing : timings) EXPECT_GT(timing.median_seconds, 0) << json_of(timing);
  EXPECT_NE(table_of(timings).find("permute"), std::string::npos);
}

}  // namespace
}  // namespace weft::comm::stress_test
