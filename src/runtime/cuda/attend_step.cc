// Attention of one query for every memory, as steps of decoding have it: blocks of a cluster share the keys of a query
// where queries are few (attend_step of the prelude).
#include <algorithm>
#include <array>
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

  bool has_few_queries() const { return rows() < kFewQueries; }

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

  // Whether the position that an update writes into k or v may be read from the update's piece: it is one position, and
  // every number of it is one query's.
  bool fits(const Work& update, int number) const {
    const auto* operation = update.instr.as<DynamicUpdate>();
    if (!operation || operation->dim != rules_.memory || !rules_.sources.empty()) return false;
    const TensorView &cache = operand(number), &piece = update.inputs[1];
    return update.instr.outputs[0] == work_.instr.inputs[static_cast<std::size_t>(number)] &&
           update.inputs[0].data == cache.data && update.inputs[0].strides == cache.strides &&
           !update.inputs[2].shape.has(rules_.memory) && piece.shape.size_of(rules_.memory) == 1 &&
           piece.shape.elements() == shared() * key_ && is_aligned(piece, number == 1 ? rules_.key : rules_.value) &&
           !share_memory(piece, cache);
  }

  // `updates`: of k and of v, which are done by the way; or none.
  void forward(const std::vector<const Work*>& updates = {}) const {
    const TensorView &q = operand(0), &y = work_.outputs[0], &total = work_.outputs[1];
    std::vector<Param> params = score_params();
    params.push_back(out(y.dtype, "y", y.data));
    params.push_back(out(total.dtype, "total", total.data));
    const std::int64_t queries = shared() * rows();
    std::int64_t parts = 1;
    while (work_.card.has_clusters() && parts < 8 && queries * parts * 2 <= kMostStepBlocks &&
           memory_.size > 64 * parts)
      parts *= 2;
    std::string text = str("const long long s = blockIdx.x / ", parts, " / ", rows(), ", r = blockIdx.x / ", parts,
                           " % ", rows(), ";\n(void)query_begin;\n(void)memory_begin;\n", constants(), memory_of());
    std::string writes;  // at the end: what is read would wait for them
    std::array<std::string, 2> rows_at;
    for (std::size_t i = 0; i < 2; ++i) {
      rows_at[i] = str(i == 0 ? "k + " : "v + ", memory_offset(operand(static_cast<int>(i) + 1)));
      if (updates.empty()) continue;
      text += new_position(*updates[i], i);
      writes += write_text(i, parts, rows_at[i]);
      for (const Param& param : update_params(*updates[i], i)) params.push_back(param);
      rows_at[i] = str("m == at", i, " ? new", i, " : ", rows_at[i]);
    }
    work_.launch(queries * parts, 32 * kStepWarps, params,
                 str(text, "attend_step<", key_ / numbers(), ", ", kStepKeys, ", ", kStepWarps, ", ", parts, ">(q + ",
                     query_offset(q), ", [&](long long m) { return ", rows_at[0], "; }, [&](long long m) { return ",
                     rows_at[1], "; }, (int)end_of(s), (float)", real_literal(rules_.scale),
                     ",\n[&](int d, float a) { y[", query_offset(y), " + d * ", stride(y, rules_.value), "ll] = put<",
                     stored_type(y.dtype), ">(a); },\n[&](float top, float sum) { total[", query_offset(total),
                     "] = put<", stored_type(total.dtype), ">((", register_type(total.dtype), ")",
                     logsumexp_ ? "(sum == 0 ? -INF : top + log_of(sum))" : "sum", "); });\n", writes),
                 {.cluster = static_cast<int>(parts)});
  }

 private:
  std::vector<Param> update_params(const Work& update, std::size_t i) const {
    const TensorView &piece = update.inputs[1], &place = update.inputs[2], &cache = update.outputs[0];
    return {in(piece.dtype, str("piece", i), piece.data), in(place.dtype, str("place", i), place.data),
            out(cache.dtype, str("cache", i), cache.data)};
  }

  // Where the new position goes, and where its numbers lie: at0, new0 of k.
  std::string new_position(const Work& update, std::size_t i) const {
    const TensorView &piece = update.inputs[1], &place = update.inputs[2];
    return str("const long long at", i, " = widen(get(place", i, "[", offset(place, dims_.shared, "s"),
               "]));\nconst auto* new", i, " = piece", i, " + ", offset(piece, dims_.shared, "s"), ";\n");
  }

  // Writes it into the cache: one block for all queries of s.
  std::string write_text(std::size_t i, std::int64_t parts, const std::string& row_at) const {
    return str("if (r == 0 && blockIdx.x % ", parts, " == 0 && at", i, " >= 0 && at", i, " < ", memory_.size,
               "ll) {\nconst long long m = at", i, ";\nfor (int d = threadIdx.x; d < ", key_,
               "; d += ", 32 * kStepWarps, ") cache", i, "[(", row_at, ") - ", i == 0 ? "k" : "v", " + d] = new", i,
               "[d];\n}\n");
  }

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

bool attend_step(const Work& work, const Work& k_update, const Work& v_update) {
  const StepAttention step(work);
  if (work.instr.inputs[1] == work.instr.inputs[2] || !step.has_few_queries() || !step.fits() ||
      !step.fits(k_update, 1) || !step.fits(v_update, 2))
    return false;
  step.forward({&k_update, &v_update});
  return true;
}

}  // namespace weft::cuda
