// Ids, ranges of ids, and containers that ids index.
#include "base/index.h"

#include <gtest/gtest.h>

#include <deque>
#include <sstream>
#include <string>
#include <unordered_set>

namespace weft::index_test {
namespace {

using PearId = Id<class Pear>;
using PlumId = Id<class Plum>;

static_assert(!std::is_convertible_v<int, PearId> && !std::is_convertible_v<PearId, int>);
static_assert(!std::is_constructible_v<PearId, PlumId> && !std::is_assignable_v<PearId&, PlumId>);
static_assert(!std::is_invocable_v<decltype([](auto& v, auto i) -> decltype(v[i]) { return v[i]; }),
                                   Indexed<PearId, int>&, PlumId>);

template <class I>
std::vector<int> numbers(const auto& range) {
  std::vector<int> all;
  for (const I id : range) all.push_back(id.number());
  return all;
}

TEST(Id, IsOfNothingAtFirst) {
  EXPECT_FALSE(PearId());
  EXPECT_TRUE(PearId(0));
  EXPECT_EQ(PearId(3).index(), 3u);
  EXPECT_LT(PearId(2), PearId(std::size_t{3}));
  std::ostringstream out;
  out << PearId(7);
  EXPECT_EQ(out.str(), "7");
  EXPECT_EQ((std::unordered_set<PearId>{PearId(1), PearId(1), PearId(2)}).size(), 2u);
}

TEST(Id, Ranges) {
  EXPECT_EQ(numbers<PearId>(ids<PearId>(3)), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(numbers<PearId>(ids(PearId(2), PearId(4))), (std::vector<int>{2, 3}));
  EXPECT_TRUE(numbers<PearId>(ids(PearId(2), PearId(2))).empty());
  EXPECT_EQ(numbers<PearId>(identity<PearId>(2)), (std::vector<int>{0, 1}));
}

TEST(Indexed, HasOneThingPerId) {
  Indexed<PearId, std::string, std::deque<std::string>> names;
  EXPECT_EQ(names.end_id(), PearId(0));
  EXPECT_EQ(names.add("a"), PearId(0));
  const PearId b = names.add("b");
  EXPECT_EQ(names[b], "b");
  names[PearId(0)] = "c";
  EXPECT_EQ(names.front(), "c");
  EXPECT_EQ(numbers<PearId>(names.ids()), (std::vector<int>{0, 1}));
  EXPECT_TRUE(names.has(b));
  EXPECT_FALSE(names.has(PearId(2)));
  EXPECT_FALSE(names.has(PearId()));
}

TEST(At, TakesNumbersAndEnumerators) {
  enum class Color { kRed, kBlue };
  const std::vector<int> all = {5, 6};
  EXPECT_EQ(all[at(std::int64_t{1})], 6);
  EXPECT_EQ(all[at(Color::kBlue)], 6);
}

}  // namespace
}  // namespace weft::index_test
