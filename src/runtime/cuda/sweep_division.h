// Division of a sweep's rows x columns among threads, by sizes alone where it decides about the workspace.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/cuda/text.h"

namespace weft::cuda {

constexpr int kSweepThreads = 256, kSweepRowThreads = 256;
constexpr std::int64_t kSweepMostTeam = 1024, kSweepSumBlocks = 132;  // blocks that sum over short rows: one per multiprocessor
constexpr int kSweepAcross = 32;   // columns of a block that joins partial sums
constexpr std::int64_t kSweepMostGroups = 1024, kSweepMostSplits = 256;

struct Division {
  std::int64_t rows = 1, columns = 1, width = 1;  // `width`: neighbouring columns of one thread
  // rows: a team of `team` threads has a row; a block has `per_block` teams. `groups` blocks where they sum over rows.
  std::int64_t team = 1, per_block = 1, groups = 1, packs = 1;
  // tiles: across x down threads; `splits` blocks share the rows of a tile.
  std::int64_t across = 1, down = 1, tiles = 1, splits = 1;

  Division(std::int64_t r, std::int64_t c, std::int64_t w) : rows(r), columns(c), width(w) {
    const std::int64_t each = divided_up(columns, width);
    team = std::clamp<std::int64_t>(power_of_two_above(rows < 264 ? each : divided_up(each, 4)), 1, kSweepMostTeam);
    per_block = team > 32 ? 1 : kSweepRowThreads / team;
    groups = std::min(divided_up(rows, per_block), team > 32 ? kSweepMostGroups : kSweepSumBlocks);
    packs = divided_up(each, team);
    down = std::min<std::int64_t>(8, power_of_two_above(rows));
    across = kSweepThreads / down;
    if (each < across) {
      across = power_of_two_above(each);
      down = kSweepThreads / across;
    }
    tiles = divided_up(each, across);
    splits = std::clamp<std::int64_t>(divided_up(rows, down * 4), 1, kSweepMostSplits);
  }
};

}  // namespace weft::cuda
