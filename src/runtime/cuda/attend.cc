// attend and attend_back: softmax attention without stored scores.
//
// Forward: a block for each query. Scores of kChunk keys at a time lie in shared memory; largest score, total and sums of
// values are carried from chunk to chunk. Backward: a block for each query finds the largest score and dy . y and sums dq.
// A block for each key sums dk and dv over all queries; a thread for each number of the bias sums its derivative. Every
// sum has one order.
#include <algorithm>
#include <cmath>

#include "base/str.h"
#include "language/shape_math.h"
#include "program/attend.h"
#include "runtime/cuda/attend.h"
#include "runtime/cuda/instructions.h"
#include "runtime/cuda/text.h"
#include "runtime/host/attend_views.h"
#include "runtime/host/strided.h"

namespace weft::cuda {

namespace {

constexpr int kThreads = 128, kChunk = 512;

// Texts of offsets: of a query (s, r), of a key (s, m).
class Attention {
 public:
  explicit Attention(const Work& work)
      : work_(work),
        rules_(*attend_rules(work.instr)),
        at_(attend_operands(work.instr)),
        dims_(attend_dims(rules_, work.inputs[0].shape, work.inputs[1].shape)),
        memory_(work.inputs[1].shape.dim(rules_.memory)),
        key_(work.inputs[0].shape.size_of(rules_.key)),
        value_(work.inputs[2].shape.size_of(rules_.value)),
        logsumexp_(saves_logsumexp(work.instr, work.inputs[0].dtype)),
        wide_(work.inputs[0].dtype == DType::kF64 ? "double" : "float") {}

  void forward() {
    const TensorView &y = work_.outputs[0], &total = work_.outputs[1];
    std::vector<Param> params = score_params();
    params.push_back(out(y.dtype, "y", y.data));
    params.push_back(out(total.dtype, "total", total.data));
    const std::int64_t each = divided_up(value_, kThreads);
    work_.launch(
        shared() * rows(), kThreads, params,
        str(query_start(), wide_, " largest = -INF, sum = 0, acc[", each, "];\nfor (int j = 0; j < ", each,
            "; ++j) acc[j] = 0;\n",
            chunks(str("const ", wide_, " before = largest;\nlargest = larger_of(largest, most);\nconst ", wide_,
                       " shrink = before == -INF ? 0 : vmath::exp(before - largest);\n", wide_,
                       " mine = 0;\nfor (int c = threadIdx.x; c < count; c += ", kThreads, ") { const ", wide_,
                       " p = largest == -INF ? (", wide_,
                       ")0 : vmath::exp(scores[c] - largest); scores[c] = p; mine += p; }\n",
                       "sum = sum * shrink + team_join<", kThreads, ">(mine, JoinSum(), shared);\n__syncthreads();\n",
                       "for (int j = 0; j < ", each, "; ++j) {\nconst int d = j * ", kThreads,
                       " + threadIdx.x;\nif (d >= ", value_, ") break;\n", wide_,
                       " a = acc[j] * shrink;\nfor (int c = 0; c < count; ++c) { const long long m = m0 + c; a += "
                       "scores[c] * get(v[",
                       memory_offset(work_.inputs[2]), " + d * ", stride(work_.inputs[2], rules_.value),
                       "ll]); }\nacc[j] = a;\n}\n")),
            "const ", wide_, " scale = sum == 0 ? (", wide_, ")0 : 1 / sum;\nfor (int j = 0; j < ", each,
            "; ++j) {\nconst int d = j * ", kThreads, " + threadIdx.x;\nif (d >= ", value_, ") break;\ny[",
            query_offset(y), " + d * ", stride(y, rules_.value), "ll] = put<", stored_type(y.dtype), ">((",
            register_type(y.dtype), ")(acc[j] * scale));\n}\nif (threadIdx.x == 0) total[", query_offset(total),
            "] = put<", stored_type(total.dtype), ">((", register_type(total.dtype), ")", logsumexp_ ? "(sum == 0 ? -INF : largest + vmath::log(sum))" : "sum", ");\n"));
  }

  void backward() {
    const auto bytes = static_cast<std::size_t>(shared() * rows()) * (wide_ == "double" ? 8 : 4);
    void* largest = work_.workspace(bytes);
    void* means = work_.workspace(bytes);
    const TensorView dq = derivative_view(work_.instr, work_.outputs, 0),
                     dk = derivative_view(work_.instr, work_.outputs, 1),
                     dv = derivative_view(work_.instr, work_.outputs, 2);
    of_queries(dq, largest, means);
    of_keys(dk, dv, largest, means);
    if (const int bias = bias_derivative(work_.instr); bias >= 0)
      of_bias(work_.outputs[static_cast<std::size_t>(bias)], largest, means);
  }

 private:
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

  // A block for each query, its numbers in shared memory.
  std::string query_start() const {
    return str("__shared__ long long shared[32];\n__shared__ ", wide_, " own[", key_, "], scores[", kChunk,
               "];\n(void)shared;\nconst long long s = blockIdx.x / ", rows(), ", r = blockIdx.x % ", rows(), ";\n",
               constants(), score(), "for (int d = threadIdx.x; d < ", key_, "; d += ", kThreads, ") own[d] = get(q[",
               query_offset(operand(0)), " + d * ", stride(operand(0), rules_.key), "ll]);\n__syncthreads();\n");
  }

  // Runs `inside` with scores[0 .. count) of the keys from m0 on, and `most`, the largest of them.
  std::string chunks(const std::string& inside) const {
    return str("for (long long m0 = 0, end = end_of(s); m0 < end; m0 += ", kChunk, ") {\nconst int count = end - m0 < ",
               kChunk, " ? (int)(end - m0) : ", kChunk, ";\n__syncthreads();\n", wide_,
               " most = -INF;\nfor (int c = threadIdx.x; c < count; c += ", kThreads, ") { const ", wide_,
               " x = score(s, r, m0 + c, [&](int d) { return own[d]; }); scores[c] = x; most = larger_of(most, x); }\n"
               "most = team_join<",
               kThreads, ">(most, JoinMax(), shared);\n__syncthreads();\n", inside, "}\n");
  }

  std::vector<Param> back_params(void* largest, void* means) const {
    std::vector<Param> params = score_params();
    params.push_back(in(operand(at_.y).dtype, "y", operand(at_.y).data));
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

  void of_queries(const TensorView& dq, void* largest, void* means) const {
    std::vector<Param> params = back_params(largest, means);
    params.push_back(out(dq.dtype, "dq", dq.data));
    const TensorView& y = operand(at_.y);
    const std::int64_t each = divided_up(key_, kThreads);
    work_.launch(
        shared() * rows(), kThreads, params,
        str(query_start(), slope(), wide_, " own_mean = 0;\nfor (int d = threadIdx.x; d < ", value_, "; d += ",
            kThreads, ") own_mean += ", dy_at("d"), " * get(y[", query_offset(y), " + d * ", stride(y, rules_.value),
            "ll]);\nconst ", wide_, " mean = team_join<", kThreads, ">(own_mean, JoinSum(), shared);\n", wide_,
            " top = ", logsumexp_ ? total_at() : "-INF", ";\n",
            logsumexp_ ? "" : chunks("top = larger_of(top, most);\n"), "const ", wide_, " all = ", divisor(),
            ";\nif (threadIdx.x == 0) { largest[", number_of_query(),
            "] = top; means[", number_of_query(), "] = mean; }\n", wide_, " acc[", each, "];\nfor (int j = 0; j < ",
            each, "; ++j) acc[j] = 0;\nif (top != -INF) {\n",
            chunks(str(
                "for (int c = threadIdx.x; c < count; c += ", kThreads, ") scores[c] = scores[c] == -INF ? (", wide_,
                ")0 : slope(s, r, m0 + c, vmath::exp(scores[c] - top) / all, mean) * (", wide_, ")",
                real_literal(rules_.scale), ";\n__syncthreads();\nfor (int j = 0; j < ", each,
                "; ++j) {\nconst int d = j * ", kThreads, " + threadIdx.x;\nif (d >= ", key_,
                ") break;\nfor (int c = 0; c < count; ++c) { const long long m = m0 + c; acc[j] += scores[c] * get(k[",
                memory_offset(operand(1)), " + d * ", stride(operand(1), rules_.key), "ll]); }\n}\n")),
            "}\nfor (int j = 0; j < ", each, "; ++j) {\nconst int d = j * ", kThreads,
            " + threadIdx.x;\nif (d >= ", key_, ") break;\ndq[", query_offset(dq), " + d * ", stride(dq, rules_.key),
            "ll] = put<", stored_type(dq.dtype), ">((", register_type(dq.dtype), ")acc[j]);\n}\n"));
  }

  // A block for each key: the probabilities and slopes of kChunk queries at a time.
  void of_keys(const TensorView& dk, const TensorView& dv, void* largest, void* means) const {
    std::vector<Param> params = back_params(largest, means);
    params.push_back(out(dk.dtype, "dk", dk.data));
    params.push_back(out(dv.dtype, "dv", dv.data));
    const TensorView& q = operand(0);
    const std::int64_t keys = divided_up(key_, kThreads), values = divided_up(value_, kThreads);
    const std::string dk_key = stride_text(dk, rules_.key), dv_value = stride_text(dv, rules_.value);
    work_.launch(
        shared() * memory_.size, kThreads, params,
        str("__shared__ ", wide_, " weights[", kChunk, "], slopes[", kChunk, "];\nconst long long s = blockIdx.x / ",
            memory_.size, ", m = blockIdx.x % ", memory_.size, ";\n", constants(), score(), slope(), wide_, " a[", keys,
            "], b[", values, "];\nfor (int j = 0; j < ", keys, "; ++j) a[j] = 0;\nfor (int j = 0; j < ", values,
            "; ++j) b[j] = 0;\nfor (long long r0 = 0; r0 < ", rows(), "ll; r0 += ", kChunk,
            ") {\nconst int count = ", rows(), "ll - r0 < ", kChunk, " ? (int)(", rows(), "ll - r0) : ", kChunk,
            ";\n__syncthreads();\nfor (int c = threadIdx.x; c < count; c += ", kThreads,
            ") {\nconst long long r = r0 + c;\nconst ", wide_, " x = score(s, r, m, [&](int d) { return get(q[",
            query_offset(q), " + d * ", stride(q, rules_.key), "ll]); });\nconst ", wide_, " p = x == -INF ? (", wide_,
            ")0 : vmath::exp(x - largest[", number_of_query(), "]) / ", divisor(),
            ";\nweights[c] = p;\nslopes[c] = x == -INF ? (", wide_, ")0 : slope(s, r, m, p, means[",
            number_of_query(), "]) * (", wide_, ")", real_literal(rules_.scale),
            ";\n}\n__syncthreads();\nfor (int c = 0; c < count; ++c) {\nconst long long r = r0 + c;\nif (weights[c] == "
            "0 && slopes[c] == 0) continue;\nfor (int j = 0; j < ",
            keys, "; ++j) {\nconst int d = j * ", kThreads, " + threadIdx.x;\nif (d < ", key_,
            ") a[j] += slopes[c] * get(q[", query_offset(q), " + d * ", stride(q, rules_.key),
            "ll]);\n}\nfor (int j = 0; j < ", values, "; ++j) {\nconst int d = j * ", kThreads,
            " + threadIdx.x;\nif (d < ", value_, ") b[j] += weights[c] * ", dy_at("d"),
            ";\n}\n}\n}\nfor (int j = 0; j < ", keys, "; ++j) {\nconst int d = j * ", kThreads,
            " + threadIdx.x;\nif (d < ", key_, ") dk[", key_offset(dk), " + d * ", dk_key, "] = put<",
            stored_type(dk.dtype), ">((", register_type(dk.dtype), ")a[j]);\n}\nfor (int j = 0; j < ", values,
            "; ++j) {\nconst int d = j * ", kThreads, " + threadIdx.x;\nif (d < ", value_, ") dv[", key_offset(dv),
            " + d * ", dv_value, "] = put<", stored_type(dv.dtype), ">((", register_type(dv.dtype), ")b[j]);\n}\n"));
  }

  static std::string stride_text(const TensorView& view, const std::string& dim) {
    return str(stride(view, dim), "ll");
  }

  // Dims of queries and keys that the bias lacks are summed.
  void of_bias(const TensorView& db, void* largest, void* means) const {
    std::vector<Param> params = back_params(largest, means);
    params.push_back(out(db.dtype, "db", db.data));
    const Shape every = dims_.shared.plus(dims_.rows).plus({memory_});
    Shape summed;
    for (const Dim& dim : every)
      if (!db.shape.has(dim.name)) summed = summed.plus({dim});
    // The numbers of s, r and m at element i of the bias and element n of the summed dims.
    const auto index = [&](const Shape& dims) {
      std::string text = "0ll";
      const std::vector<std::int64_t> strides = dense_strides(dims);
      for (std::size_t d = 0; d < dims.rank(); ++d) {
        const Shape& of = db.shape.has(dims[d].name) ? db.shape : summed;
        const std::size_t at = of.position(dims[d].name);
        text += str(" + ", db.shape.has(dims[d].name) ? "i" : "n", " / ", dense_strides(of)[at], "ll % ", of[at].size,
                    "ll * ", strides[d], "ll");
      }
      return text;
    };
    const TensorView& q = operand(0);
    const std::vector<Run> runs = joined_runs({db.shape.begin(), db.shape.end()}, {db.strides});
    launch_per_element(
        work_, db.shape.elements(), params,
        str(constants(), score(), slope(), wide_, " sum = 0;\nfor (long long n = 0; n < ", summed.elements(),
            "ll; ++n) {\nconst long long s = ", index(dims_.shared), ", r = ", index(dims_.rows),
            ", m = ", index(Shape({memory_})), ";\nconst ", wide_, " x = score(s, r, m, [&](int d) { return get(q[",
            query_offset(q), " + d * ", stride(q, rules_.key),
            "ll]); });\nif (x == -INF) continue;\nsum += slope(s, r, m, vmath::exp(x - largest[", number_of_query(),
            "]) / ", divisor(), ", means[", number_of_query(), "]);\n}\ndb[",
            offset_text(runs, 0, "i"), "] = put<", stored_type(db.dtype), ">((", register_type(db.dtype), ")sum);\n"));
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

}  // namespace

void attend(const Work& work) {
  if (!attend_by_cudnn(work)) Attention(work).forward();
}

void attend_back(const Work& work) {
  if (!attend_by_cudnn(work)) Attention(work).backward();
}

std::int64_t attend_bytes(const Program& program, const Instr& instr, const ByValue<std::vector<std::int64_t>>& strides) {
  const std::int64_t by_cudnn = cudnn_attend_bytes(program, instr, strides);
  if (instr.is<Attend>()) return by_cudnn;
  const auto shape = [&](std::size_t i) { return program.values[instr.inputs[i]].shape; };
  const AttendDims dims = attend_dims(*attend_rules(instr), shape(0), shape(1));
  const bool wide = program.values[instr.inputs[0]].dtype == DType::kF64;
  return std::max(by_cudnn, 2 * card_aligned(dims.shared.elements() * dims.rows.elements() * (wide ? 8 : 4)));
}

}  // namespace weft::cuda
