// Every collective, on every backend, for group sizes, counts and dtypes, out of place and in place, against values
// that are known without communication. Comparison is by bytes: all members must hold the very same bits.
#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>

#include "backends.h"
#include "base/str.h"
#include "local.h"

#include <gtest/gtest.h>

namespace weft::comm::conformance_test {
namespace {

using Case = std::tuple<Engine, int, std::size_t, DType>;

constexpr std::chrono::seconds kDeadline{60};

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  const auto& [engine, size, count, dtype] = info.param;
  return str(engine.name, "_size", size, "_count", count, "_", dtype);
}

// The suite of one processor for one case.
template <class T>
class Checker {
 public:
  Checker(Wire& wire, Group& group, ProcessorId processor, std::size_t count)
      : wire_(wire), group_(group), processor_(processor), size_(static_cast<std::size_t>(group.size())) {
    // Large blocks would only cost memory: with many members the large count is the whole buffer.
    count_ = count;
    block_ = count > 4096 ? count / size_ : count;
  }

  void run() {
    for (const Reduce reduce : {Reduce::kSum, Reduce::kMax, Reduce::kMin, Reduce::kProduct}) {
      for (const bool in_place : {false, true}) {
        all_reduce(reduce, in_place);
        reduce_scatter(reduce, in_place);
      }
    }
    for (const bool in_place : {false, true}) {
      all_gather(in_place);
      all_to_all(in_place);
      for (const int step : {0, 1, -1}) shift(step, true, in_place);
      for (const int step : {1, -1}) shift(step, false, in_place);
    }
    barrier(group_, "end", kDeadline);
  }

 private:
  int rank() const { return group_.rank(); }
  std::size_t mine() const { return static_cast<std::size_t>(rank()) * block_; }

  Local<T> filled(std::size_t count, Reduce reduce = Reduce::kSum) {
    Local<T> local(wire_, processor_, count);
    for (std::size_t i = 0; i < count; ++i) local[i] = sent<T>(rank(), i, reduce);
    return local;
  }

  template <class Want>
  void expect(const T* got, std::size_t count, const std::string& what, Want want) {
    for (std::size_t i = 0; i < count; ++i) {
      const T wanted = want(i);
      if (std::memcmp(&got[i], &wanted, sizeof(T)) == 0) continue;
      ADD_FAILURE() << what << ": element " << i << " of " << count << " is wrong on rank " << rank();
      return;
    }
  }

  std::string text(Collective what, bool in_place) { return str(what, in_place ? " in place" : ""); }

  void all_reduce(Reduce reduce, bool in_place) {
    const Local<T> in = filled(count_, reduce), other(wire_, processor_, count_);
    const Local<T>& out = in_place ? in : other;
    comm::all_reduce(group_, in, out, reduce, "all_reduce", kDeadline);
    expect(out.data(), count_, str(text(Collective::kAllReduce, in_place), " ", reduce),
           [&](auto i) { return reduced<T>(reduce, group_.size(), [&](int r) { return sent<T>(r, i, reduce); }); });
    if (!in_place) expect(in.data(), count_, "input of all_reduce", [&](auto i) { return sent<T>(rank(), i, reduce); });
  }

  void reduce_scatter(Reduce reduce, bool in_place) {
    const Local<T> in = filled(block_ * size_, reduce), other(wire_, processor_, block_);
    const Buffer out = in_place ? in.part(mine(), block_) : Buffer(other);
    comm::reduce_scatter(group_, in, out, reduce, "reduce_scatter", kDeadline);
    expect(static_cast<T*>(out.data), block_, text(Collective::kReduceScatter, in_place), [&](auto i) {
      return reduced<T>(reduce, group_.size(), [&](int r) { return sent<T>(r, mine() + i, reduce); });
    });
  }

  void all_gather(bool in_place) {
    const Local<T> out(wire_, processor_, block_ * size_), other = filled(block_);
    const Buffer in = in_place ? out.part(mine(), block_) : Buffer(other);
    if (in_place) std::copy_n(other.data(), block_, out.data() + mine());
    comm::all_gather(group_, in, out, "all_gather", kDeadline);
    expect(out.data(), out.count(), text(Collective::kAllGather, in_place),
           [&](auto i) { return sent<T>(static_cast<int>(i / block_), i % block_); });
  }

  void all_to_all(bool in_place) {
    const Local<T> in = filled(block_ * size_), other(wire_, processor_, block_ * size_);
    const Local<T>& out = in_place ? in : other;
    comm::all_to_all(group_, in, out, "all_to_all", kDeadline);
    expect(out.data(), out.count(), text(Collective::kAllToAll, in_place),
           [&](auto i) { return sent<T>(static_cast<int>(i / block_), mine() + i % block_); });
  }

  // Everyone sends to the rank `step` further on; without wrap the ends send or receive nothing.
  void shift(int step, bool wrap, bool in_place) {
    const Local<T> in = filled(count_), other = filled(count_);
    const Local<T>& out = in_place ? in : other;
    const int size = group_.size();
    const auto at = [&](int r) { return wrap ? (r + size) % size : (r < 0 || r >= size ? -1 : r); };
    const int source = at(rank() - step), target = at(rank() + step);
    permute(group_, in, out, source, target, "permute", kDeadline);
    expect(out.data(), count_, str(text(Collective::kPermute, in_place), " step ", step),
           [&](auto i) { return source < 0 ? from_small<T>(0) : sent<T>(source, i); });
  }

  Wire& wire_;
  Group& group_;
  ProcessorId processor_;
  std::size_t size_, count_, block_;
};

class CommConformance : public testing::TestWithParam<Case> {};
class FullCommConformance : public CommConformance {};

void check(const Case& test) {
  const auto& [engine, size, count, dtype] = test;
  on_one_group(engine, size, [&, count = count, dtype = dtype](Wire& wire, Group& group) {
    ASSERT_EQ(group.size(), std::get<1>(test));
    with_type(dtype, [&](auto zero) { Checker<decltype(zero)>(wire, group, ProcessorId(group.rank()), count).run(); });
  });
}

TEST_P(CommConformance, EveryCollective) { check(GetParam()); }
TEST_P(FullCommConformance, EveryCollective) { check(GetParam()); }

const auto kDTypes = testing::Values(DType::kF32, DType::kBF16, DType::kF16, DType::kF64, DType::kI32, DType::kI64,
                                     DType::kU32, DType::kU8, DType::kBool);

INSTANTIATE_TEST_SUITE_P(Small, CommConformance,
                         testing::Combine(testing::ValuesIn(engines()), testing::Values(1, 2, 3, 4, 8),
                                          testing::Values(0, 1, 7, 1000), kDTypes),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Large, CommConformance,
                         testing::Combine(testing::ValuesIn(engines()), testing::Values(2, 3), testing::Values(100'003),
                                          testing::Values(DType::kF32, DType::kBF16)),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Large, FullCommConformance,
                         testing::Combine(testing::ValuesIn(engines()), testing::Values(1, 2, 3, 4, 8),
                                          testing::Values(1 << 20), kDTypes),
                         name_of_case);

}  // namespace
}  // namespace weft::comm::conformance_test
