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

// A piece that goes to a run-time index, element by element: parameters with this number, and what a thread does with
// element i.
struct PieceText {
  std::vector<Param> params;
  std::string text;
};
PieceText piece_text(const Work& work, int number) {
  const TensorView &piece = work.inputs[1], &offset = work.inputs[2], &result = work.outputs[0];
  const std::string& dim = work.instr.as<DynamicUpdate>()->dim;
  const std::vector<Run> runs = runs_over(piece.shape, {piece, without(result, dim), offset});
  const std::int64_t size = result.shape.size_of(dim);
  return {{in(piece.dtype, str("x", number), piece.data), in(offset.dtype, str("offset", number), offset.data),
           out(result.dtype, str("y", number), result.data)},
          str("long long at = widen(get(offset", number, "[", offset_text(runs, 2, "i"), "]));\nif (at > ", size,
              "ll || at < -", piece.shape.size_of(dim), "ll) return;\nat += ", index_along(piece.shape, dim),
              ";\nif (at < 0 || at >= ", size, "ll) return;\ny", number, "[at * ", stride_along(result, dim), "ll + ",
              offset_text(runs, 1, "i"), "] = x", number, "[", offset_text(runs, 0, "i"), "];\n")};
}

bool is_piece_in_place(const Work& work) {
  const auto* operation = work.instr.as<DynamicUpdate>();
  return operation && work.inputs[0].data == work.outputs[0].data &&
         work.inputs[0].strides == work.outputs[0].strides && !work.inputs[2].shape.has(operation->dim);
}

}  // namespace

void dynamic_update(const Work& work) {
  const std::string& dim = work.instr.as<DynamicUpdate>()->dim;
  copy_elements(work, work.inputs[0], work.outputs[0]);
  if (work.inputs[2].shape.has(dim)) return put_at_places(work, dim);
  const PieceText one = piece_text(work, 0);
  launch_per_element(work, work.inputs[1].shape.elements(), one.params, one.text);
}

bool dynamic_updates(const Work& one, const Work& other) {
  if (!is_piece_in_place(one) || !is_piece_in_place(other)) return false;
  for (const TensorView& read : other.inputs)
    if (share_memory(read, one.outputs[0])) return false;
  for (const TensorView& read : one.inputs)
    if (share_memory(read, other.outputs[0])) return false;
  const std::int64_t first = one.inputs[1].shape.elements(), second = other.inputs[1].shape.elements();
  PieceText a = piece_text(one, 0), b = piece_text(other, 1);
  a.params.insert(a.params.end(), b.params.begin(), b.params.end());
  launch_per_element(one, first + second, a.params,
                     str("const long long all = i;\nif (all < ", first, "ll) {\nconst long long i = all;\n", a.text,
                         "} else {\nconst long long i = all - ", first, "ll;\n", b.text, "}\n"));
  return true;
}

namespace {

// Elements side by side, in x and in the result, that have one index: as many as 16 bytes hold.
std::int64_t gathered_together(const std::vector<Run>& runs, const std::vector<TensorView>& views) {
  if (runs.empty() || runs.back().strides != std::vector<std::int64_t>{1, 0, 1}) return 1;
  for (auto width = static_cast<std::int64_t>(16 / size_of(views[0].dtype)); width > 1; width /= 2) {
    const auto divides = [&](std::int64_t number) { return number % width == 0; };
    bool whole = divides(runs.back().size);
    for (std::size_t r = 0; r + 1 < runs.size(); ++r)
      whole = whole && divides(runs[r].strides[0]) && divides(runs[r].strides[2]);
    for (const TensorView& view : views)
      whole =
          whole &&
          reinterpret_cast<std::uintptr_t>(view.data) % (static_cast<std::size_t>(width) * size_of(view.dtype)) == 0;
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
  const std::int64_t together = gathered_together(runs, {x, result}),
                     width = x.strides[d] % together == 0 ? together : 1;
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
