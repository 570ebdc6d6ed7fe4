// copy, concat, dynamic_slice, dynamic_update, gather: moving elements.
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

namespace {

// Elements side by side, in x and in the result, that have one index: as many as 16 bytes hold.
std::int64_t gathered_together(const std::vector<Run>& runs, const std::vector<TensorView>& views) {
  if (runs.empty() || runs.back().strides != std::vector<std::int64_t>{1, 0, 1}) return 1;
  for (auto width = static_cast<std::int64_t>(16 / size_of(views[0].dtype)); width > 1; width /= 2) {
    const auto divides = [&](std::int64_t number) { return number % width == 0; };
    bool whole = divides(runs.back().size);
    for (std::size_t r = 0; r + 1 < runs.size(); ++r) whole = whole && divides(runs[r].strides[0]) && divides(runs[r].strides[2]);
    for (const TensorView& view : views)
      whole = whole && reinterpret_cast<std::uintptr_t>(view.data) % (static_cast<std::size_t>(width) * size_of(view.dtype)) == 0;
    if (whole) return width;
  }
  return 1;
}

}  // namespace

void gather(const Work& work) {
  const TensorView &x = work.inputs[0], &indices = work.inputs[1], &result = work.outputs[0];
  const std::string& dim = work.instr.as<Gather>()->dim;
  const std::size_t d = x.shape.position(dim);
  const std::vector<Run> runs = runs_over(result.shape, {without(x, dim), indices, result});
  const std::int64_t together = gathered_together(runs, {x, result}), width = x.strides[d] % together == 0 ? together : 1;
  const std::string pack = str("Pack<", stored_type(x.dtype), ", ", width, ">"), e = str("(i * ", width, ")");
  launch_per_element(
      work, result.shape.elements() / width,
      {in(x.dtype, "x", x.data), in(indices.dtype, "indices", indices.data), out(result.dtype, "y", result.data),
       number("begin", x.begin[d])},
      str("const long long index = widen(get(indices[", offset_text(runs, 1, e),
          "]));\nconst bool here = index >= begin && index - begin < ", x.shape[d].size, "ll;\n", pack,
          " found{};\nif (here) found = *(const ", pack, "*)(x + (index - begin) * ", x.strides[d], "ll + ",
          offset_text(runs, 0, e), ");\n*(", pack, "*)(y + ", offset_text(runs, 2, e), ") = found;\n"));
}

}  // namespace weft::cuda
