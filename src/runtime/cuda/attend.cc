// attend and attend_back by the engine's own kernels, for what cuDNN does not take: softmax attention without stored scores.
//
// A block works on a tile of queries, or of keys, against tiles of the other (add_dots and add_weighted of the prelude);
// the scores of two tiles are all that exists. Forward: largest score, total and sums of values are carried from tile to
// tile of the keys. Backward: blocks of queries find what their scores are relative to and dy . y, and sum dq; blocks of keys
// sum dk and dv over all queries; blocks of both sum the derivative by the bias. Every sum has one order.
#include <algorithm>
#include <cmath>

#include "base/str.h"
#include "runtime/cuda/attend_text.h"
#include "runtime/cuda/instructions.h"
#include "runtime/host/attend_views.h"

namespace weft::cuda {

namespace {

constexpr int kBlock = 256;               // kTileThreads of the prelude

class Tiles : AttendText {
 public:
  explicit Tiles(const Work& work) : AttendText(work), side_(wide_ == "double" ? 32 : 64) {}

  bool has_few_queries() const { return rows() < kFewQueries; }

  void forward() const {
    const TensorView &y = work_.outputs[0], &total = work_.outputs[1];
    std::vector<Param> params = score_params();
    params.push_back(out(y.dtype, "y_out", y.data));
    params.push_back(out(total.dtype, "total", total.data));
    work_.launch(
        shared() * query_tiles(), kBlock, params,
        str(start(), "const long long s = blockIdx.x / ", query_tiles(), ", r0 = blockIdx.x % ", query_tiles(), " * ",
            side_, ";\n", queries(""), end_of_keys(), "W largest[R], sum[R], acc[", tiles(value_),
            "][R][R] = {};\nWEFT_EACH(i, R) largest[i] = -INF, sum[i] = 0;\n",
            "for (long long m0 = 0; m0 < end; m0 += T) {\n", keys("end"), scores(),
            "WEFT_EACH(i, R) {\nW most = score[i][0];\nWEFT_EACH(j, R) most = "
            "larger_of(most, score[i][j]);\nconst W now = larger_of(largest[i], row_join(most, larger_of));\nconst W "
            "shrink = largest[i] == -INF ? (W)0 : e_to(largest[i] - now);\nlargest[i] = now;\nW part = "
            "0;\nWEFT_EACH(j, R) {\nconst W p = score[i][j] == -INF ? (W)0 : e_to(score[i][j] - now);\nweights[(y + 16 "
            "* i) * "
            "(T + 1) + x + 16 * j] = p;\npart += p;\n}\nsum[i] = sum[i] * shrink + row_join(part, "
            "JoinSum());\nWEFT_EACH(n, ",
            tiles(value_), ") WEFT_EACH(j, R) acc[n][i][j] *= shrink;\n}\n",
            weighted("acc", value_, false, "v", "k_rows", stride(operand(2), rules_.value)), "}\n",
            "WEFT_EACH(i, R) {\nif (y + 16 * i >= q_rows) continue;\nconst long long r = r0 + y + 16 * "
            "i;\nconst W part = sum[i] == 0 ? (W)0 : 1 / sum[i];\n",
            each_result("acc", value_, "y_out", y, rules_.value, query_offset(y), "part"), "if (x == 0) total[",
            query_offset(total), "] = put<", stored_type(total.dtype), ">((", register_type(total.dtype), ")(",
            logsumexp_ ? "sum[i] == 0 ? -INF : largest[i] + log_of(sum[i])" : "sum[i]", "));\n}\n"));
  }

  void backward() const {
    const auto bytes = static_cast<std::size_t>(shared() * rows()) * (wide_ == "double" ? 8 : 4);
    void* largest = work_.workspace(bytes);
    void* means = work_.workspace(bytes);
    of_queries(derivative_view(work_.instr, work_.outputs, 0), largest, means);
    of_keys(derivative_view(work_.instr, work_.outputs, 1), derivative_view(work_.instr, work_.outputs, 2), largest,
            means);
    const int bias = bias_derivative(work_.instr);
    if (bias < 0) return;
    const TensorView& db = work_.outputs[static_cast<std::size_t>(bias)];
    const bool of_tiles =
        db.shape.has(memory_.name) &&
        std::all_of(dims_.rows.begin(), dims_.rows.end(), [&](const Dim& dim) { return db.shape.has(dim.name); });
    if (of_tiles) of_bias(db, largest, means);
    else attend_bias_numbers(work_, db, largest, means);
  }

 private:
  std::int64_t tiles(std::int64_t size) const { return divided_up(size, side_); }
  std::int64_t query_tiles() const { return tiles(rows()); }
  std::int64_t key_tiles() const { return tiles(memory_.size); }
  bool has_dy() const { return at_.dy >= 0; }

  // Names of all kernels, and what a tile of queries and one of keys have in shared memory.
  std::string start() const {
    std::string text =
        str("using W = ", wide_, ";\nconstexpr int T = ", side_,
            ", R = TileSizes<T>::R;\n__shared__ W chunk[TileSizes<T>::kChunk], weights[TileSizes<T>::kWeights];\n"
            "__shared__ long long q_at[T], k_at[T], v_at[T];\nconst int x = threadIdx.x % 16, y = threadIdx.x / 16;\n");
    if (has_dy()) text += "__shared__ long long dy_at[T];\n__shared__ W top[T], all[T], mean[T];\n";
    if (rules_.causal) text += "__shared__ long long place[T];\n";
    if (rules_.segments) text += "__shared__ long long q_id[T], k_id[T];\n";
    if (rules_.biased) text += "__shared__ long long b_at[T];\n";
    return text + constants() + memory_of();
  }

  // The queries from r0 on: q_rows of them. `more`: of each of them, its number i in the tile.
  std::string queries(const std::string& more) const {
    std::string text = str("const int q_rows = ", rows(), "ll - r0 < T ? (int)(", rows(),
                           "ll - r0) : T;\n__syncthreads();\nif (threadIdx.x < q_rows) {\nconst int i = "
                           "threadIdx.x;\nconst long long r = r0 + i;\nq_at[i] = ",
                           query_offset(operand(0)), ";\n");
    if (has_dy()) text += str("dy_at[i] = ", query_offset(operand(at_.dy)), ";\n");
    if (rules_.causal) {
      const std::size_t at = dims_.rows.position(rules_.length);
      text +=
          str("place[i] = query_begin + r / ", dense_strides(dims_.rows)[at], "ll % ", dims_.rows[at].size, "ll;\n");
    }
    if (rules_.segments) text += str("q_id[i] = widen(get(query_ids[", query_offset(operand(at_.query_ids)), "]));\n");
    if (rules_.biased) text += str("b_at[i] = ", query_offset(operand(at_.bias)), ";\n");
    return str(text, more, "}\n__syncthreads();\n");
  }
  // What attend_back needs of queries besides, once `largest` and `means` are known.
  std::string known_queries() const {
    return str("top[i] = largest[", number_of_query(), "];\nmean[i] = means[", number_of_query(),
               "];\nall[i] = ", divisor(), ";\n");
  }

  // Where the keys end that a query of the tile sees.
  std::string end_of_keys() const {
    return str("long long end = end_of(s);\n",
               rules_.causal
                   ? "{\nlong long last = place[0];\nfor (int i = 1; i < q_rows; ++i) last = place[i] > last ? "
                     "place[i] : last;\nif (last - memory_begin + 1 < end) end = last - memory_begin + 1;\n}\n"
                   : "");
  }

  // The keys from m0 on: k_rows of them, before `end`.
  std::string keys(const std::string& end) const {
    return str(
        "const int k_rows = ", end, " - m0 < T ? (int)(", end,
        " - m0) : T;\n__syncthreads();\nif ((int)threadIdx.x < k_rows) {\nconst int i = threadIdx.x;\nconst long "
        "long m = m0 + i;\nk_at[i] = ",
        memory_offset(operand(1)), ";\nv_at[i] = ", memory_offset(operand(2)), ";\n",
        rules_.segments ? str("k_id[i] = widen(get(memory_ids[", key_offset(operand(at_.memory_ids)), "]));\n") : "",
        "}\n__syncthreads();\n");
  }

  // W score[R][R] of the two tiles; -INF where a query does not see a key.
  std::string scores() const {
    std::string seen = "y + 16 * i < q_rows && x + 16 * j < k_rows && m < end_of_s";
    if (rules_.causal) seen += " && memory_begin + m <= place[y + 16 * i]";
    if (rules_.segments) seen += " && q_id[y + 16 * i] == k_id[x + 16 * j]";
    return str("W score[R][R] = {};\nadd_dots<T>(score, q, q_at, q_rows, ", stride(operand(0), rules_.key),
               "ll, k, k_at, k_rows, ", stride(operand(1), rules_.key), "ll, ", key_,
               ", chunk);\nWEFT_EACH(i, R) WEFT_EACH(j, R) {\nconst long long m = m0 + x + 16 * j, "
               "end_of_s = end_of(s);\nscore[i][j] = !(",
               seen, ") ? -INF : score[i][j] * (W)", real_literal(rules_.scale),
               at_.bias < 0
                   ? ""
                   : str(" + get(bias[b_at[y + 16 * i] + m * ", stride(operand(at_.bias), rules_.memory), "ll])"),
               ";\n}\n");
  }

  // W slope[R][R]: p (dy . v - dy . y), which takes the place of the scores in score[R][R], and p in weights if asked.
  std::string slopes(bool keeps_weights) const {
    return str("W slope[R][R] = {};\nadd_dots<T>(slope, dy, dy_at, q_rows, ", stride(operand(at_.dy), rules_.value),
               "ll, v, v_at, k_rows, ", stride(operand(2), rules_.value), "ll, ", value_,
               ", chunk);\nWEFT_EACH(i, R) WEFT_EACH(j, R) {\nconst int row = y + 16 * i;\nconst W "
               "p = score[i][j] == -INF ? (W)0 : e_to(score[i][j] - top[row]) / all[row];\n",
               keeps_weights ? "weights[row * (T + 1) + x + 16 * j] = p;\n" : "",
               "slope[i][j] = score[i][j] == -INF ? (W)0 : p * (slope[i][j] - mean[row]);\n}\n");
  }
  // The slopes become the weights.
  std::string weights_from_slopes() const {
    return str(
        "WEFT_EACH(i, R) WEFT_EACH(j, R) weights[(y + 16 * i) * (T + 1) + x + 16 * j] = "
        "slope[i][j] * (W)",
        real_literal(rules_.scale), ";\n");
  }

  // acc += weights times rows of `from`.
  std::string weighted(const std::string& acc, std::int64_t depth, bool turned, const std::string& from,
                       const std::string& count, std::int64_t step) const {
    return str("WEFT_EACH(n, ", tiles(depth), ") add_weighted<T, ", turned ? "true" : "false", ">(", acc,
               "[n], weights, ", from, ", ", from, "_at, ", count, ", ", step, "ll, n * T, ", depth, ", chunk);\n");
  }

  // The results of row i: `place` is where they begin.
  static std::string each_result(const std::string& acc, std::int64_t depth, const std::string& to,
                                 const TensorView& view, const std::string& dim, const std::string& place,
                                 const std::string& factor) {
    return str("WEFT_EACH(n, (int)(sizeof ", acc, " / sizeof ", acc,
               "[0])) WEFT_EACH(j, R) {\nconst int d = n * T + x + 16 * j;\nif (d < ", depth, ") ", to, "[", place,
               " + d * ", stride(view, dim), "ll] = put<", stored_type(view.dtype), ">((", register_type(view.dtype),
               ")(", acc, "[n][i][j] * ", factor, "));\n}\n");
  }

  void of_queries(const TensorView& dq, void* largest, void* means) const {
    std::vector<Param> params = back_params(largest, means);
    params.push_back(out(dq.dtype, "dq", dq.data));
    const TensorView& y = operand(at_.y);
    const std::string find_largest =
        str("for (long long m0 = 0; m0 < end; m0 += T) {\n", keys("end"), scores(),
            "WEFT_EACH(i, R) WEFT_EACH(j, R) most[i] = larger_of(most[i], score[i][j]);\n}\n");
    work_.launch(
        shared() * query_tiles(), kBlock, params,
        str(start(), "const long long s = blockIdx.x / ", query_tiles(), ", r0 = blockIdx.x % ", query_tiles(), " * ",
            side_, ";\n",
            queries(str("all[i] = ", divisor(), ";\n", logsumexp_ ? str("top[i] = ", total_at(), ";\n") : "")),
            end_of_keys(), "W most[R];\nWEFT_EACH(i, R) most[i] = -INF;\n", logsumexp_ ? "" : find_largest,
            "WEFT_EACH(i, R) {\nconst int row = y + 16 * i;\nconst long long r = r0 + row;\nW part = 0;\nif (row < "
            "q_rows) "
            "for (int d = x; d < ",
            value_, "; d += 16) part = multiply_add((W)get(dy[dy_at[row] + d * ", stride(operand(at_.dy), rules_.value),
            "ll]), (W)get(y_in[", query_offset(y), " + d * ", stride(y, rules_.value),
            "ll]), part);\nconst W joined = row_join(most[i], larger_of);\npart = row_join(part, "
            "JoinSum());\n(void)joined;\nif "
            "(x == 0 && row < q_rows) {\n",
            logsumexp_ ? "" : "top[row] = joined;\n", "mean[row] = part;\nlargest[", number_of_query(),
            "] = top[row];\nmeans[", number_of_query(), "] = part;\n}\n}\n__syncthreads();\nW acc[", tiles(key_),
            "][R][R] = {};\nfor (long long m0 = 0; m0 < end; m0 += T) {\n", keys("end"), scores(), slopes(false),
            weights_from_slopes(), weighted("acc", key_, false, "k", "k_rows", stride(operand(1), rules_.key)),
            "}\nWEFT_EACH(i, R) {\nif (y + 16 * i >= q_rows) continue;\nconst long long r = r0 + y + 16 * i;\n",
            each_result("acc", key_, "dq", dq, rules_.key, query_offset(dq), "1"), "}\n"));
  }

  void of_keys(const TensorView& dk, const TensorView& dv, void* largest, void* means) const {
    std::vector<Param> params = back_params(largest, means);
    params.push_back(out(dk.dtype, "dk", dk.data));
    params.push_back(out(dv.dtype, "dv", dv.data));
    const std::string unseen =
        rules_.causal ? "if (!__syncthreads_or(threadIdx.x < q_rows && memory_begin + m0 <= place[threadIdx.x % T])) "
                        "continue;\n"
                      : "";
    work_.launch(
        shared() * key_tiles(), kBlock, params,
        str(start(), "const long long s = blockIdx.x / ", key_tiles(), ", m0 = blockIdx.x % ", key_tiles(), " * ",
            side_, ";\n", keys(str(memory_.size, "ll")), "W a[", tiles(key_), "][R][R] = {}, b[", tiles(value_),
            "][R][R] = {};\nfor (long long r0 = 0; r0 < ", rows(), "ll; r0 += T) {\n", queries(known_queries()), unseen,
            scores(), slopes(true), weighted("b", value_, true, "dy", "q_rows", stride(operand(at_.dy), rules_.value)),
            "__syncthreads();\n", weights_from_slopes(),
            weighted("a", key_, true, "q", "q_rows", stride(operand(0), rules_.key)),
            "}\nWEFT_EACH(i, R) {\nif (y + 16 * i >= k_rows) continue;\nconst long long m = m0 + y + 16 * "
            "i;\n",
            each_result("a", key_, "dk", dk, rules_.key, key_offset(dk), "1"),
            each_result("b", value_, "dv", dv, rules_.value, key_offset(dv), "1"), "}\n"));
  }

  // Of a bias with all dims of queries and keys but shared ones, over which a block sums.
  void of_bias(const TensorView& db, void* largest, void* means) const {
    std::vector<Param> params = back_params(largest, means);
    params.push_back(out(db.dtype, "db", db.data));
    Shape kept, summed;
    for (const Dim& dim : dims_.shared) {
      Shape& role = db.shape.has(dim.name) ? kept : summed;
      role = role.plus({dim});
    }
    std::string s = "0ll";
    const std::vector<std::int64_t> strides = dense_strides(dims_.shared);
    for (std::size_t d = 0; d < dims_.shared.rank(); ++d) {
      const Dim& dim = dims_.shared[d];
      const bool is_kept = kept.has(dim.name);
      const Shape& of = is_kept ? kept : summed;
      s += str(" + ", is_kept ? "block" : "n", " / ", dense_strides(of)[of.position(dim.name)], "ll % ", dim.size,
               "ll * ", strides[d], "ll");
    }
    const std::int64_t both = query_tiles() * key_tiles();
    work_.launch(
        kept.elements() * both, kBlock, params,
        str(start(), "const long long block = blockIdx.x / ", both, ", r0 = blockIdx.x % ", both, " / ", key_tiles(),
            " * ", side_, ", m0 = blockIdx.x % ", key_tiles(), " * ", side_,
            ";\nW acc[R][R] = {};\nfor (long long n = 0; n < ", summed.elements(), "ll; ++n) {\nconst long long s = ",
            s, ";\n", queries(known_queries()), keys(str(memory_.size, "ll")), scores(), slopes(false),
            "WEFT_EACH(i, R) WEFT_EACH(j, R) acc[i][j] += slope[i][j];\n}\nconst long long n = 0, s "
            "= ",
            s,
            ";\nWEFT_EACH(i, R) WEFT_EACH(j, R) {\nconst long long r = r0 + y + 16 * i, m = m0 + "
            "x + 16 * j;\nif (r < ",
            rows(), "ll && m < ", memory_.size, "ll) db[", query_offset(db), " + m * ", stride(db, memory_.name),
            "ll] = put<", stored_type(db.dtype), ">((", register_type(db.dtype), ")acc[i][j]);\n}\n"));
  }

  const int side_;  // of a tile
};

}  // namespace

void attend(const Work& work) {
  if (attend_by_cudnn(work)) return;
  const Tiles tiles(work);
  if (tiles.has_few_queries() && attend_step(work)) return;
  if (tiles.has_few_queries()) attend_few(work);
  else tiles.forward();
}

void attend_back(const Work& work) {
  if (!attend_by_cudnn(work)) Tiles(work).backward();
}

std::int64_t attend_bytes(const Program& program, const Instr& instr, const ByValue<std::vector<std::int64_t>>& strides,
                          bool deterministic) {
  const std::int64_t by_cudnn = cudnn_attend_bytes(program, instr, strides, deterministic);
  if (instr.is<Attend>()) return by_cudnn;
  const auto shape = [&](std::size_t i) { return program.values[instr.inputs[i]].shape; };
  const AttendDims dims = attend_dims(*attend_rules(instr), shape(0), shape(1));
  const bool wide = program.values[instr.inputs[0]].dtype == DType::kF64;
  return std::max(by_cudnn, 2 * card_aligned(dims.shared.elements() * dims.rows.elements() * (wide ? 8 : 4)));
}

}  // namespace weft::cuda
