#include "program/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace weft::packing_test {
namespace {

struct Piece {
  int first = 0, last = 0;
  std::int64_t bytes = 0, offset = 0;
};

bool meet(const Piece& a, const Piece& b) {
  return a.first <= b.last && b.first <= a.last && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

// Tries every end of a piece, and 0, from the lowest on.
std::int64_t lowest_free(Piece piece, const std::vector<Piece>& others) {
  std::vector<std::int64_t> offsets{0};
  for (const Piece& other : others) offsets.push_back(other.offset + other.bytes);
  std::ranges::sort(offsets);
  for (std::int64_t offset : offsets) {
    piece.offset = offset;
    if (std::ranges::none_of(others, [&](const Piece& other) { return meet(piece, other); })) return offset;
  }
  return -1;
}

TEST(Packing, GivesTheLowestPlaceThatIsFree) {
  std::mt19937 random(7);
  for (int times : {1, 2, 13, 64, 100}) {
    Packing packing(times);
    std::vector<Piece> placed;
    for (int i = 0; i < 300; ++i) {
      Piece piece;
      piece.first = static_cast<int>(random() % static_cast<unsigned>(times));
      piece.last = std::min(times - 1, piece.first + static_cast<int>(random() % (i % 3 == 0 ? 50 : 4)));
      piece.bytes = static_cast<std::int64_t>(random() % 5) * 64;  // none at all too
      piece.offset = packing.place(piece.first, piece.last, piece.bytes);
      ASSERT_EQ(piece.offset, lowest_free(piece, placed)) << "piece " << i << " of " << times << " times";
      placed.push_back(piece);
    }
  }
}

// As a training step of many layers: what a layer keeps for its derivative, and what it needs for a moment, twice.
std::int64_t steps_of(int layers) {
  constexpr int kEach = 10;
  const int end = 2 * layers * kEach;
  Packing packing(end);
  for (std::int64_t bytes : {4096, 1024, 64})
    for (int i = 0; i < layers * kEach; ++i) {
      packing.place(i, end - 1 - i, bytes);
      packing.place(i, std::min(end - 1, i + 2), bytes);
      packing.place(end - 1 - i, std::min(end - 1, end - i), bytes);
    }
  return packing.steps();
}

// The depth of the tree is a logarithm: four times the pieces take little over four times the steps.
TEST(Packing, StepsGrowWithThePiecesAlone) {
  const std::int64_t few = steps_of(25);
  EXPECT_LT(steps_of(100), 6 * few);
  EXPECT_LT(steps_of(400), 36 * few);
}

}  // namespace
}  // namespace weft::packing_test
