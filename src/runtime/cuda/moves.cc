// copy, concat, dynamic_slice, dynamic_update, gather, scatter_add: moving elements.
#include "base/str.h"
#include "language/shape_math.h"
#include "runtime/cuda/instructions.h"
#include "runtime/cuda/sweep.h"
#include "runtime/cuda/text.h"
#include "runtime/host/strided.h"
#include "runtime/host/views.h"

namespace weft::cuda {

void copy(const Work& work) { copy_elements(work, work.inputs[0], work.outputs[0]); }

void concat(const Work& work) {
  const std::string& dim = work.instr.as<Concat>()->dim;
  std::int64_t begin = 0;
  for (const TensorView& input : work.inputs) {
    const std::int64_t size = input.shape.size_of(dim);
    copy_elements(work, input, run_of(work.outputs[0], dim, begin, size));
    begin += size;
  }
}

namespace {

std::vector<Dim> dims_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

// The strides of values along the dims of `shape`, joined.
std::vector<Run> runs_over(const Shape& shape, const std::vector<TensorView>& views) {
  std::vector<std::vector<std::int64_t>> strides;
  for (const TensorView& view : views) strides.push_back(strides_along(view, shape));
  return joined_runs(dims_of(shape), strides);
}

TensorView without(TensorView view, const std::string& dim) {
  return view.shape.has(dim) ? without_dim(std::move(view), dim) : view;
}

std::int64_t stride_along(const TensorView& view, const std::string& dim) {
  return view.strides[view.shape.position(dim)];
}

// The row-major index along one dim of `shape`, of element i.
std::string index_along(const Shape& shape, const std::string& dim) {
  const std::size_t at = shape.position(dim);
  return str("(i / ", dense_strides(shape)[at], "ll % ", shape[at].size, "ll)");
}

}  // namespace

void dynamic_slice(const Work& work) {
  const TensorView &x = work.inputs[0], &offset = work.inputs[1], &result = work.outputs[0];
  const std::string& dim = work.instr.as<DynamicSlice>()->dim;
  const std::int64_t most = x.shape.size_of(dim) - result.shape.size_of(dim);
  const std::vector<Run> runs = runs_over(result.shape, {x, result, offset});
  launch_per_element(
      work, result.shape.elements(),
      {in(x.dtype, "x", x.data), in(offset.dtype, "offset", offset.data), out(result.dtype, "y", result.data)},
      str("long long at = widen(get(offset[", offset_text(runs, 2, "i"), "]));\nat = at < 0 ? 0 : at > ", most, "ll ? ",
          most, "ll : at;\ny[", offset_text(runs, 1, "i"), "] = x[at * ", stride_along(x, dim), "ll + ",
          offset_text(runs, 0, "i"), "];\n"));
}

namespace {

// A piece whose indices along `dim` have places of their own in the result. Of equal places the last counts: a thread
// has one element of all indices.
void put_at_places(const Work& work, const std::string& dim) {
  const TensorView &piece = work.inputs[1], &places = work.inputs[2], &result = work.outputs[0];
  const Shape each = piece.shape.minus({piece.shape.dim(dim)});
  const std::vector<Run> runs = runs_over(each, {piece, without(result, dim)});
  launch_per_element(
      work, each.elements(),
      {in(piece.dtype, "x", piece.data), in(places.dtype, "places", places.data), out(result.dtype, "y", result.data)},
      str("for (long long k = 0; k < ", piece.shape.size_of(dim),
          "ll; ++k) {\nconst long long at = widen(get(places[k * ", places.strides[0],
          "ll]));\nif (at < 0 || at >= ", result.shape.size_of(dim), "ll) continue;\ny[at * ",
          stride_along(result, dim), "ll + ", offset_text(runs, 1, "i"), "] = x[k * ", stride_along(piece, dim),
          "ll + ", offset_text(runs, 0, "i"), "];\n}\n"));
}

}  // namespace

void dynamic_update(const Work& work) {
  const TensorView &piece = work.inputs[1], &offset = work.inputs[2], &result = work.outputs[0];
  const std::string& dim = work.instr.as<DynamicUpdate>()->dim;
  copy_elements(work, work.inputs[0], result);
  if (offset.shape.has(dim)) return put_at_places(work, dim);
  const std::vector<Run> runs = runs_over(piece.shape, {piece, without(result, dim), offset});
  const std::int64_t size = result.shape.size_of(dim);
  launch_per_element(
      work, piece.shape.elements(),
      {in(piece.dtype, "x", piece.data), in(offset.dtype, "offset", offset.data), out(result.dtype, "y", result.data)},
      str("long long at = widen(get(offset[", offset_text(runs, 2, "i"), "]));\nif (at > ", size, "ll || at < -",
          piece.shape.size_of(dim), "ll) return;\nat += ", index_along(piece.shape, dim),
          ";\nif (at < 0 || at >= ", size, "ll) return;\ny[at * ", stride_along(result, dim), "ll + ",
          offset_text(runs, 1, "i"), "] = x[", offset_text(runs, 0, "i"), "];\n"));
}

void gather(const Work& work) {
  const TensorView &x = work.inputs[0], &indices = work.inputs[1], &result = work.outputs[0];
  const std::string& dim = work.instr.as<Gather>()->dim;
  const std::size_t d = x.shape.position(dim);
  const std::vector<Run> runs = runs_over(result.shape, {without(x, dim), indices, result});
  launch_per_element(
      work, result.shape.elements(),
      {in(x.dtype, "x", x.data), in(indices.dtype, "indices", indices.data), out(result.dtype, "y", result.data),
       number("begin", x.begin[d])},
      str("const long long index = widen(get(indices[", offset_text(runs, 1, "i"),
          "]));\nconst bool here = index >= begin && index - begin < ", x.shape[d].size, "ll;\nconst ",
          stored_type(x.dtype), " zero{};\ny[", offset_text(runs, 2, "i"), "] = here ? x[(index - begin) * ",
          x.strides[d], "ll + ", offset_text(runs, 0, "i"), "] : zero;\n"));
}

namespace {

// The roles of the dims of a scatter_add: `own` of the result that the indices have too, `inner` of the result alone,
// `summed` absent from the result.
struct ScatterDims {
  Shape own, inner, summed;
  ScatterDims(const Shape& indices, const Shape& updates, const Shape& result, const std::string& dim) {
    for (const Dim& d : result) {
      if (d.name == dim) continue;
      Shape& role = indices.has(d.name) ? own : inner;
      role = role.plus({d});
    }
    for (const Dim& d : updates.plus(indices))
      if (!result.has(d.name)) summed = summed.plus({d});
  }
};

}  // namespace

// Every result is summed by one thread, in the order of the updates: no atomics. A block has one index and looks for it
// among all, 128 at a time; its threads walk over the inner dims.
void scatter_add(const Work& work) {
  const TensorView &indices = work.inputs[0], &updates = work.inputs[1], &result = work.outputs[0];
  const std::string& dim = work.instr.as<ScatterAdd>()->dim;
  const std::size_t d = result.shape.position(dim);
  const ScatterDims dims(indices.shape, updates.shape, result.shape, dim);
  const std::int64_t own = dims.own.elements(), inner = dims.inner.elements(), many = dims.summed.elements(),
                     size = result.shape[d].size;
  const auto runs = [&](const Shape& shape) { return runs_over(shape, {indices, updates, without(result, dim)}); };
  const std::vector<Run> own_runs = runs(dims.own), inner_runs = runs(dims.inner), sum_runs = runs(dims.summed);
  const std::string wide = wide_type(result.dtype), type = stored_type(result.dtype);
  const std::string add =
      is_float(result.dtype)
          ? "sum += widen(get(updates[at]));\n"
          : "sum = (long long)((unsigned long long)sum + (unsigned long long)widen(get(updates[at])));\n";
  const std::vector<Param> params = {in(indices.dtype, "indices", indices.data),
                                     in(updates.dtype, "updates", updates.data), out(result.dtype, "y", result.data),
                                     number("begin", result.begin[d])};
  const std::string write = str("] = put<", type, ">(narrow<", type, ">(sum));\n");
  if (many <= 32) {
    launch_per_element(
        work, own * inner * size, params,
        str("const long long e = i % ", inner, "ll, v = i / ", inner, "ll % ", size, "ll, b = i / ", inner * size,
            "ll;\n", wide, " sum = 0;\nfor (long long s = 0; s < ", many, "ll; ++s) {\nif (widen(get(indices[",
            offset_text(own_runs, 0, "b"), " + ", offset_text(sum_runs, 0, "s"),
            "])) != begin + v) continue;\nconst long long at = ", offset_text(own_runs, 1, "b"), " + ",
            offset_text(inner_runs, 1, "e"), " + ", offset_text(sum_runs, 1, "s"), ";\n", add, "}\ny[v * ",
            result.strides[d], "ll + ", offset_text(own_runs, 2, "b"), " + ", offset_text(inner_runs, 2, "e"), write));
    return;
  }
  constexpr int kThreads = 128, kMost = 8;  // inner elements of a thread in one round
  work.launch(
      own * size, kThreads, params,
      str("__shared__ int found[", kThreads, "];\n__shared__ int count[", kThreads / 32,
          "];\nconst long long v = blockIdx.x % ", size, "ll, b = blockIdx.x / ", size,
          "ll;\nfor (long long first = 0; first < ", inner, "ll; first += ", kThreads * kMost, ") {\n", wide, " sums[",
          kMost, "];\nfor (int j = 0; j < ", kMost, "; ++j) sums[j] = 0;\nfor (long long s0 = 0; s0 < ", many,
          "ll; s0 += ", kThreads, ") {\nconst long long s = s0 + threadIdx.x;\nconst bool hit = s < ", many,
          "ll && widen(get(indices[", offset_text(own_runs, 0, "b"), " + ", offset_text(sum_runs, 0, "s"),
          "])) == begin + v;\nif (!__syncthreads_or(hit)) continue;\nconst unsigned mask = __ballot_sync(0xffffffffu, "
          "hit);\n"
          "if (threadIdx.x % 32 == 0) count[threadIdx.x / 32] = __popc(mask);\n__syncthreads();\nint place = 0, all = "
          "0;\n"
          "for (int g = 0; g < ",
          kThreads / 32,
          "; ++g) { if (g < (int)threadIdx.x / 32) place += count[g]; all += count[g]; }\n"
          "if (hit) found[place + __popc(mask & ((1u << threadIdx.x % 32) - 1))] = threadIdx.x;\n__syncthreads();\n"
          "for (int f = 0; f < all; ++f) {\nconst long long q = s0 + found[f];\nconst long long base = ",
          offset_text(own_runs, 1, "b"), " + ", offset_text(sum_runs, 1, "q"),
          ";\n#pragma unroll\nfor (int j = 0; j < ", kMost, "; ++j) {\nconst long long e = first + j * ", kThreads,
          " + threadIdx.x;\nif (e >= ", inner, "ll) break;\nconst long long at = base + ",
          offset_text(inner_runs, 1, "e"), ";\n", wide, "& sum = sums[j];\n", add,
          "}\n}\n__syncthreads();\n}\nfor (int j = 0; j < ", kMost, "; ++j) {\nconst long long e = first + j * ",
          kThreads, " + threadIdx.x;\nif (e >= ", inner, "ll) break;\nconst ", wide, " sum = sums[j];\ny[v * ",
          result.strides[d], "ll + ", offset_text(own_runs, 2, "b"), " + ", offset_text(inner_runs, 2, "e"), write,
          "}\n}\n"));
}

}  // namespace weft::cuda
