// pool: every result gathers what its window meets (back to x: what meets it), row by row of a dim that no window walks
// along. The workers share the rows.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "base/dispatch.h"
#include "base/index.h"
#include "runtime/cpu/kernels.h"
#include "runtime/cpu/pool_rows.h"
#include "runtime/reference/kernels.h"

namespace weft::cpu {

namespace {

constexpr std::int64_t kFewestMeetings = 1 << 13;  // meetings that are worth another worker

// A dim of the result that rows are counted along.
struct PoolLoop {
  std::int64_t size = 1, out = 0;
  Meeting strides = {};                // of the operands, if no window walks along it
  std::vector<std::size_t> first;      // else: where the meetings of each index begin
  std::vector<Meeting> meetings = {};  // one after another
};

class PoolKernel {
 public:
  explicit PoolKernel(const KernelArgs& args)
      : operation_(*args.instr.as<Pool>()), inputs_(args.inputs), out_(args.outputs[0]), workers_(*args.workers) {
    find_row_dim();
    for (const Dim& dim : out_.shape)
      if (dim.name != row_dim_) add_loop(dim);
    std::ranges::stable_sort(loops_, std::greater<>(), &PoolLoop::out);
    std::size_t taps = 1;
    for (const WindowDim& w : operation_.windows) taps *= static_cast<std::size_t>(w.size);
    rows_ = out_.shape.elements() / length_;
    const std::int64_t worth = out_.shape.elements() * static_cast<std::int64_t>(taps) / kFewestMeetings;
    sharing_ = static_cast<int>(std::clamp<std::int64_t>(worth, 1, workers_.size()));
    for (int worker = 0; worker < sharing_; ++worker) {
      places_.push_back({.index = std::vector<std::int64_t>(loops_.size()), .meetings = {}});
      places_.back().meetings.resize(taps);
    }
  }

  void run() {
    workers_.run([this](int worker) {
      if (worker < sharing_) run_rows(places_[at(worker)], share_of(rows_, worker, sharing_));
    });
  }

 private:
  // A worker's place in the loops, and what is met there.
  struct Place {
    std::vector<std::int64_t> index;
    std::vector<Meeting> meetings;
  };

  bool is_walked(const std::string& dim) const {
    return std::ranges::any_of(operation_.windows, [&](const WindowDim& w) { return w.dim == dim; });
  }
  std::int64_t stride_of(std::size_t operand, const std::string& dim) const {
    return operand < inputs_.size() ? inputs_[operand].strides[inputs_[operand].shape.position(dim)] : 0;
  }

  // Side by side in the result, and no window's; none if there is none.
  void find_row_dim() {
    for (std::size_t d = 0; d < out_.shape.rank(); ++d) {
      const Dim& dim = out_.shape[d];
      if (out_.strides[d] != 1 || dim.size == 1 || is_walked(dim.name)) continue;
      row_dim_ = dim.name;
      length_ = dim.size;
      for (std::size_t k = 0; k < inputs_.size(); ++k) row_steps_[k] = stride_of(k, dim.name);
    }
    plain_ = out_.dtype == DType::kF32 && length_ > 1 &&
             std::ranges::all_of(row_steps_, [](std::int64_t step) { return step == 1; });
  }

  void add_loop(const Dim& dim) {
    PoolLoop loop{.size = dim.size, .out = out_.strides[out_.shape.position(dim.name)], .first = {}};
    for (std::size_t k = 0; k < inputs_.size(); ++k) loop.strides[k] = stride_of(k, dim.name);
    for (const WindowDim& w : operation_.windows)
      if (w.dim == dim.name) add_meetings(w, loop);
    loops_.push_back(std::move(loop));
  }

  // The operand has the elements that windows walk along, not the places of windows.
  bool has_elements(std::size_t operand) const {
    const bool forward = operation_.direction == Direction::kForward;
    return operation_.kind != PoolKind::kWinners ? forward : operand == 0 || (operand == 2 && forward);
  }
  // The size of the side of the windows that the result does not have.
  std::int64_t others(const WindowDim& w) const {
    const bool forward = operation_.direction == Direction::kForward;
    for (std::size_t k = 0; k < inputs_.size(); ++k)
      if (has_elements(k) == forward) return inputs_[k].shape.size_of(w.dim);
    throw InternalError("a pool whose operands are all like its result");
  }

  void add_meetings(const WindowDim& w, PoolLoop& loop) const {
    const bool forward = operation_.direction == Direction::kForward;
    const std::int64_t others = this->others(w);
    const Meeting strides = std::exchange(loop.strides, {});
    for (std::int64_t i = 0; i < loop.size; ++i) {
      loop.first.push_back(loop.meetings.size());
      for (std::int64_t k = 0; k < w.size; ++k) {
        const std::int64_t back = i + w.before - k * w.dilation;
        const std::int64_t other = forward ? i * w.stride + k * w.dilation - w.before : back / w.stride;
        if (other < 0 || other >= others || (!forward && (back < 0 || back % w.stride != 0))) continue;
        Meeting met;
        for (std::size_t j = 0; j < met.size(); ++j) met[j] = strides[j] * (has_elements(j) == forward ? other : i);
        loop.meetings.push_back(met);
      }
    }
    loop.first.push_back(loop.meetings.size());
  }

  void run_rows(Place& place, Share share) const {
    std::int64_t left = share.begin;
    for (std::size_t l = loops_.size(); l-- > 0; left /= loops_[l].size) place.index[l] = left % loops_[l].size;
    for (std::int64_t row = share.begin; row < share.end; ++row) {
      run_row(place);
      for (std::size_t l = loops_.size(); l-- > 0;) {
        if (++place.index[l] < loops_[l].size) break;
        place.index[l] = 0;
      }
    }
  }

  void run_row(Place& place) const {
    Meeting begin = {};
    std::int64_t out = 0;
    std::size_t count = 1;
    place.meetings[0] = {};
    for (std::size_t l = 0; l < loops_.size(); ++l) {
      const PoolLoop& loop = loops_[l];
      out += place.index[l] * loop.out;
      for (std::size_t k = 0; k < begin.size(); ++k) begin[k] += place.index[l] * loop.strides[k];
      if (!loop.first.empty()) count = cross(place, count, loop, at(place.index[l]));
    }
    if (plain_) return run_plain(place, count, begin, out);
    visit_dtype(out_.dtype, [&]<class T>() { run_strided<T>(place, count, begin, out); });
  }

  // Every meeting so far with each of the loop's: how many there are now.
  static std::size_t cross(Place& place, std::size_t count, const PoolLoop& loop, std::size_t index) {
    const std::size_t first = loop.first[index], more = loop.first[index + 1] - first;
    for (std::size_t m = count; m-- > 0;) {
      const Meeting base = place.meetings[m];
      for (std::size_t j = more; j-- > 0;)
        for (std::size_t k = 0; k < base.size(); ++k)
          place.meetings[m * more + j][k] = base[k] + loop.meetings[first + j][k];
    }
    return count * more;
  }

  void run_plain(const Place& place, std::size_t count, const Meeting& begin, std::int64_t out) const {
    PoolRow row{.kind = operation_.kind,
                .meetings = place.meetings.data(),
                .count = count,
                .out = static_cast<float*>(out_.data) + out,
                .length = static_cast<std::size_t>(length_)};
    for (std::size_t k = 0; k < inputs_.size(); ++k)
      row.operands[k] = static_cast<const float*>(inputs_[k].data) + begin[k];
    pool_row(row);
  }

  // Any strides; sums in double.
  template <class T>
  void run_strided(const Place& place, std::size_t count, const Meeting& begin, std::int64_t out) const {
    const auto number = [&](std::size_t k, std::size_t m, std::int64_t i) {
      return to_double(static_cast<const T*>(inputs_[k].data)[begin[k] + place.meetings[m][k] + i * row_steps_[k]]);
    };
    for (std::int64_t i = 0; i < length_; ++i) {
      double joined = operation_.kind == PoolKind::kMax ? -std::numeric_limits<double>::infinity() : 0;
      for (std::size_t m = 0; m < count; ++m) {
        const double x = number(0, m, i);
        if (operation_.kind == PoolKind::kSum) joined += x;
        else if (operation_.kind == PoolKind::kMax) joined = x != x || x > joined ? x : joined;
        else if (x == number(1, m, i)) joined += inputs_.size() == 3 ? number(2, m, i) : 1;
      }
      static_cast<T*>(out_.data)[out + i] = from_double<T>(joined);
    }
  }

  Pool operation_;
  std::vector<TensorView> inputs_;
  TensorView out_;
  Workers& workers_;
  std::string row_dim_;
  std::int64_t length_ = 1, rows_ = 1;
  Meeting row_steps_ = {1, 1, 1};
  bool plain_ = false;
  std::vector<PoolLoop> loops_;  // outermost first
  int sharing_ = 1;
  std::vector<Place> places_;
};

// Operands and results of one dtype; any other is the reference's.
Kernel pool(const KernelArgs& args) {
  for (const TensorView& input : args.inputs)
    if (input.dtype != args.outputs[0].dtype) return reference::serve(args);
  return [kernel = std::make_shared<PoolKernel>(args)](const StepState&) { kernel->run(); };
}

const AddKernel kPoolKernel(kernels(), Pool::kName, pool);

}  // namespace

}  // namespace weft::cpu
