// map, fused, reduce, scan, sort: along rows and lines.
#include "base/str.h"
#include "runtime/cuda/instructions.h"
#include "runtime/cuda/sweep.h"
#include "runtime/cuda/text.h"
#include "runtime/host/strided.h"

namespace weft::cuda {

void map(const Work& work) { sweep(work, body_of_one(work.program, work.instr)); }

void fused(const Work& work) { sweep(work, *work.instr.as<Fused>()->body); }

// A reduction that is no sweep has a thread for each result.
void reduce(const Work& work) {
  const Program body = body_of_one(work.program, work.instr);
  if (can_sweep(body)) return sweep(work, body);
  const TensorView &x = work.inputs[0], &y = work.outputs[0];
  const Reduce how = work.instr.as<ReduceDims>()->how;
  std::vector<Dim> kept(y.shape.begin(), y.shape.end()), joined;
  for (const Dim& dim : x.shape)
    if (!y.shape.has(dim.name)) joined.push_back(dim);
  const std::vector<Run> outer = joined_runs(kept, {strides_along(x, y.shape), y.strides}),
                         inner = joined_runs(joined, {strides_along(x, Shape(joined))});
  const std::string type = stored_type(y.dtype), wide = wide_type(y.dtype);
  launch_per_element(
      work, y.shape.elements(), {in(x.dtype, "x", x.data), out(y.dtype, "y", y.data)},
      str("const long long at = ", offset_text(outer, 0, "i"), ";\n", wide, " sum = ", join_start(how, y.dtype),
          ";\nfor (long long k = 0; k < ", Shape(joined).elements(), "ll; ++k) sum = ", join_type(how), "()(sum, (",
          wide, ")widen(get(x[at + ", offset_text(inner, 0, "k"), "])));\ny[", offset_text(outer, 1, "i"), "] = put<",
          type, ">(narrow<", type, ">(sum));\n"));
}

// A thread for each line.
void scan(const Work& work) {
  const auto& operation = *work.instr.as<Scan>();
  const TensorView &x = work.inputs[0], &y = work.outputs[0];
  const Shape rest = x.shape.minus({x.shape.dim(operation.dim)});
  const std::vector<Run> runs =
      joined_runs({rest.begin(), rest.end()}, {strides_along(x, rest), strides_along(y, rest)});
  const std::int64_t length = x.shape.size_of(operation.dim);
  const std::string type = stored_type(y.dtype), wide = wide_type(y.dtype),
                    write = str("y[oy + e * ", y.strides[y.shape.position(operation.dim)], "ll] = put<", type,
                                ">(narrow<", type, ">(sum));\n");
  launch_per_element(
      work, rest.elements(), {in(x.dtype, "x", x.data), out(y.dtype, "y", y.data)},
      str("const long long ox = ", offset_text(runs, 0, "i"), ", oy = ", offset_text(runs, 1, "i"), ";\n", wide,
          " sum = ", join_start(operation.how, y.dtype), ";\nfor (long long k = 0; k < ", length,
          "ll; ++k) {\nconst long long e = ", operation.reverse ? str(length - 1, "ll - k") : "k", ";\n",
          operation.exclusive ? write : "", "sum = ", join_type(operation.how), "()(sum, (", wide,
          ")widen(get(x[ox + e * ", x.strides[x.shape.position(operation.dim)], "ll])));\n",
          operation.exclusive ? "" : write, "}\n"));
}

namespace {

// Whether element p of a line comes before element q; the order is total.
std::string comes_before(DType dtype, bool ascending) {
  const char* type = wide_type(dtype);
  return str(
      "const auto before = [&](long long p, long long q) {\nconst ", type,
      " a = widen(get(line[p * step])), b = "
      "widen(get(line[q * step]));\nconst bool a_nan = a != a, b_nan = b != b;\nif (a_nan != b_nan) return a_nan != ",
      ascending ? "true" : "false", ";\nreturn a_nan || a == b ? p < q : (a > b) != ", ascending ? "true" : "false",
      ";\n};\n");
}

}  // namespace

namespace {

// The first of a long line: a cluster of blocks searches it.
void best_of_lines(const Work& work, std::int64_t lines, std::int64_t length, const std::vector<Param>& params,
                   const std::string& start, const std::string& write, const char* wide, bool ascending) {
  constexpr int kWarps = 16;
  const std::int64_t parts = work.card.has_clusters() && lines < 256 && length >= 4096 ? 8 : 1;
  const std::string first = ascending ? "false" : "true";
  work.launch(lines * parts, 32 * kWarps, params,
              str("const long long l = blockIdx.x / ", parts, ";\n", start, "const int e = best_of_line<", kWarps, ", ",
                  parts, ", ", wide, ">(", length, ", [&](int e) { return (", wide,
                  ")widen(get(line[e * step])); }, [&](", wide, " a, int i, ", wide,
                  " b, int j) {\nconst bool a_nan = a != a, b_nan = b != b;\nif (a_nan != b_nan) return a_nan == ",
                  first, ";\nreturn a_nan || a == b ? i < j : (a > b) == ", first,
                  ";\n});\nconstexpr long long rank = 0;\nif (blockIdx.x % ", parts, " == 0 && threadIdx.x == 0) {\n",
                  write, "}\n"),
              {.cluster = static_cast<int>(parts)});
}

}  // namespace

// A block for each line. Few of many: the best that comes after the last one, again and again. Else every element counts
// those before it.
void sort(const Work& work) {
  const auto& operation = *work.instr.as<Sort>();
  const TensorView &x = work.inputs[0], &given = work.inputs.back(), &values = work.outputs[0],
                   &places = work.outputs[1];
  const bool has_given = work.inputs.size() > 1;
  const Shape rest = x.shape.minus({x.shape.dim(operation.dim)});
  const std::vector<Run> runs = joined_runs(
      {rest.begin(), rest.end()},
      {strides_along(x, rest), strides_along(given, rest), strides_along(values, rest), strides_along(places, rest)});
  const std::size_t d = x.shape.position(operation.dim), k = values.shape.position(operation.k);
  const std::int64_t length = x.shape[d].size, count = values.shape[k].size;
  const std::string index = has_given ? str("given[", offset_text(runs, 1, "l"), " + e * ",
                                            given.strides[given.shape.position(operation.dim)], "ll]")
                                      : std::string("(int)(begin + e)");
  const std::string write = str("values[", offset_text(runs, 2, "l"), " + rank * ", values.strides[k],
                                "ll] = line[e * step];\nplaces[", offset_text(runs, 3, "l"), " + rank * ",
                                places.strides[places.shape.position(operation.k)], "ll] = ", index, ";\n");
  const std::string line = str("const ", stored_type(x.dtype), "* line = x + ", offset_text(runs, 0, "l"),
                               ";\nconstexpr long long step = ", x.strides[d], ";\n"),
                    start = str("const long long l = blockIdx.x;\n", line, comes_before(x.dtype, operation.ascending));
  const std::vector<Param> params = {
      in(x.dtype, "x", x.data), in(has_given ? given.dtype : DType::kI32, "given", has_given ? given.data : nullptr),
      out(values.dtype, "values", values.data), out(places.dtype, "places", places.data), number("begin", x.begin[d])};
  if (count == 1 && length > 1 && length < (1 << 30))
    return best_of_lines(work, rest.elements(), length, params, line, write, wide_type(x.dtype), operation.ascending);
  constexpr int kThreads = 256;
  const std::string ranks = str("for (long long e = threadIdx.x; e < ", length, "ll; e += ", kThreads,
                                ") {\nlong long rank = 0;\nfor (long long q = 0; q < ", length,
                                "ll; ++q) rank += before(q, e);\nif (rank < ", count, "ll) {\n", write, "}\n}\n");
  const std::string picks = str(
      "__shared__ long long best[", kThreads, "];\nlong long last = -1;\nfor (long long rank = 0; rank < ", count,
      "ll; ++rank) {\nlong long mine = -1;\nfor (long long e = threadIdx.x; e < ", length, "ll; e += ", kThreads,
      ") if ((last < 0 || (e != last && before(last, e))) && (mine < 0 || before(e, mine))) mine = e;\n"
      "best[threadIdx.x] = mine;\n__syncthreads();\nfor (int o = ",
      kThreads / 2,
      "; o > 0; o /= 2) {\nif (threadIdx.x < o) {\nconst long long a = best[threadIdx.x], b = best[threadIdx.x + o];\n"
      "best[threadIdx.x] = a < 0 ? b : b < 0 ? a : before(b, a) ? b : a;\n}\n__syncthreads();\n}\nconst long long e = "
      "best[0];\n"
      "__syncthreads();\nlast = e;\nif (threadIdx.x == 0) {\n",
      write, "}\n}\n");
  work.launch(rest.elements(), kThreads, params, str(start, count * 4 <= length && count <= 256 ? picks : ranks));
}

}  // namespace weft::cuda
