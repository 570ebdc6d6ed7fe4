// Attention of few queries for every memory: a block for each query; scores of kChunk keys at a time lie in shared memory.
// And the derivative by a bias that lacks dims of the queries: a thread for each of its numbers.
#include <cmath>

#include "base/str.h"
#include "runtime/cuda/attend_text.h"

namespace weft::cuda {

namespace {

constexpr int kQueryThreads = 128, kChunk = 512;

class FewQueries : AttendText {
 public:
  using AttendText::AttendText;

  void forward() {
    const TensorView &y = work_.outputs[0], &total = work_.outputs[1];
    std::vector<Param> params = score_params();
    params.push_back(out(y.dtype, "y", y.data));
    params.push_back(out(total.dtype, "total", total.data));
    const std::int64_t each = divided_up(value_, kQueryThreads);
    work_.launch(
        shared() * rows(), kQueryThreads, params,
        str(query_start(), wide_, " largest = -INF, sum = 0, acc[", each, "];\nfor (int j = 0; j < ", each,
            "; ++j) acc[j] = 0;\n",
            chunks(str("const ", wide_, " before = largest;\nlargest = larger_of(largest, most);\nconst ", wide_,
                       " shrink = before == -INF ? 0 : vmath::exp(before - largest);\n", wide_,
                       " mine = 0;\nfor (int c = threadIdx.x; c < count; c += ", kQueryThreads, ") { const ", wide_,
                       " p = largest == -INF ? (", wide_,
                       ")0 : vmath::exp(scores[c] - largest); scores[c] = p; mine += p; }\n",
                       "sum = sum * shrink + team_join<", kQueryThreads,
                       ">(mine, JoinSum(), shared);\n__syncthreads();\n", "for (int j = 0; j < ", each,
                       "; ++j) {\nconst int d = j * ", kQueryThreads, " + threadIdx.x;\nif (d >= ", value_,
                       ") break;\n", wide_,
                       " a = acc[j] * shrink;\nfor (int c = 0; c < count; ++c) { const long long m = m0 + c; a += "
                       "scores[c] * get(v[",
                       memory_offset(work_.inputs[2]), " + d * ", stride(work_.inputs[2], rules_.value),
                       "ll]); }\nacc[j] = a;\n}\n")),
            "const ", wide_, " scale = sum == 0 ? (", wide_, ")0 : 1 / sum;\nfor (int j = 0; j < ", each,
            "; ++j) {\nconst int d = j * ", kQueryThreads, " + threadIdx.x;\nif (d >= ", value_, ") break;\ny[",
            query_offset(y), " + d * ", stride(y, rules_.value), "ll] = put<", stored_type(y.dtype), ">((",
            register_type(y.dtype), ")(acc[j] * scale));\n}\nif (threadIdx.x == 0) total[", query_offset(total),
            "] = put<", stored_type(total.dtype), ">((", register_type(total.dtype), ")",
            logsumexp_ ? "(sum == 0 ? -INF : largest + vmath::log(sum))" : "sum", ");\n"));
  }

 private:
  // A block for each query, its numbers in shared memory.
  std::string query_start() const {
    return str("__shared__ long long shared[32];\n__shared__ ", wide_, " own[", key_, "], scores[", kChunk,
               "];\n(void)shared;\nconst long long s = blockIdx.x / ", rows(), ", r = blockIdx.x % ", rows(), ";\n",
               constants(), score(), "for (int d = threadIdx.x; d < ", key_, "; d += ", kQueryThreads,
               ") own[d] = get(q[", query_offset(operand(0)), " + d * ", stride(operand(0), rules_.key),
               "ll]);\n__syncthreads();\n");
  }

  // Runs `inside` with scores[0 .. count) of the keys from m0 on, and `most`, the largest of them.
  std::string chunks(const std::string& inside) const {
    return str("for (long long m0 = 0, end = end_of(s); m0 < end; m0 += ", kChunk, ") {\nconst int count = end - m0 < ",
               kChunk, " ? (int)(end - m0) : ", kChunk, ";\n__syncthreads();\n", wide_,
               " most = -INF;\nfor (int c = threadIdx.x; c < count; c += ", kQueryThreads, ") { const ", wide_,
               " x = score(s, r, m0 + c, [&](int d) { return own[d]; }); scores[c] = x; most = larger_of(most, x); }\n"
               "most = team_join<",
               kQueryThreads, ">(most, JoinMax(), shared);\n__syncthreads();\n", inside, "}\n");
  }
};

class BiasNumbers : AttendText {
 public:
  using AttendText::AttendText;

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
            "]) / ", divisor(), ", means[", number_of_query(), "]);\n}\ndb[", offset_text(runs, 0, "i"), "] = put<",
            stored_type(db.dtype), ">((", register_type(db.dtype), ")sum);\n"));
  }
};

}  // namespace

void attend_few(const Work& work) { FewQueries(work).forward(); }

void attend_bias_numbers(const Work& work, const TensorView& db, void* largest, void* means) {
  BiasNumbers(work).of_bias(db, largest, means);
}

}  // namespace weft::cuda
