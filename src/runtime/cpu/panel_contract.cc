#include "runtime/cpu/panel_contract.h"

#include <algorithm>

#include "base/index.h"

namespace weft::cpu {

namespace {

using avx512::kLanes;
using avx512::kMostPanels;
using avx512::Words;

constexpr double kWorthSharing = 1 << 17;                // multiplications that are worth another worker
constexpr std::int64_t kBytesOfRows = 1 << 18;           // rows of x that stay in the second cache
constexpr std::int64_t kTaskGrain = 6, kLeastRows = 48;  // of a task

std::vector<PanelGroup> groups_of(const MatrixForm& form) {
  std::vector<PanelGroup> groups;
  for (std::int64_t i = 0; i < form.outers; ++i) {
    const Offsets at = offsets_at(form.outer, i);
    if (groups.empty() || groups.back().panels == kMostPanels || groups.back().x != at.x) groups.push_back({.x = at.x});
    PanelGroup& group = groups.back();
    group.y[group.panels] = at.y;
    group.out[group.panels++] = at.out;
  }
  return groups;
}

}  // namespace

std::int64_t panel_lanes() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bf16");
  return has ? kLanes : 0;
}

std::optional<PanelForm> panel_form(const TensorView& x, const TensorView& y, const TensorView& out) {
  const bool is_i8 = x.dtype == DType::kI8;
  const bool has_kind = is_i8 ? out.dtype == DType::kI32
                              : out.dtype == DType::kF32 && (x.dtype == DType::kF32 || x.dtype == DType::kBF16);
  if (panel_lanes() == 0 || !has_kind) return std::nullopt;
  const MatrixForm form = matrix_form({x.shape, x.strides}, {y.shape, y.strides}, {out.shape, out.strides});
  const std::int64_t word = numbers_of_word(x.dtype);
  if (!lies_in_panels(form, kLanes, word)) return std::nullopt;
  return PanelForm{.kind = is_i8       ? Words::kI8
                           : word == 2 ? Words::kBF16
                                       : Words::kF32,
                   .rows = form.m.size,
                   .x_row = form.m.x,
                   .out_row = form.m.out,
                   .words = word == 1 ? form.k.size : form.sums,
                   .groups = groups_of(form)};
}

// Workers start with equal parts of the tasks, and then take what others have not begun. Each result is made by one task,
// so its bits do not depend on the worker.
PanelContraction::PanelContraction(PanelForm form, const TensorView& x, const TensorView& y, const TensorView& out,
                                   Workers& workers)
    : form_(std::move(form)),
      x_(x),
      y_(y),
      out_(out),
      workers_(workers),
      tasks_(std::make_unique<Tasks[]>(static_cast<std::size_t>(workers.size()))) {
  const std::int64_t fit = std::max(kLeastRows, kBytesOfRows / (4 * form_.words));
  const std::int64_t blocks = (form_.rows + fit - 1) / fit;
  rows_ = ((form_.rows + blocks - 1) / blocks + kTaskGrain - 1) / kTaskGrain * kTaskGrain;
  const auto groups = static_cast<std::int64_t>(form_.groups.size());
  const std::int64_t tasks = groups * ((form_.rows + rows_ - 1) / rows_);
  const double work =
      static_cast<double>(form_.rows * groups * kMostPanels) * static_cast<double>(form_.words * kLanes);
  if (form_.kind == Words::kI8) workers.reserve(static_cast<std::size_t>(4 * form_.words * rows_));
  sharing_ = static_cast<int>(std::clamp(work / kWorthSharing, 1.0, static_cast<double>(workers.size())));
  for (int worker = 0; worker < workers.size(); ++worker) {
    const Share share = worker < sharing_ ? share_of(tasks, worker, sharing_) : Share{};
    tasks_[at(worker)].begin = share.begin;
    tasks_[at(worker)].end = share.end;
  }
}

void PanelContraction::run() {
  for (int worker = 0; worker < workers_.size(); ++worker)
    tasks_[at(worker)].next.store(tasks_[at(worker)].begin, std::memory_order_relaxed);
  if (sharing_ == 1) run_share(0);  // nobody else is woken
  else workers_.run([this](int worker) { run_share(worker); });
}

void PanelContraction::run_share(int worker) {
  Rows raised;  // in this worker's scratch memory, of i8
  for (int i = 0; i < sharing_; ++i) {
    Tasks& tasks = tasks_[at((worker + i) % sharing_)];
    while (tasks.next.load(std::memory_order_relaxed) < tasks.end) {
      const std::int64_t task = tasks.next.fetch_add(1, std::memory_order_relaxed);
      if (task < tasks.end) run_task(task, task + 1 < tasks.end, worker, raised);
    }
  }
}

PanelContraction::Rows PanelContraction::rows_of(std::int64_t first, std::int64_t x) const {
  const auto bytes = static_cast<std::int64_t>(size_of(x_.dtype));
  return {static_cast<const char*>(x_.data) + bytes * (x + first * form_.x_row), bytes * form_.x_row, first, x};
}

// Tasks go through all groups with the same rows first.
void PanelContraction::run_task(std::int64_t task, bool has_next, int worker, Rows& raised) {
  const auto groups = static_cast<std::int64_t>(form_.groups.size());
  const PanelGroup& group = form_.groups[at(task % groups)];
  const std::int64_t first = task / groups * rows_, count = std::min(rows_, form_.rows - first);
  Rows rows = rows_of(first, group.x);
  if (form_.kind == Words::kI8) {
    if (raised.begin != first || raised.x != group.x) {
      char* to = reinterpret_cast<char*>(workers_.scratch(worker));
      avx512::raise_rows(rows.data, rows.row, count, 4 * form_.words, to, 4 * form_.words);
      raised = {to, 4 * form_.words, first, group.x};
    }
    rows = raised;
  }
  const auto in = static_cast<std::int64_t>(size_of(y_.dtype)), made = std::int64_t{4};
  avx512::PanelTile tile{.a = rows.data,
                         .a_row = rows.row,
                         .rows = count,
                         .words = form_.words,
                         .c_row = made * form_.out_row,
                         .columns = kLanes * group.panels};
  const auto* y = static_cast<const char*>(y_.data);
  for (int i = 0; i < group.panels; ++i) {
    tile.b[i] = y + in * group.y[i];
    tile.c[i] = static_cast<char*>(out_.data) + made * (group.out[i] + first * form_.out_row);
  }
  if (has_next) tile.next = y + in * form_.groups[at((task + 1) % groups)].y[0];
  avx512::multiply_panels(form_.kind, tile, false);
}

}  // namespace weft::cpu
