// Attention of one query for every memory, as steps of decoding have it: blocks of a cluster share the keys of a query
// where queries are few (attend_step of the prelude).
#include <algorithm>
#include <bit>

#include "base/str.h"
#include "runtime/cuda/attend_text.h"

namespace weft::cuda {

namespace {

constexpr int kStepWarps = 4, kStepKeys = 4;
constexpr std::int64_t kMostStepBlocks = 1056;  // 8 for each multiprocessor of an H200: more are not worth a cluster

class StepAttention : AttendText {
 public:
  using AttendText::AttendText;

  // Rows of 16-byte pieces by as many threads of a warp as have one each.
  bool fits() const {
    const DType dtype = operand(0).dtype;
    const bool types = (dtype == DType::kBF16 || dtype == DType::kF16 || dtype == DType::kF32) &&
                       operand(1).dtype == dtype && operand(2).dtype == dtype;
    if (!types || rules_.causal || rules_.segments || rules_.biased || key_ != value_) return false;
    const std::int64_t lanes = key_ / numbers();
    if (key_ % numbers() != 0 || lanes > 32 || !std::has_single_bit(static_cast<std::uint64_t>(lanes))) return false;
    return is_aligned(operand(0), rules_.key) && is_aligned(operand(1), rules_.key) &&
           is_aligned(operand(2), rules_.value);
  }

  void forward() const {
    const TensorView &q = operand(0), &y = work_.outputs[0], &total = work_.outputs[1];
    std::vector<Param> params = score_params();
    params.push_back(out(y.dtype, "y", y.data));
    params.push_back(out(total.dtype, "total", total.data));
    const std::int64_t queries = shared() * rows();
    std::int64_t parts = 1;
    while (work_.card.has_clusters() && parts < 8 && queries * parts * 2 <= kMostStepBlocks &&
           memory_.size > 64 * parts)
      parts *= 2;
    work_.launch(
        queries * parts, 32 * kStepWarps, params,
        str("const long long s = blockIdx.x / ", parts, " / ", rows(), ", r = blockIdx.x / ", parts, " % ", rows(),
            ";\n(void)query_begin;\n(void)memory_begin;\n", constants(), memory_of(), "attend_step<", key_ / numbers(),
            ", ", kStepKeys, ", ", kStepWarps, ", ", parts, ">(q + ", query_offset(q),
            ", [&](long long m) { return k + ", memory_offset(operand(1)), "; }, [&](long long m) { return v + ",
            memory_offset(operand(2)), "; }, (int)end_of(s), (float)", real_literal(rules_.scale),
            ",\n[&](int d, float a) { y[", query_offset(y), " + d * ", stride(y, rules_.value), "ll] = put<",
            stored_type(y.dtype), ">(a); },\n[&](float top, float sum) { total[", query_offset(total), "] = put<",
            stored_type(total.dtype), ">((", register_type(total.dtype), ")",
            logsumexp_ ? "(sum == 0 ? -INF : top + log_of(sum))" : "sum", "); });\n"),
        {.cluster = static_cast<int>(parts)});
  }

 private:
  std::int64_t numbers() const { return static_cast<std::int64_t>(16 / size_of(operand(0).dtype)); }

  bool is_aligned(const TensorView& view, const std::string& dim) const {
    if (reinterpret_cast<std::uintptr_t>(view.data) % 16 != 0) return false;
    for (std::size_t d = 0; d < view.shape.rank(); ++d)
      if (view.shape[d].size > 1 &&
          (view.shape[d].name == dim ? view.strides[d] != 1 : view.strides[d] % numbers() != 0))
        return false;
    return true;
  }
};

}  // namespace

bool attend_step(const Work& work) {
  const StepAttention step(work);
  if (!step.fits()) return false;
  step.forward();
  return true;
}

}  // namespace weft::cuda
