// Binding a sweep: tiles, the steps of each phase in order, and where every term lies.
#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "base/index.h"
#include "runtime/cpu/sweep.h"

namespace weft::cpu {

namespace {

constexpr std::int64_t kTile = 2048;           // elements of a register, at most
constexpr std::int64_t kWidest = 4096;         // columns of a tile, unless rows are held whole
constexpr std::int64_t kLeastRun = 512;        // shorter runs of rows are copied instead of walked
constexpr std::int64_t kSweptAlone = 1 << 13;  // elements that are not worth waking the others for

std::int64_t product(const std::vector<Dim>& dims) {
  std::int64_t size = 1;
  for (const Dim& dim : dims) size *= dim.size;
  return size;
}

class SweepBinder {
 public:
  SweepBinder(const Program& body, const RowPlan& plan, const std::vector<TensorView>& inputs,
              const std::vector<TensorView>& outputs, ProcessorId processor, int workers)
      : plan_(plan), terms_(terms_of(body, plan, processor)), operands_(inputs.size()), workers_(workers) {
    b_.accesses.reserve(inputs.size() + outputs.size());
    b_.extents.reserve(terms_.all.size());
    b_.lanes.reserve(terms_.all.size());
    for (const TensorView& view : inputs) b_.accesses.emplace_back(view, plan.rows, plan.cols);
    for (const TensorView& view : outputs) b_.accesses.emplace_back(view, plan.rows, plan.cols);
    for (const Term& term : terms_.all) {
      b_.extents.push_back(term.extent);
      b_.lanes.push_back(lane_of(term.dtype));
    }
    b_.places.resize(terms_.all.size());
    accumulator_of_.assign(terms_.all.size(), -1);
    b_.rows = product(plan.rows);
    b_.cols = product(plan.cols);
  }

  BoundSweep bind() {
    choose_tiles();
    list_steps();
    join_pairs(b_.steps, terms_.all, uses());
    place_results();
    place_registers();
    for (auto* steps : {&b_.scalar_steps, &b_.column_steps, &b_.steps, &b_.late_scalar_steps, &b_.late_steps})
      for (Step& step : *steps) connect(step);
    for (std::size_t t = 0; t < terms_.all.size(); ++t)
      if (b_.places[t].kind == Place::Kind::kMemory || b_.places[t].kind == Place::Kind::kTable)
        b_.moving.push_back(static_cast<int>(t));
    find_streams(b_, terms_, operands_);
    return std::move(b_);
  }

 private:
  std::vector<int> uses() const {
    std::vector<int> count(terms_.all.size(), 0);
    for (const auto* steps : {&b_.scalar_steps, &b_.column_steps, &b_.steps, &b_.late_scalar_steps, &b_.late_steps})
      for (const Step& step : *steps)
        for (int i = 0; i < step.arity; ++i) ++count[at(step.args[i])];
    for (int t : terms_.outputs) ++count[at(t)];
    return count;
  }

  const Term& term(int t) const { return terms_.all[at(t)]; }

  // ---- tiles

  // Values per row that are written or joined must be met once: their rows are not cut.
  bool holds_rows_whole() const {
    if (plan_.whole_rows) return true;
    for (int t : terms_.outputs)
      if (term(t).extent == Extent::kRow) return true;
    return std::ranges::any_of(terms_.all, [&](const Term& join) {
      return join.kind == Term::Kind::kJoinAll && term(join.args[0]).extent == Extent::kRow;
    });
  }

  // The tiles of all operands and results and about three registers stay in 32 KiB.
  std::int64_t tile_elements() const {
    std::int64_t fulls = 0;
    for (const Term& term : terms_.all) fulls += term.kind == Term::Kind::kOperand && term.extent == Extent::kFull;
    for (int t : terms_.outputs) fulls += term(t).extent == Extent::kFull;
    return std::clamp<std::int64_t>(8192 / (fulls + 3) / 64 * 64, 512, kTile);
  }

  void choose_tiles() {
    const bool whole = holds_rows_whole();
    const bool one_run = std::ranges::all_of(b_.accesses, [](const Access& a) { return a.one_column_run(); });
    const std::int64_t tile = tile_elements();
    b_.tile_cols = whole || !one_run || b_.cols <= kWidest ? b_.cols : tile;
    b_.row_run = b_.rows;
    for (const Access& access : b_.accesses)
      if (access.plain() && access.row_run() < b_.row_run && access.row_run() * b_.tile_cols >= kLeastRun)
        b_.row_run = access.row_run();
    b_.tile_rows = std::min(b_.row_run, std::max<std::int64_t>(1, tile / b_.tile_cols));
    b_.by_rows = whole || b_.rows >= 8 * workers_ || b_.cols < 1024 * workers_;
    b_.active = b_.rows * b_.cols < kSweptAlone ? 1 : workers_;
  }

  // ---- steps

  void list_steps() {
    std::vector<bool> seen(terms_.all.size(), false), seen_late(terms_.all.size(), false);
    std::vector<bool> wanted(terms_.all.size(), false);
    for (int t : terms_.outputs) wanted[at(t)] = true;
    for (int t = 0; t < static_cast<int>(terms_.all.size()); ++t) {
      const bool in_rows = term(t).extent == Extent::kFull || term(t).extent == Extent::kRow;
      if (term(t).joins_rows() || (wanted[at(t)] && in_rows)) visit(t, seen, false);
    }
    for (int t : terms_.outputs)
      if (term(t).extent == Extent::kColumn || term(t).extent == Extent::kScalar) visit(t, seen_late, true);
  }

  void visit(int t, std::vector<bool>& seen, bool late) {
    if (seen[at(t)]) return;
    seen[at(t)] = true;
    const Term& now = term(t);
    const bool combines = late && now.joins_rows();
    if (!combines)
      for (int arg : now.args) visit(arg, seen, late);
    if (is_placed_leaf(t)) return;
    Step step = combines ? combination(t) : step_of(t);
    step.out = t;
    step.extent = now.extent;
    step.dtype = now.dtype;
    list_for(now, late).push_back(step);
  }

  std::vector<Step>& list_for(const Term& term, bool late) {
    const bool is_scalar = term.extent == Extent::kScalar, is_column = term.extent == Extent::kColumn;
    if (late) return is_scalar ? b_.late_scalar_steps : b_.late_steps;
    if (term.joins_rows() || !(is_scalar || is_column)) return b_.steps;
    return is_scalar ? b_.scalar_steps : b_.column_steps;
  }

  // Literals, indices along columns, and operands that can be read where they are.
  bool is_placed_leaf(int t) {
    const Term& leaf = term(t);
    Place& place = b_.places[at(t)];
    if (place.kind != Place::Kind::kNone) return true;
    if (leaf.kind == Term::Kind::kLiteral || (leaf.kind == Term::Kind::kIndex && leaf.extent == Extent::kColumn)) {
      place = {Place::Kind::kTable, add_table(b_.table, leaf, plan_.cols), -1};
      return true;
    }
    if (leaf.kind != Term::Kind::kOperand || !readable_in_place(b_.accesses[at(leaf.operand)], leaf.extent))
      return false;
    place = {Place::Kind::kMemory, 0, leaf.operand};
    return true;
  }

  bool readable_in_place(const Access& access, Extent extent) const {
    switch (extent) {
      case Extent::kScalar: return access.plain_scalar();
      case Extent::kColumn: return access.plain();
      case Extent::kRow: return access.plain_rows() && access.row_run() % b_.row_run == 0;
      case Extent::kFull: return access.plain() && access.row_run() % b_.row_run == 0;
    }
    return false;
  }

  Step step_of(int t) {
    const Term& now = term(t);
    Step step;
    step.lane = step.out_lane = lane_of(now.dtype);
    step.fit = fit_op(now.dtype);
    step.how = now.how;
    for (int arg : now.args) step.args[step.arity++] = arg;
    switch (now.kind) {
      case Term::Kind::kOperand:
        step.kind = Step::Kind::kLoad;
        step.access = now.operand;
        step.fit = nullptr;
        break;
      case Term::Kind::kIndex:
        step.kind = Step::Kind::kIndex;
        std::tie(step.index_inner, step.index_size) = radix_of(plan_.rows, now.dim);
        step.index_begin = now.begin;
        step.fit = nullptr;
        break;
      case Term::Kind::kLiteral:
      case Term::Kind::kSelect:
      case Term::Kind::kSpread: step.fit = nullptr; break;
      case Term::Kind::kCast:
        step.op = cast_op(term(now.args[0]).dtype, now.dtype);
        step.fit = nullptr;
        break;
      case Term::Kind::kApply: apply(step, now); break;
      default: join(step, t); break;
    }
    return step;
  }

  void apply(Step& step, const Term& now) const {
    step.lane = lane_of(term(now.args[0]).dtype);
    step.function = now.function;
    if (now.function->gives_truth()) step.fit = nullptr;
  }

  void join(Step& step, int t) {
    const Term& now = term(t);
    if (now.kind == Term::Kind::kJoinRows) {
      step.kind = Step::Kind::kJoinRows;
      step.op = column_reduction(now.how, step.lane);
      step.accumulator = accumulator(t);
      return;
    }
    step.op = row_reduction(now.how, step.lane);
    step.kind = Step::Kind::kJoinColumns;
    if (now.kind != Term::Kind::kJoinAll) return;
    step.kind = Step::Kind::kJoinAll;
    step.of_rows = term(now.args[0]).extent == Extent::kRow;
    step.accumulator = accumulator(t);
  }

  int accumulator(int t) {
    int& index = accumulator_of_[at(t)];
    if (index >= 0) return index;
    const bool per_column = term(t).kind == Term::Kind::kJoinRows;
    const std::size_t bytes = per_column ? static_cast<std::size_t>(b_.cols) * 8 : 8;
    b_.accumulators.push_back({reserved(bytes), per_column, !is_float(term(t).dtype), term(t).how});
    return index = static_cast<int>(b_.accumulators.size()) - 1;
  }

  Step combination(int t) {
    Step step;
    step.kind = Step::Kind::kCombine;
    step.accumulator = accumulator(t);
    step.lane = step.out_lane = lane_of(term(t).dtype);
    step.fit = fit_op(term(t).dtype);
    return step;
  }

  // ---- places

  std::size_t reserved(std::size_t bytes) {
    const std::size_t offset = b_.scratch_bytes;
    b_.scratch_bytes += (bytes + 127) / 64 * 64;  // and some, so that powers of two do not share cache sets
    return offset;
  }

  std::int64_t elements(Extent extent) const {
    const bool has_rows = extent == Extent::kRow || extent == Extent::kFull;
    const bool has_cols = extent == Extent::kColumn || extent == Extent::kFull;
    return (has_rows ? b_.tile_rows : 1) * (has_cols ? b_.tile_cols : 1);
  }

  // A result is written where it belongs by the step that makes it, if the memory allows; else it is stored at the end of
  // the tile, when all has been read.
  void place_results() {
    std::vector<Step> stores;
    for (std::size_t k = 0; k < terms_.outputs.size(); ++k) {
      const int t = terms_.outputs[k];
      const int access = static_cast<int>(operands_ + k);
      Place& place = b_.places[at(t)];
      if (term(t).extent == Extent::kFull && place.kind == Place::Kind::kNone && writable_in_place(t, access)) {
        place = {Place::Kind::kMemory, 0, access};
        continue;
      }
      Step store;
      store.kind = Step::Kind::kStore;
      store.extent = term(t).extent;
      store.args[0] = t;
      store.arity = 1;
      store.access = access;
      store.lane = store.out_lane = lane_of(term(t).dtype);
      if (store.extent == Extent::kScalar) b_.scalar_stores.push_back(store);
      else if (store.extent == Extent::kColumn) b_.late_steps.push_back(store);
      else stores.push_back(store);
    }
    b_.steps.insert(b_.steps.end(), stores.begin(), stores.end());
  }

  bool writable_in_place(int t, int access) const {
    const Access& out = b_.accesses[at(access)];
    if (!out.plain() || out.row_run() % b_.row_run != 0) return false;
    std::size_t made = 0;
    while (b_.steps[made].out != t) ++made;
    for (std::size_t s = made + 1; s < b_.steps.size(); ++s)
      for (int read : memory_read_by(b_.steps[s]))
        if (read >= 0 && b_.accesses[at(read)].data() == out.data()) return false;
    return true;
  }

  // The accesses that a step reads.
  std::array<int, 4> memory_read_by(const Step& step) const {
    std::array<int, 4> read = {-1, -1, -1, step.kind == Step::Kind::kLoad ? step.access : -1};
    for (int i = 0; i < step.arity; ++i) {
      const Place& place = b_.places[at(step.args[i])];
      if (term(step.args[i]).kind == Term::Kind::kOperand && place.kind == Place::Kind::kMemory)
        read[at(i)] = place.access;
    }
    return read;
  }

  // Registers of a tile are used again when their terms are dead; others are few, and have their own.
  void place_registers() {
    std::vector<std::size_t> last(terms_.all.size(), 0);
    for (std::size_t s = 0; s < b_.steps.size(); ++s)
      for (int i = 0; i < b_.steps[s].arity; ++i) last[at(b_.steps[s].args[i])] = s;
    for (const auto* steps : {&b_.scalar_steps, &b_.column_steps, &b_.late_scalar_steps, &b_.late_steps})
      for (const Step& step : *steps) own_register(step.out);
    std::multimap<std::size_t, std::size_t> free;  // by bytes: offsets
    for (std::size_t s = 0; s < b_.steps.size(); ++s) {
      const Step& step = b_.steps[s];
      const bool elementwise = step.kind == Step::Kind::kLoop || step.kind == Step::Kind::kScalars;
      if (elementwise) release(step, s, last, free);
      if (step.out >= 0 && !term(step.out).joins_rows()) take(step.out, free);
      if (!elementwise) release(step, s, last, free);
    }
    for (Step& step : b_.steps)
      if (step.kind == Step::Kind::kJoinAll) step.buffer = reserved(static_cast<std::size_t>(b_.tile_rows) * 8);
  }

  void own_register(int t) {
    if (t < 0 || b_.places[at(t)].kind != Place::Kind::kNone) return;
    b_.places[at(t)] = {Place::Kind::kRegister, reserved(register_bytes(t)), -1};
  }
  std::size_t register_bytes(int t) const {
    return static_cast<std::size_t>(elements(term(t).extent)) * size_of(lane_of(term(t).dtype));
  }

  void take(int t, std::multimap<std::size_t, std::size_t>& free) {
    if (term(t).extent != Extent::kFull || b_.places[at(t)].kind != Place::Kind::kNone) return own_register(t);
    const auto found = free.find(register_bytes(t));
    if (found == free.end()) return own_register(t);
    b_.places[at(t)] = {Place::Kind::kRegister, found->second, -1};
    free.erase(found);
  }

  void release(const Step& step, std::size_t s, const std::vector<std::size_t>& last,
               std::multimap<std::size_t, std::size_t>& free) {
    for (int i = 0; i < step.arity; ++i) {
      const int t = step.args[i];
      const bool again = std::find(step.args, step.args + i, t) != step.args + i;
      if (again || last[at(t)] != s || term(t).extent != Extent::kFull) continue;
      if (b_.places[at(t)].kind == Place::Kind::kRegister) free.emplace(register_bytes(t), b_.places[at(t)].offset);
    }
  }

  // ---- strides, forms and loops

  std::ptrdiff_t stride_of(int t) const {
    if (term(t).extent == Extent::kRow) return 1;
    if (term(t).extent != Extent::kFull) return 0;
    const Place& place = b_.places[at(t)];
    return place.kind == Place::Kind::kMemory ? b_.accesses[at(place.access)].row_stride() : b_.tile_cols;
  }

  bool is_per_row(int t, Extent extent) const {
    const Extent own = term(t).extent;
    return own != extent && (own == Extent::kScalar || own == Extent::kRow);
  }

  void connect(Step& step) const {
    const bool is_join = step.kind == Step::Kind::kJoinColumns || step.kind == Step::Kind::kJoinRows ||
                         step.kind == Step::Kind::kJoinAll;
    if (step.out >= 0 && !is_join) step.out_stride = stride_of(step.out);
    step.flat = step.extent == Extent::kFull && step.kind != Step::Kind::kStore && step.out_stride == b_.tile_cols;
    for (int i = 0; i < step.arity; ++i) {
      step.stride[i] = stride_of(step.args[i]);
      const Extent extent = term(step.args[i]).extent;
      if (extent != Extent::kScalar && (extent != Extent::kFull || step.stride[i] != b_.tile_cols)) step.flat = false;
    }
    if (step.kind == Step::Kind::kLoop) choose_loop(step);
  }

  void choose_loop(Step& step) const {
    const Term& now = term(step.out);
    const auto per_row = [&](int i) { return is_per_row(step.args[i], step.extent); };
    if (step.pair) {
      step.op = pair_op(*step.pair, per_row(1), step.arity == 3 && per_row(2));
    } else if (now.kind == Term::Kind::kSelect) {
      step.op = select_op(step.out_lane, per_row(1), per_row(2));
    } else if (now.kind == Term::Kind::kSpread) {
      step.op = per_row(0) ? fill_op(step.out_lane) : copy_op(step.out_lane);
    } else if (now.kind == Term::Kind::kApply) {
      step.forms = per_row(0)                      ? Forms::kFirstPerRow
                   : step.arity == 2 && per_row(1) ? Forms::kSecondPerRow
                                                   : Forms::kTiles;
      step.op = find_tile_op(now.function->name, step.lane, step.forms);
      if (!step.op) step.kind = Step::Kind::kScalars;
    }
  }

  const RowPlan& plan_;
  Terms terms_;
  std::size_t operands_;
  int workers_;
  BoundSweep b_;
  std::vector<int> accumulator_of_;
};

}  // namespace

BoundSweep bind_sweep(const Program& body, const RowPlan& plan, const std::vector<TensorView>& inputs,
                      const std::vector<TensorView>& outputs, ProcessorId processor, int workers) {
  return SweepBinder(body, plan, inputs, outputs, processor, workers).bind();
}

}  // namespace weft::cpu
