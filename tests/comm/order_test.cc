// Sums whose bits depend on the order: they must come in rank order, equal on every member, whatever the timing.
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "backends.h"
#include "local.h"

#include <gtest/gtest.h>

namespace weft::comm::order_test {
namespace {

class CommOrder : public testing::TestWithParam<Engine> {};

// Magnitudes over six decades: any other order of the sum gives other bits somewhere.
template <class T>
T lopsided(int rank, std::size_t i) {
  static constexpr float kScales[] = {1e-3f, 1e-2f, 1e-1f, 1.0f, 1e1f, 1e2f, 1e3f};
  const std::uint32_t mixed = (static_cast<std::uint32_t>(i) * 31 + static_cast<std::uint32_t>(rank)) * 2654435761u;
  const float unit = static_cast<float>(mixed >> 16) / 32768.0f - 1.0f;
  const float value = unit * kScales[(rank * 5 + static_cast<int>(i % 7)) % 7];
  return static_cast<T>(value);
}

template <class T>
void check_rank_order(const Engine& engine, int size, std::size_t count) {
  on_one_group(engine, size, [&](Wire& wire, Group& group) {
    const Local<T> x(wire, ProcessorId(group.rank()), count),
        gathered(wire, ProcessorId(group.rank()), count * static_cast<std::size_t>(size));
    for (int call = 0; call < 3; ++call) {
      for (std::size_t i = 0; i < count; ++i) x[i] = lopsided<T>(group.rank(), i);
      std::this_thread::sleep_for(std::chrono::microseconds((group.rank() * 7 + call * 3) % 5 * 200));
      all_reduce(group, x, x, Reduce::kSum);
      for (std::size_t i = 0; i < count; ++i) {
        const T want = reduced<T>(Reduce::kSum, size, [&](int r) { return lopsided<T>(r, i); });
        ASSERT_EQ(std::memcmp(&want, &x[i], sizeof want), 0) << "element " << i;
      }
    }
    all_gather(group, x, gathered);
    for (std::size_t r = 0; r < static_cast<std::size_t>(size); ++r)
      EXPECT_EQ(std::memcmp(gathered.data() + r * count, x.data(), count * sizeof(T)), 0) << "rank " << r << " differs";
  });
}

TEST_P(CommOrder, SumsInRankOrder) {
  if (!GetParam().reduces_in_rank_order) GTEST_SKIP() << "NCCL sums in an order of its own";
  for (const int size : {2, 3, 4, 8})
    for (const std::size_t count : {5u, 300u, 20'011u}) {
      check_rank_order<float>(GetParam(), size, count);
      check_rank_order<BF16>(GetParam(), size, count);
      check_rank_order<F16>(GetParam(), size, count);
    }
}

// 1 + 2^-9 + 2^-9 + …: rounding every step to bf16 would lose all the small terms.
TEST_P(CommOrder, SumsBf16InF32AndRoundsOnce) {
  if (!GetParam().reduces_in_rank_order) GTEST_SKIP() << "NCCL rounds after every step";
  on_one_group(GetParam(), 5, [&](Wire& wire, Group& group) {
    const Local<BF16> x(wire, ProcessorId(group.rank()), 1);
    x[0] = BF16(group.rank() == 0 ? 1.0f : 0x1p-9f);
    all_reduce(group, x, x, Reduce::kSum);
    EXPECT_EQ(static_cast<float>(x[0]), 1.0f + 0x1p-7f);
  });
}

TEST_P(CommOrder, IntegersWrap) {
  on_one_group(GetParam(), 2, [&](Wire& wire, Group& group) {
    const Local<std::int32_t> x(wire, ProcessorId(group.rank()), 3);
    for (std::size_t i = 0; i < 3; ++i) x[i] = std::numeric_limits<std::int32_t>::max();
    all_reduce(group, x, x, Reduce::kSum);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(x[i], -2);
  });
}

TEST_P(CommOrder, OneNanAmongTheMembersGivesNan) {
  on_one_group(GetParam(), 3, [&](Wire& wire, Group& group) {
    for (const Reduce reduce : {Reduce::kSum, Reduce::kMax, Reduce::kMin, Reduce::kProduct})
      for (int who = 0; who < 3; ++who) {
        const Local<float> x(wire, ProcessorId(group.rank()), 20);
        for (std::size_t i = 0; i < 20; ++i) x[i] = group.rank() == who ? std::nanf("") : 1.0f;
        all_reduce(group, x, x, reduce);
        for (std::size_t i = 0; i < 20; ++i) EXPECT_TRUE(std::isnan(x[i])) << reduce << " with a NaN on rank " << who;
      }
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, CommOrder, testing::ValuesIn(engines()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weft::comm::order_test
