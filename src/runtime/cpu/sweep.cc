#include "runtime/cpu/sweep.h"

#include <algorithm>

#include "base/dispatch.h"
#include "base/index.h"

namespace weft::cpu {

namespace {

constexpr std::int64_t kLateAlone = 1 << 13;  // columns that one worker finishes by itself

}  // namespace

Sweep::Sweep(BoundSweep bound, Workers& workers) : b_(std::move(bound)), workers_(workers), seats_(at(workers.size())) {
  has_late_ = !b_.late_steps.empty() || !b_.late_scalar_steps.empty() || !b_.scalar_stores.empty();
  for (Seat& seat : seats_) seat.at.resize(b_.places.size());
  workers_.reserve(b_.scratch_bytes);
}

void Sweep::run() {
  if (b_.active == 1) sweep(0);
  else workers_.run([this](int worker) { sweep(worker); });
  if (!has_late_) return;
  const bool alone = b_.cols < kLateAlone || b_.late_steps.empty();
  if (alone) finish(0, 1);
  else workers_.run([this](int worker) { finish(worker, workers_.size()); });
  for (const Step& step : b_.scalar_stores) run_step(step, seats_[0], {0, 1, 0, 1});
}

// ---- where terms are

void Sweep::take_seat(int worker) {
  Seat& seat = seats_[at(worker)];
  seat.scratch = workers_.scratch(worker);
  for (std::size_t t = 0; t < b_.places.size(); ++t) {
    const Place& place = b_.places[t];
    if (place.kind == Place::Kind::kRegister) seat.at[t] = seat.scratch + place.offset;
    if (place.kind == Place::Kind::kTable) seat.at[t] = b_.table.data() + place.offset;
    if (place.kind == Place::Kind::kMemory) seat.at[t] = b_.accesses[at(place.access)].at(0, 0);
  }
}

void Sweep::move_to(Seat& seat, const Tile& tile) {
  for (int t : b_.moving) {
    const Place& place = b_.places[at(t)];
    const Extent extent = b_.extents[at(t)];
    if (extent == Extent::kScalar) continue;
    if (place.kind == Place::Kind::kTable) {
      const auto lane = static_cast<std::int64_t>(size_of(b_.lanes[at(t)]));
      seat.at[at(t)] = b_.table.data() + place.offset + tile.col * lane;
      continue;
    }
    const Access& access = b_.accesses[at(place.access)];
    seat.at[at(t)] = access.at(extent == Extent::kColumn ? 0 : tile.row, extent == Extent::kRow ? 0 : tile.col);
  }
}

void Sweep::start_accumulators(Seat& seat) const {
  for (const Accumulator& accumulator : b_.accumulators) {
    const std::int64_t count = accumulator.per_column ? b_.cols : 1;
    std::byte* first = seat.scratch + accumulator.offset;
    if (accumulator.integers)
      std::fill_n(reinterpret_cast<std::int64_t*>(first), count, integer_start_of(accumulator.how));
    else std::fill_n(reinterpret_cast<double*>(first), count, start_of(accumulator.how));
  }
}

// ---- the sweep

void Sweep::sweep(int worker) {
  take_seat(worker);
  Seat& seat = seats_[at(worker)];
  start_accumulators(seat);
  const Share rows = b_.by_rows ? share_of(b_.rows, worker, b_.active) : Share{0, b_.rows};
  const Share cols = b_.by_rows ? Share{0, b_.cols} : share_of(b_.cols, worker, b_.active, 64);
  if (rows.empty() || cols.empty()) return;
  run_steps(b_.scalar_steps, seat, {0, 1, 0, 1});
  const bool cols_first = !b_.column_steps.empty() || !b_.accumulators.empty();
  const std::int64_t run = cols_first ? b_.tile_cols : cols.end - cols.begin;
  for (std::int64_t col = cols.begin; col < cols.end; col += run)
    sweep_columns(seat, rows, col, std::min(run, cols.end - col));
}

void Sweep::sweep_columns(Seat& seat, Share rows, std::int64_t col, std::int64_t cols) {
  if (!b_.column_steps.empty()) {
    const Tile columns{rows.begin, 1, col, cols};
    move_to(seat, columns);
    run_steps(b_.column_steps, seat, columns);
  }
  Tile tile = next_tile({rows.begin, 0, col, 0}, rows, col, col + cols);
  while (tile.rows > 0) {
    const Tile next = next_tile(tile, rows, col, col + cols);
    look_ahead(seat, next);
    move_to(seat, tile);
    for (const Step& step : b_.steps) {
      fetch_some(seat.ahead);
      run_step(step, seat, tile);
    }
    tile = next;
  }
}

// The tile behind this one: further along its columns, else the first of the next rows; empty at the end.
Sweep::Tile Sweep::next_tile(const Tile& tile, Share rows, std::int64_t first_col, std::int64_t end_col) const {
  Tile next{tile.row, tile.rows, tile.col + tile.cols, 0};
  if (next.col == end_col || tile.rows == 0) {
    next.row += tile.rows;
    next.col = first_col;
    const std::int64_t run_ends = (next.row / b_.row_run + 1) * b_.row_run;
    next.rows = std::min({b_.tile_rows, rows.end - next.row, run_ends - next.row});
  }
  next.cols = std::min(b_.tile_cols, end_col - next.col);
  return next;
}

void Sweep::look_ahead(Seat& seat, const Tile& next) const {
  seat.ahead = {next, 0, 0, 0, 0};
  if (next.rows <= 0) seat.ahead.stream = b_.streams.size();
  const std::int64_t lines = next.rows * (next.cols * 4 / 64 + 1) * static_cast<std::int64_t>(b_.streams.size());
  seat.ahead.lines_per_step = lines / static_cast<std::int64_t>(std::max<std::size_t>(1, b_.steps.size())) + 1;
}

void Sweep::fetch_some(Ahead& ahead) const {
  for (std::int64_t left = ahead.lines_per_step; left > 0 && ahead.stream < b_.streams.size();) {
    const Access& access = b_.accesses[at(b_.streams[ahead.stream])];
    const std::byte* row = access.address_of(ahead.tile.row + ahead.row, ahead.tile.col);
    const std::int64_t bytes = ahead.tile.cols * access.element_bytes();
    for (; left > 0 && ahead.byte < bytes; ahead.byte += 64, --left) __builtin_prefetch(row + ahead.byte, 0, 2);
    if (ahead.byte < bytes) return;
    ahead.byte = 0;
    if (++ahead.row < ahead.tile.rows) continue;
    ahead.row = 0;
    ++ahead.stream;
  }
}

// Each worker finishes its columns; scalars are made by everyone, and stored from the first seat.
void Sweep::finish(int worker, int workers) {
  take_seat(worker);
  Seat& seat = seats_[at(worker)];
  run_steps(b_.late_scalar_steps, seat, {0, 1, 0, 1});
  if (b_.late_steps.empty()) return;
  const Share cols = share_of(b_.cols, worker, workers, 64);
  for (std::int64_t col = cols.begin; col < cols.end; col += b_.tile_cols) {
    const Tile tile{0, 1, col, std::min(b_.tile_cols, cols.end - col)};
    move_to(seat, tile);
    run_steps(b_.late_steps, seat, tile);
  }
}

// ---- steps

void Sweep::run_steps(const std::vector<Step>& steps, Seat& seat, const Tile& tile) {
  for (const Step& step : steps) run_step(step, seat, tile);
}

void Sweep::run_step(const Step& step, Seat& seat, const Tile& tile) {
  switch (step.kind) {
    case Step::Kind::kLoop:
    case Step::Kind::kScalars:
    case Step::Kind::kJoinColumns:
    case Step::Kind::kJoinRows: return loop(step, seat, tile);
    case Step::Kind::kLoad: return load(step, seat, tile);
    case Step::Kind::kStore: return store(step, seat, tile);
    case Step::Kind::kIndex: return index(step, seat, tile);
    case Step::Kind::kJoinAll: return join_all(step, seat, tile);
    case Step::Kind::kCombine: return combine(step, seat, tile);
  }
}

void Sweep::loop(const Step& step, Seat& seat, const Tile& tile) const {
  TileArgs args;
  for (int i = 0; i < step.arity; ++i) {
    args.in[i] = seat.at[at(step.args[i])];
    args.in_stride[i] = step.stride[i];
  }
  args.out_stride = step.out_stride;
  const auto rows = static_cast<std::size_t>(tile.rows), cols = static_cast<std::size_t>(tile.cols);
  if (step.kind == Step::Kind::kJoinRows) {
    args.out = seat.scratch + b_.accumulators[at(step.accumulator)].offset + tile.col * 8;
    args.rows = rows;
    args.cols = cols;
    return step.op(args);
  }
  args.out = seat.at[at(step.out)];
  if (step.kind == Step::Kind::kJoinColumns) {
    args.rows = rows;
    args.cols = cols;
    step.op(args);
    args = {{args.out}, {0}, args.out, 0, 1, rows};
    if (step.fit) step.fit(args);
    return;
  }
  args.rows = step.extent == Extent::kFull ? rows : 1;
  args.cols = step.extent == Extent::kScalar ? 1 : step.extent == Extent::kRow ? rows : cols;
  if (step.flat && tile.cols == b_.tile_cols) {
    args.cols *= args.rows;
    args.rows = 1;
  }
  if (step.kind == Step::Kind::kLoop) step.op(args);
  else apply_scalars(*step.function, step.lane, step.out_lane, step.forms, args);
  if (!step.fit) return;
  args.in[0] = args.out;
  args.in_stride[0] = args.out_stride;
  step.fit(args);
}

void Sweep::load(const Step& step, Seat& seat, const Tile& tile) const {
  const Access& access = b_.accesses[at(step.access)];
  void* to = seat.at[at(step.out)];
  switch (step.extent) {
    case Extent::kScalar: return access.load_columns(0, 1, to);
    case Extent::kRow: return access.load_rows(tile.row, tile.rows, to);
    case Extent::kColumn: return access.load_columns(tile.col, tile.cols, to);
    case Extent::kFull: return access.load_tile(tile.row, tile.rows, tile.col, tile.cols, to, b_.tile_cols);
  }
}

void Sweep::store(const Step& step, Seat& seat, const Tile& tile) const {
  const Access& access = b_.accesses[at(step.access)];
  const void* from = seat.at[at(step.args[0])];
  switch (step.extent) {
    case Extent::kScalar: return access.store_columns(0, 1, from);
    case Extent::kRow: return access.store_rows(tile.row, tile.rows, from);
    case Extent::kColumn: return access.store_columns(tile.col, tile.cols, from);
    case Extent::kFull: return access.store_tile(tile.row, tile.rows, tile.col, tile.cols, from, step.stride[0]);
  }
}

void Sweep::index(const Step& step, Seat& seat, const Tile& tile) const {
  auto* to = static_cast<std::byte*>(seat.at[at(step.out)]);
  for (std::int64_t r = 0; r < tile.rows; ++r, to += size_of(step.out_lane)) {
    const std::int64_t number = step.index_begin + (tile.row + r) / step.index_inner % step.index_size;
    if (is_float(step.dtype)) set_lane(step.out_lane, to, rounded(static_cast<double>(number), step.dtype));
    else set_lane(step.out_lane, to, number);
  }
}

// Rows are joined first, then their results: in lanes, and from tile to tile in double or int64.
void Sweep::join_all(const Step& step, Seat& seat, const Tile& tile) const {
  const auto rows = static_cast<std::size_t>(tile.rows);
  const void* of_rows = seat.at[at(step.args[0])];
  std::byte* buffer = seat.scratch + step.buffer;
  if (!step.of_rows) {
    step.op({{of_rows}, {step.stride[0]}, buffer, 0, rows, static_cast<std::size_t>(tile.cols)});
    of_rows = buffer;
  }
  alignas(8) std::byte one[8];
  step.op({{of_rows}, {0}, one, 0, 1, rows});
  std::byte* sum = seat.scratch + b_.accumulators[at(step.accumulator)].offset;
  const auto add = [&]<class Wide, class T>(Wide, T) {
    auto& total = *reinterpret_cast<Wide*>(sum);
    total = joined(step.how, total, static_cast<Wide>(*reinterpret_cast<const T*>(one)));
  };
  switch (step.lane) {
    case Lane::kF32: return add(double{}, float{});
    case Lane::kF64: return add(double{}, double{});
    case Lane::kI32: return add(std::int64_t{}, std::int32_t{});
    case Lane::kI64: return add(std::int64_t{}, std::int64_t{});
  }
}

void Sweep::combine(const Step& step, Seat& seat, const Tile& tile) const {
  const Accumulator& accumulator = b_.accumulators[at(step.accumulator)];
  const std::int64_t count = accumulator.per_column ? tile.cols : 1, first = accumulator.per_column ? tile.col : 0;
  auto* to = static_cast<std::byte*>(seat.at[at(step.out)]);
  const auto lane = static_cast<std::int64_t>(size_of(step.out_lane));
  const auto each = [&]<class Wide>(Wide start) {
    for (std::int64_t c = 0; c < count; ++c) {
      Wide sum = start;
      for (int worker = 0; worker < b_.active; ++worker) {
        const auto* part = reinterpret_cast<const Wide*>(workers_.scratch(worker) + accumulator.offset);
        sum = worker == 0 ? part[first + c] : joined(accumulator.how, sum, part[first + c]);
      }
      set_lane(step.out_lane, to + c * lane, sum);
    }
  };
  if (accumulator.integers) each(integer_start_of(accumulator.how));
  else each(start_of(accumulator.how));
  const auto numbers = static_cast<std::size_t>(count);
  if (step.fit) step.fit({{to}, {0}, to, 0, 1, numbers});
}

}  // namespace weft::cpu
