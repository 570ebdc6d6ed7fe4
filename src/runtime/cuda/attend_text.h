// Texts of kernels that attend and attend_back share: where the numbers of a query (s, r) and of a position m lie, and what
// a query sees. s counts the dims that q shares with k, r the others of q.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "base/str.h"
#include "language/shape_math.h"
#include "program/attend.h"
#include "runtime/cuda/attend.h"
#include "runtime/cuda/text.h"
#include "runtime/host/strided.h"

namespace weft::cuda {

class AttendText {
 public:
  explicit AttendText(const Work& work)
      : work_(work),
        rules_(*attend_rules(work.instr)),
        at_(attend_operands(work.instr)),
        dims_(attend_dims(rules_, work.inputs[0].shape, work.inputs[1].shape)),
        memory_(work.inputs[1].shape.dim(rules_.memory)),
        key_(work.inputs[0].shape.size_of(rules_.key)),
        value_(work.inputs[2].shape.size_of(rules_.value)),
        logsumexp_(saves_logsumexp(work.instr, work.inputs[0].dtype)),
        wide_(work.inputs[0].dtype == DType::kF64 ? "double" : "float") {}

 protected:
  std::int64_t shared() const { return dims_.shared.elements(); }
  std::int64_t rows() const { return dims_.rows.elements(); }
  static std::int64_t stride(const TensorView& view, const std::string& dim) {
    const auto at = view.shape.find(dim);
    return at ? view.strides[*at] : 0;
  }
  static std::string offset(const TensorView& view, const Shape& dims, const std::string& i) {
    return offset_text(joined_runs({dims.begin(), dims.end()}, {strides_along(view, dims)}), 0, i);
  }
  // Of a value with dims of queries, or of keys.
  std::string query_offset(const TensorView& view) const {
    return str(offset(view, dims_.shared, "s"), " + ", offset(view, dims_.rows, "r"));
  }
  std::string key_offset(const TensorView& view) const {
    return str(offset(view, dims_.shared, "s"), " + m * ", stride(view, rules_.memory), "ll");
  }
  // Of k or v: where position m of the memory of s lies.
  std::string memory_offset(const TensorView& view) const {
    return str(offset(view, dims_.shared, rules_.sources.empty() ? "s" : "source_of(s, m)"), " + m * ",
               stride(view, rules_.memory), "ll");
  }
  const TensorView& operand(int at) const { return work_.inputs[static_cast<std::size_t>(at)]; }

  std::vector<Param> score_params() const {
    std::vector<Param> params = {in(operand(0).dtype, "q", operand(0).data), in(operand(1).dtype, "k", operand(1).data),
                                 in(operand(2).dtype, "v", operand(2).data)};
    if (at_.bias >= 0) params.push_back(in(operand(at_.bias).dtype, "bias", operand(at_.bias).data));
    if (rules_.segments) {
      params.push_back(in(operand(at_.query_ids).dtype, "query_ids", operand(at_.query_ids).data));
      params.push_back(in(operand(at_.memory_ids).dtype, "memory_ids", operand(at_.memory_ids).data));
    }
    if (rules_.bounded) params.push_back(in(operand(at_.memory_end).dtype, "ends", operand(at_.memory_end).data));
    if (at_.sources >= 0) params.push_back(in(operand(at_.sources).dtype, "sources", operand(at_.sources).data));
    const TensorView &q = operand(0), &k = operand(1);
    params.push_back(number("query_begin", rules_.causal ? q.begin[q.shape.position(rules_.length)] : 0));
    params.push_back(number("memory_begin", k.begin[k.shape.position(rules_.memory)]));
    return params;
  }

  std::string constants() const {
    return str(
        "const ", wide_, " INF = ", wide_ == "double" ? real_literal(INFINITY) : "__uint_as_float(0x7f800000u)",
        ";\nconst auto larger_of = [](", wide_, " a, ", wide_,
        " b) { return a > b ? a : b; };\n(void)larger_of;\nconst auto clamped = [](long long x, long long most) { "
        "return x < 0 ? 0 : x > most ? most : x; };\n(void)clamped;\n");
  }

  // end_of(s): the end of the memory; source_of(s, m): the s whose k and v are read at m.
  std::string memory_of() const {
    std::string text =
        str("const auto end_of = [&](long long s) { return ",
            !rules_.bounded ? str(memory_.size, "ll")
                            : str("clamped(widen(get(ends[", offset(operand(at_.memory_end), dims_.shared, "s"),
                                  "])), ", memory_.size, "ll)"),
            "; };\n");
    if (at_.sources < 0) return text;
    const std::size_t at = dims_.shared.position(rules_.sources);
    const std::int64_t step = dense_strides(dims_.shared)[at], size = dims_.shared[at].size;
    return str(text, "const auto source_of = [&](long long s, long long m) { return s + (clamped(widen(get(sources[",
               key_offset(operand(at_.sources)), "])), ", size - 1, "ll) - s / ", step, "ll % ", size, "ll) * ", step,
               "ll; };\n");
  }

  // score(m) of query (s, r), from `query(d)`; -INF where it is not seen.
  std::string score() const {
    const TensorView& k = operand(1);
    std::string seen = "m < end_of(s)";
    if (rules_.causal) {
      const std::size_t at = dims_.rows.position(rules_.length);
      seen += str(" && memory_begin + m <= query_begin + r / ", dense_strides(dims_.rows)[at], "ll % ",
                  dims_.rows[at].size, "ll");
    }
    if (rules_.segments)
      seen += str(" && widen(get(query_ids[", query_offset(operand(at_.query_ids)), "])) == widen(get(memory_ids[",
                  key_offset(operand(at_.memory_ids)), "]))");
    return str(memory_of(), "const auto score = [&](long long s, long long r, long long m, auto query) {\nif (!(", seen,
               ")) return -INF;\n", wide_, " a = 0;\nfor (int d = 0; d < ", key_, "; ++d) a += query(d) * get(k[",
               memory_offset(k), " + d * ", stride(k, rules_.key), "ll]);\na *= (", wide_, ")",
               real_literal(rules_.scale), ";\n",
               at_.bias < 0 ? ""
                            : str("a += get(bias[", query_offset(operand(at_.bias)), " + m * ",
                                  stride(operand(at_.bias), rules_.memory), "ll]);\n"),
               "return a;\n};\n");
  }

  std::vector<Param> back_params(void* largest, void* means) const {
    std::vector<Param> params = score_params();
    params.push_back(in(operand(at_.y).dtype, "y_in", operand(at_.y).data));
    params.push_back(in(operand(at_.total).dtype, "total", operand(at_.total).data));
    params.push_back(in(operand(at_.dy).dtype, "dy", operand(at_.dy).data));
    params.push_back(typed(wide_, "largest", largest));
    params.push_back(typed(wide_, "means", means));
    return params;
  }

  std::string total_at() const { return str("get(total[", query_offset(operand(at_.total)), "])"); }
  // What e^(score - its query's number in `largest`) is divided by.
  std::string divisor() const { return logsumexp_ ? "1" : total_at(); }

  std::string dy_at(const std::string& d) const {
    return str("get(dy[", query_offset(operand(at_.dy)), " + ", d, " * ", stride(operand(at_.dy), rules_.value),
               "ll])");
  }
  std::string v_at(const std::string& d) const {
    return str("get(v[", memory_offset(operand(2)), " + ", d, " * ", stride(operand(2), rules_.value), "ll])");
  }
  std::string number_of_query() const { return str("(s * ", rows(), "ll + r)"); }

  // p (dy . v - dy . y) of query (s, r) and key m whose probability is p.
  std::string slope() const {
    return str("const auto slope = [&](long long s, long long r, long long m, ", wide_, " p, ", wide_, " mean) {\n",
               wide_, " dp = 0;\nfor (int d = 0; d < ", value_, "; ++d) dp += ", dy_at("d"), " * ", v_at("d"),
               ";\nreturn p * (dp - mean);\n};\n");
  }

  const Work& work_;
  const AttendRules& rules_;
  const AttendOperands at_;
  const AttendDims dims_;
  const Dim memory_;
  const std::int64_t key_, value_;
  const bool logsumexp_;  // is what the totals are
  const std::string wide_;
};

}  // namespace weft::cuda
