// attend and attend_back as plans of cuDNN: which dims are its batch, heads and positions, and how they lie.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/index.h"
#include "base/str.h"
#include "language/shape_math.h"
#include "program/attend.h"
#include "program/builder.h"
#include "runtime/cuda/attend.h"
#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/sweep.h"
#include "runtime/cuda/text.h"
#include "runtime/host/attend_views.h"
#include "runtime/host/strided.h"

namespace weft::cuda {

namespace {

constexpr std::int64_t kVector = 8, kVectorBytes = 16;  // cuDNN reads 16 bytes at a time
constexpr std::int64_t kLeastMemory = 2;                // of one query and one position it has no derivative

using Dims = std::vector<Dim>;

std::int64_t size_of(const Dims& dims) {
  std::int64_t size = 1;
  for (const Dim& dim : dims) size *= dim.size;
  return size;
}

Dims operator+(Dims a, const Dims& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The stride of the dims walked as one, the last of them fastest; nothing if they do not lie so. 0 if there are none.
std::optional<std::int64_t> joined_stride(const TensorView& view, const Dims& dims) {
  std::int64_t stride = 0, expected = 0;
  for (std::size_t i = dims.size(); i-- > 0;) {
    const std::int64_t own = view.strides[view.shape.position(dims[i].name)];
    if (i + 1 == dims.size()) stride = own;
    else if (own != expected) return std::nullopt;
    expected = own * dims[i].size;
  }
  return stride;
}

// A plan's question and the dims that it was made of.
struct Asked {
  Sdpa sdpa;
  Dims batch, heads, length;  // of queries, in the order of the sums
  std::unordered_map<SdpaRole, TensorView> views;
  TensorView total;

  Shape sums() const { return Shape(batch + heads + length); }
  // Whether the totals lie as cuDNN's sums do.
  bool lies_as_sums() const {
    std::int64_t stride = 1;
    const Dims order = batch + heads + length;
    for (std::size_t i = order.size(); i-- > 0; stride *= order[i].size)
      if (total.strides[total.shape.position(order[i].name)] != stride) return false;
    return true;
  }
};

// Finds cuDNN's view of an instruction.
class Asking {
 public:
  Asking(const Instr& instr, const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs,
         bool deterministic)
      : rules_(*attend_rules(instr)), back_(instr.is<AttendBack>()), deterministic_(deterministic || !back_) {
    const AttendOperands operands = attend_operands(instr);
    views_ = {{SdpaRole::kQ, inputs[0]}, {SdpaRole::kK, inputs[1]}, {SdpaRole::kV, inputs[2]}};
    if (back_) {
      views_[SdpaRole::kY] = inputs[at(operands.y)];
      views_[SdpaRole::kDy] = inputs[at(operands.dy)];
      views_[SdpaRole::kDq] = derivative_view(instr, outputs, 0);
      views_[SdpaRole::kDk] = derivative_view(instr, outputs, 1);
      views_[SdpaRole::kDv] = derivative_view(instr, outputs, 2);
      total_ = inputs[at(operands.total)];
    } else {
      views_[SdpaRole::kY] = outputs[0];
      total_ = outputs[1];
    }
  }

  std::optional<Asked> asked() {
    const TensorView& q = views_[SdpaRole::kQ];
    const std::int64_t key = q.shape.size_of(rules_.key), value = views_[SdpaRole::kV].shape.size_of(rules_.value),
                       memory = views_[SdpaRole::kK].shape.size_of(rules_.memory);
    if (total_.dtype != DType::kF32 || key % kVector != 0 || value % kVector != 0 || !begins_alike()) return {};
    if (!find_dims()) return {};
    if (back_ && cuda::size_of(length_) < kLeastMemory && memory < kLeastMemory) return {};
    Asked asked{{.dtype = q.dtype,
                 .batch = cuda::size_of(batch_),
                 .heads = cuda::size_of(heads_ + groups_),
                 .memory_heads = cuda::size_of(heads_),
                 .length = cuda::size_of(length_),
                 .memory = memory,
                 .key = key,
                 .value = value,
                 .scale = rules_.scale,
                 .causal = rules_.causal,
                 .back = back_,
                 .deterministic = deterministic_},
                batch_,
                heads_ + groups_,
                length_,
                views_,
                total_};
    for (const auto& [role, view] : views_)
      if (!place(role, view, asked.sdpa.strides[static_cast<std::size_t>(role)])) return {};
    return asked;
  }

 private:
  static bool of_memory(SdpaRole role) {
    return role == SdpaRole::kK || role == SdpaRole::kV || role == SdpaRole::kDk || role == SdpaRole::kDv;
  }
  const std::string& depth_of(SdpaRole role) const {
    const bool key = role == SdpaRole::kQ || role == SdpaRole::kK || role == SdpaRole::kDq || role == SdpaRole::kDk;
    return key ? rules_.key : rules_.value;
  }

  // Its causality counts both positions from where the operands begin.
  bool begins_alike() {
    if (!rules_.causal) return true;
    const auto begin = [](const TensorView& view, const std::string& dim) {
      return view.begin.empty() ? 0 : view.begin[view.shape.position(dim)];
    };
    return begin(views_[SdpaRole::kQ], rules_.length) == begin(views_[SdpaRole::kK], rules_.memory);
  }

  // Dims of more than one index, the outermost of q first.
  Dims in_order(const Shape& shape, const std::string& without) {
    const TensorView& q = views_[SdpaRole::kQ];
    Dims dims;
    for (const Dim& dim : shape)
      if (dim.size > 1 && dim.name != without) dims.push_back(dim);
    std::ranges::stable_sort(dims, [&](const Dim& a, const Dim& b) {
      return q.strides[q.shape.position(a.name)] > q.strides[q.shape.position(b.name)];
    });
    return dims;
  }

  bool find_dims() {
    const TensorView& q = views_[SdpaRole::kQ];
    const AttendDims dims = attend_dims(rules_, q.shape, views_[SdpaRole::kK].shape);
    const Dims shared = in_order(dims.shared, ""), rows = in_order(dims.rows, rules_.length);
    if (rules_.length.empty()) length_ = rows;
    else groups_ = rows, length_ = {dims.rows.dim(rules_.length)};
    // The innermost shared dim is the heads, or none is, or more are.
    std::vector<std::size_t> splits;
    if (!shared.empty()) splits.push_back(shared.size() - 1);
    splits.push_back(shared.size());
    for (std::size_t split = shared.size(); split-- > 1;) splits.push_back(split - 1);
    for (const std::size_t split : splits) {
      batch_ = {shared.begin(), shared.begin() + static_cast<std::ptrdiff_t>(split)};
      heads_ = {shared.begin() + static_cast<std::ptrdiff_t>(split), shared.end()};
      if (std::ranges::all_of(views_, [&](const auto& each) { return fits(each.first, each.second); })) return true;
    }
    return false;
  }
  Dims heads_of(SdpaRole role) const { return of_memory(role) ? heads_ : heads_ + groups_; }
  bool fits(SdpaRole role, const TensorView& view) const {
    return joined_stride(view, batch_) && joined_stride(view, heads_of(role)) &&
           (of_memory(role) || joined_stride(view, length_));
  }

  // The strides of one operand; false if cuDNN has no such: it reads whole vectors along the depth.
  bool place(SdpaRole role, const TensorView& view, Sdpa::Strides& strides) const {
    if (view.strides[view.shape.position(depth_of(role))] != 1) return false;
    if (reinterpret_cast<std::uintptr_t>(view.data) % kVectorBytes != 0) return false;
    const Dims positions = of_memory(role) ? Dims{view.shape.dim(rules_.memory)} : length_;
    const std::array<Dims, 3> parts = {batch_, heads_of(role), positions};
    std::int64_t whole = view.shape.size_of(depth_of(role));
    for (const Dims& part : parts) {
      const std::int64_t stride = *joined_stride(view, part);
      if (cuda::size_of(part) > 1 && (stride <= 0 || stride % kVector != 0)) return false;
      whole = std::max(whole, stride * cuda::size_of(part));
    }
    for (std::size_t i = 0; i < parts.size(); ++i)
      strides[i] = cuda::size_of(parts[i]) > 1 ? *joined_stride(view, parts[i]) : whole;
    return true;
  }

  const AttendRules& rules_;
  const bool back_, deterministic_;
  std::unordered_map<SdpaRole, TensorView> views_;
  TensorView total_;
  Dims batch_, heads_, groups_, length_;
};

std::optional<Asked> asked_of(const Program& program, const Instr& instr,
                              const ByValue<std::vector<std::int64_t>>& strides, bool deterministic) {
  if (!saves_logsumexp(instr, program.values[instr.inputs[0]].dtype)) return {};
  const auto unplaced = [&](const std::vector<ValueId>& ids) {
    std::vector<TensorView> views;
    for (const ValueId id : ids) {
      views.push_back(unplaced_view(program, id, strides));
      views.back().data =
          reinterpret_cast<void*>(kCardAlignment);  // somewhere aligned, so that parts of it have places
    }
    return views;
  };
  return Asking(instr, unplaced(instr.inputs), unplaced(instr.outputs), deterministic).asked();
}

std::int64_t sums_bytes(const Asked& asked) {
  return asked.lies_as_sums() ? 0 : card_aligned(asked.sums().elements() * std::int64_t{4});
}

bool has_card() {
  static const bool kHasCard = [] {
    int cards = 0;
    const bool found = cudaGetDeviceCount(&cards) == cudaSuccess && cards > 0;
    cudaGetLastError();
    return found;
  }();
  return kHasCard;
}

// Not less than plans were seen to ask for: their sums, products of scores in 16 bits (deterministic) or dq in f32, and
// every query head's dk and dv.
std::int64_t estimated_plan_bytes(const Sdpa& s) {
  constexpr std::int64_t kMore = std::int64_t{1} << 20, kTile = 128;
  if (!s.back) return kMore;
  const auto rounded = [](std::int64_t n) { return divided_up(n, kTile) * kTile; };
  const std::int64_t queries = s.batch * s.heads * rounded(s.length);
  const std::int64_t scores = s.deterministic ? queries * rounded(s.memory) * 2 : queries * s.key * 4;
  const std::int64_t whole_heads =
      s.heads == s.memory_heads ? 0 : s.batch * s.heads * rounded(s.memory) * (s.key + s.value) * 2;
  return queries * 8 + scores + whole_heads + kMore;
}

// One length for all of a batch, on the card.
void* filled_lengths(const Work& work, std::int64_t count, std::int64_t length) {
  void* place = work.workspace(static_cast<std::size_t>(count) * 4);
  launch_per_element(work, count, {out(DType::kI32, "y", place), number("length", length)}, "y[i] = (int)length;\n");
  return place;
}

}  // namespace

bool saves_logsumexp(const Instr& instr, DType dtype) {
  const AttendRules& rules = *attend_rules(instr);
  return (dtype == DType::kBF16 || dtype == DType::kF16) && !rules.biased && !rules.segments && !rules.bounded &&
         rules.sources.empty();
}

bool attend_by_cudnn(const Work& work) {
  if (!saves_logsumexp(work.instr, work.inputs[0].dtype)) return false;
  const std::optional<Asked> asked = Asking(work.instr, work.inputs, work.outputs, work.card.deterministic()).asked();
  const SdpaPlan* plan = asked ? sdpa_plan(asked->sdpa) : nullptr;
  if (!plan) return false;
  std::unordered_map<SdpaRole, void*> places;
  for (const auto& [role, view] : asked->views) places[role] = view.data;
  const TensorView& total = asked->total;
  TensorView sums = total;
  if (!asked->lies_as_sums())
    sums =
        dense_view(work.workspace(static_cast<std::size_t>(asked->sums().elements()) * 4), total.dtype, asked->sums());
  places[SdpaRole::kSums] = sums.data;
  const bool back = asked->sdpa.back;
  if (back) copy_elements(work, total, sums);
  if (plan->takes_lengths()) {
    places[SdpaRole::kLengths] = filled_lengths(work, asked->sdpa.batch, asked->sdpa.length);
    places[SdpaRole::kMemoryLengths] = filled_lengths(work, asked->sdpa.batch, asked->sdpa.memory);
  }
  void* workspace = work.workspace(static_cast<std::size_t>(plan->workspace_bytes()));
  work.call([plan, places, workspace](cudaStream_t stream) { plan->run(places, workspace, stream); });
  if (!back) copy_elements(work, sums, total);
  return true;
}

std::int64_t cudnn_attend_bytes(const Program& program, const Instr& instr,
                                const ByValue<std::vector<std::int64_t>>& strides, bool deterministic) {
  const std::optional<Asked> asked = asked_of(program, instr, strides, deterministic);
  if (!asked) return 0;
  const std::int64_t lengths = 2 * card_aligned(asked->sdpa.batch * std::int64_t{4});
  if (!has_card()) return sums_bytes(*asked) + lengths + card_aligned(estimated_plan_bytes(asked->sdpa));
  const SdpaPlan* plan = sdpa_plan(asked->sdpa);
  if (!plan) return 0;
  return sums_bytes(*asked) + (plan->takes_lengths() ? lengths : 0) + card_aligned(plan->workspace_bytes());
}

std::string attend_served_by(const Program& program, const Instr& instr,
                             const ByValue<std::vector<std::int64_t>>& strides, bool deterministic) {
  const std::optional<Asked> asked = asked_of(program, instr, strides, deterministic);
  if (asked && !has_card()) return "cuDNN (estimate)";
  if (!asked || !sdpa_plan(asked->sdpa)) return "cuda";
  return asked->sdpa.deterministic ? "cuDNN" : "cuDNN (nondeterministic)";
}

}  // namespace weft::cuda
