// A fused body bound to memory: one sweep over rows, tile by tile. A tile's terms lie in registers of a few KiB in the
// worker's scratch; each step runs one loop of tile_ops.h over one of them. Operands and results that have the layout
// of lanes are read and written in place.
//
// Rows are divided over the workers in equal runs; sums over rows are kept by each worker and added in the order of
// workers. Bits depend on the shapes and the number of workers alone.
#pragma once

#include <optional>
#include <utility>

#include "runtime/cpu/access.h"
#include "runtime/cpu/terms.h"
#include "runtime/host/workers.h"

namespace weft::cpu {

// One loop over a term, or a move between memory and a register.
struct Step {
  enum class Kind : std::uint8_t {
    kLoop,
    kScalars,  // a function without a loop
    kLoad,
    kIndex,  // along a dim of the rows
    kJoinColumns,
    kJoinRows,
    kJoinAll,
    kCombine,  // what the workers joined
    kStore,
  };
  Kind kind = Kind::kLoop;
  Extent extent = Extent::kFull;  // of the result; of what is stored
  Lane lane = Lane::kF32, out_lane = Lane::kF32;
  Forms forms = Forms::kTiles;
  bool flat = false;     // whole tiles are one run of numbers, in all operands
  bool of_rows = false;  // kJoinAll: of a term per row
  int arity = 0;
  int args[3] = {-1, -1, -1};  // terms
  int out = -1;                // a term
  std::ptrdiff_t stride[3] = {}, out_stride = 0;
  TileOp op = nullptr, fit = nullptr;
  const Pointwise* function = nullptr;
  std::optional<Pair> pair;  // two functions in one loop
  int access = -1, accumulator = -1;
  std::size_t buffer = 0;  // kJoinAll: a number per row, in scratch
  Reduce how = Reduce::kSum;
  std::int64_t index_inner = 1, index_size = 1, index_begin = 0;
  DType dtype = DType::kF32;
};

// Where a term is: a register at an offset in the scratch, numbers made when bound, or memory itself.
struct Place {
  enum class Kind : std::uint8_t { kNone, kRegister, kTable, kMemory };
  Kind kind = Kind::kNone;
  std::size_t offset = 0;  // in scratch or table
  int access = -1;
};

// What a worker has joined so far: doubles or int64, one for every column or one.
struct Accumulator {
  std::size_t offset = 0;  // in scratch
  bool per_column = false, integers = false;
  Reduce how = Reduce::kSum;
};

struct BoundSweep {
  std::vector<Extent> extents;  // by term
  std::vector<Lane> lanes;      // by term
  std::vector<Place> places;    // by term
  std::vector<Access> accesses;
  std::int64_t rows = 1, cols = 1;
  std::int64_t tile_rows = 1, tile_cols = 1;
  std::int64_t row_run = 1;  // no tile crosses a multiple of it
  bool by_rows = true;       // what the workers divide
  int active = 1;            // workers that sweep

  std::vector<Step> scalar_steps, column_steps, steps;  // before the rows; before a run of columns; of every tile
  std::vector<Step> late_scalar_steps, late_steps;      // when all rows are done: once, and for every run of columns
  std::vector<Step> scalar_stores;                      // at the very end
  std::vector<int> streams;  // accesses to full values, whose next tile is fetched while this one is computed
  std::vector<int> moving;   // terms whose address changes from tile to tile: in memory, or numbers per column
  std::vector<Accumulator> accumulators;
  std::vector<std::byte> table;
  std::size_t scratch_bytes = 0;
};

// Adds the numbers of a literal, or of an index along one of the columns' dims, and says where they begin.
std::size_t add_table(std::vector<std::byte>& table, const Term& leaf, const std::vector<Dim>& cols);
// How many elements of `dims` make one step along the one of that name, and its size.
std::pair<std::int64_t, std::int64_t> radix_of(const std::vector<Dim>& dims, const std::string& name);
// Says which memory is fetched ahead: none where it stays in the caches anyway, or is one long run.
void find_streams(BoundSweep& bound, const Terms& terms, std::size_t operands);
// Joins steps of full f32 terms that can run as one pair. `uses`: how often each term is read, by steps or as an output.
void join_pairs(std::vector<Step>& steps, const std::vector<Term>& terms, const std::vector<int>& uses);

// `inputs` and `outputs` are the body's, in order. Nothing of the body is kept.
BoundSweep bind_sweep(const Program& body, const RowPlan& plan, const std::vector<TensorView>& inputs,
                      const std::vector<TensorView>& outputs, ProcessorId processor, int workers);

class Sweep {
 public:
  Sweep(BoundSweep bound, Workers& workers);

  void run();

 private:
  struct Tile {
    std::int64_t row = 0, rows = 0, col = 0, cols = 0;
  };
  // The cache lines of the next tile that are still to be fetched, a few at every step: memory works while we compute.
  struct Ahead {
    Tile tile;
    std::size_t stream = 0;
    std::int64_t row = 0, byte = 0;
    std::int64_t lines_per_step = 0;
  };
  struct Seat {  // of a worker
    std::byte* scratch = nullptr;
    std::vector<void*> at;  // by term
    Ahead ahead;
  };

  void take_seat(int worker);
  void sweep(int worker);
  void sweep_columns(Seat& seat, Share rows, std::int64_t col, std::int64_t cols);
  void finish(int worker, int workers);
  void start_accumulators(Seat& seat) const;
  void move_to(Seat& seat, const Tile& tile);
  Tile next_tile(const Tile& tile, Share rows, std::int64_t first_col, std::int64_t end_col) const;
  void look_ahead(Seat& seat, const Tile& next) const;
  void fetch_some(Ahead& ahead) const;
  void run_steps(const std::vector<Step>& steps, Seat& seat, const Tile& tile);
  void run_step(const Step& step, Seat& seat, const Tile& tile);
  void loop(const Step& step, Seat& seat, const Tile& tile) const;
  void load(const Step& step, Seat& seat, const Tile& tile) const;
  void store(const Step& step, Seat& seat, const Tile& tile) const;
  void index(const Step& step, Seat& seat, const Tile& tile) const;
  void join_all(const Step& step, Seat& seat, const Tile& tile) const;
  void combine(const Step& step, Seat& seat, const Tile& tile) const;

  BoundSweep b_;
  Workers& workers_;
  bool has_late_;
  std::vector<Seat> seats_;
};

}  // namespace weft::cpu
