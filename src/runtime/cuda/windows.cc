// convolve and pool: a thread for each result, which walks over all that meets it.
#include "base/str.h"
#include "language/shape_math.h"
#include "runtime/cuda/instructions.h"
#include "runtime/cuda/text.h"
#include "runtime/host/strided.h"

namespace weft::cuda {

namespace {

std::int64_t stride_or_zero(const TensorView& view, const std::string& dim) {
  const auto at = view.shape.find(dim);
  return at ? view.strides[*at] : 0;
}

std::int64_t size_or_one(const Shape& shape, const std::string& dim) {
  const auto at = shape.find(dim);
  return at ? shape[*at].size : 1;
}

// Along one window dim: which of element, place and tap the result has, and the loops that find the others.
struct Walk {
  std::string loops, ends;                     // opening and closing text
  std::string x = "0", y = "0", filter = "0";  // offsets along the window dims
};

enum class Wanted { kElement, kPlace, kTap };

// `index(w)`: text of the result's index along window w.
template <class Index>
Walk walk_of(const std::vector<WindowDim>& windows, const TensorView& x, const TensorView& y, const TensorView* filter,
             Wanted wanted, const Index& index) {
  Walk walk;
  for (std::size_t n = 0; n < windows.size(); ++n) {
    const WindowDim& w = windows[n];
    const std::int64_t elements = x.shape.size_of(w.dim), places = y.shape.size_of(w.dim);
    const std::string e = str("e", n), p = str("p", n), t = str("t", n), own = index(w);
    if (wanted == Wanted::kPlace)
      walk.loops += str("const long long ", p, " = ", own, ";\nfor (long long ", t, " = 0; ", t, " < ", w.size, "; ++",
                        t, ") {\nconst long long ", e, " = ", p, " * ", w.stride, " + ", t, " * ", w.dilation, " - ",
                        w.before, ";\nif (", e, " < 0 || ", e, " >= ", elements, ") continue;\n");
    else if (wanted == Wanted::kElement)
      walk.loops += str("const long long ", e, " = ", own, ";\nfor (long long ", t, " = 0; ", t, " < ", w.size, "; ++",
                        t, ") {\nconst long long n", n, " = ", e, " + ", w.before, " - ", t, " * ", w.dilation,
                        ";\nif (n", n, " < 0 || n", n, " % ", w.stride, " != 0 || n", n, " / ", w.stride,
                        " >= ", places, ") continue;\nconst long long ", p, " = n", n, " / ", w.stride, ";\n");
    else
      walk.loops += str("const long long ", t, " = ", own, ";\nfor (long long ", p, " = 0; ", p, " < ", places, "; ++",
                        p, ") {\nconst long long ", e, " = ", p, " * ", w.stride, " + ", t, " * ", w.dilation, " - ",
                        w.before, ";\nif (", e, " < 0 || ", e, " >= ", elements, ") continue;\n");
    walk.ends += "}\n";
    walk.x += str(" + ", e, " * ", stride_or_zero(x, w.dim), "ll");
    walk.y += str(" + ", p, " * ", stride_or_zero(y, w.dim), "ll");
    if (filter) walk.filter += str(" + ", t, " * ", stride_or_zero(*filter, w.filter), "ll");
  }
  return walk;
}

// A value's strides along dims, 0 where it lacks them.
std::vector<std::vector<std::int64_t>> strides_of_all(const std::vector<const TensorView*>& views, const Shape& dims) {
  std::vector<std::vector<std::int64_t>> strides;
  for (const TensorView* view : views) strides.push_back(strides_along(*view, dims));
  return strides;
}

// The result's index along a dim of its own.
std::string result_index(const TensorView& result, const std::string& dim) {
  const auto at = result.shape.find(dim);
  if (!at) return "0ll";
  return str("(i / ", dense_strides(result.shape)[*at], "ll % ", result.shape[*at].size, "ll)");
}

}  // namespace

void convolve(const Work& work) {
  const auto& operation = *work.instr.as<Convolve>();
  const bool forward = operation.direction == Direction::kForward,
             to_input = operation.direction == Direction::kToInput;
  const TensorView &a = work.inputs[0], &b = work.inputs[1], &result = work.outputs[0];
  const TensorView &x = to_input ? result : a,
                   &y = forward    ? result
                        : to_input ? a
                                   : b,
                   &filter = forward || to_input ? b : result;
  // Other dims: those of the result stay, those that both operands have and the result lacks are summed.
  const auto walked = [&](const std::string& name) {
    for (const WindowDim& w : operation.windows)
      if (name == w.dim || name == w.filter) return true;
    return false;
  };
  Shape kept, summed;
  for (const Dim& dim : x.shape.plus(filter.shape).plus(y.shape)) {
    if (walked(dim.name)) continue;
    Shape& role = result.shape.has(dim.name) ? kept : summed;
    if (!role.has(dim.name)) role = role.plus({dim});
  }
  const std::vector<const TensorView*> views = {&x, &y, &filter};
  std::string own[3] = {"0", "0", "0"};
  for (std::size_t k = 0; k < 3; ++k)
    for (const Dim& dim : kept)
      if (const std::int64_t s = stride_or_zero(*views[k], dim.name); s != 0)
        own[k] += str(" + ", result_index(result, dim.name), " * ", s, "ll");
  const std::vector<Run> sums = joined_runs({summed.begin(), summed.end()}, strides_of_all(views, summed));
  const Walk walk =
      walk_of(operation.windows, x, y, &filter,
              forward    ? Wanted::kPlace
              : to_input ? Wanted::kElement
                         : Wanted::kTap,
              [&](const WindowDim& w) { return result_index(result, forward || to_input ? w.dim : w.filter); });
  const std::string wide = wide_type(result.dtype), type = stored_type(result.dtype);
  const auto place = [&](std::size_t k, const std::string& window) {
    return str(own[k], " + ", window, " + ", offset_text(sums, k, "s"));
  };
  const std::string left = forward    ? str("get(x[", place(0, walk.x), "])")
                           : to_input ? str("get(y[", place(1, walk.y), "])")
                                      : str("get(x[", place(0, walk.x), "])");
  const std::string right =
      forward || to_input ? str("get(filter[", place(2, walk.filter), "])") : str("get(y[", place(1, walk.y), "])");
  const TensorView &first = a, &second = b;
  launch_per_element(
      work, result.shape.elements(),
      {in(first.dtype, to_input ? "y" : "x", first.data),
       in(second.dtype, forward || to_input ? "filter" : "y", second.data), out(result.dtype, "result", result.data)},
      str(wide, " sum = 0;\n", walk.loops, "for (long long s = 0; s < ", summed.elements(), "ll; ++s) sum += (", wide,
          ")", left, " * (", wide, ")", right, ";\n", walk.ends, "result[i] = put<", type, ">(narrow<", type,
          ">(sum));\n"));
}

void pool(const Work& work) {
  const auto& operation = *work.instr.as<Pool>();
  const bool winners = operation.kind == PoolKind::kWinners, forward = operation.direction == Direction::kForward;
  const TensorView& result = work.outputs[0];
  const TensorView &x = winners || forward ? work.inputs[0] : result, &y = winners   ? work.inputs[1]
                                                                           : forward ? result
                                                                                     : work.inputs[0];
  const auto rest = [&](const TensorView& view) {
    std::string text = "0";
    for (const Dim& dim : view.shape) {
      bool walked = false;
      for (const WindowDim& w : operation.windows) walked = walked || w.dim == dim.name;
      if (!walked) text += str(" + ", result_index(result, dim.name), " * ", stride_or_zero(view, dim.name), "ll");
    }
    return text;
  };
  const Walk walk = walk_of(operation.windows, x, y, nullptr, forward ? Wanted::kPlace : Wanted::kElement,
                            [&](const WindowDim& w) { return result_index(result, w.dim); });
  const std::string wide = wide_type(result.dtype), type = stored_type(result.dtype);
  std::vector<Param> params = {out(result.dtype, "result", result.data)};
  for (std::size_t k = 0; k < work.inputs.size(); ++k)
    params.push_back(in(work.inputs[k].dtype, str("in", k), work.inputs[k].data));
  const auto at = [&](std::size_t k, const std::string& window) {
    return str("(", wide, ")widen(get(in", k, "[", rest(work.inputs[k]), " + ", window, "]))");
  };
  std::string step;
  if (winners) {
    const bool given = work.inputs.size() == 3;
    std::string v = "1";
    if (given) {  // it lies like x forward, like y else
      std::string window = "0";
      for (std::size_t n = 0; n < operation.windows.size(); ++n)
        window +=
            str(" + ", forward ? "e" : "p", n, " * ", stride_or_zero(work.inputs[2], operation.windows[n].dim), "ll");
      v = at(2, window);
    }
    step = str("if (", at(0, walk.x), " == ", at(1, walk.y), ") sum += ", v, ";\n");
  } else if (operation.kind == PoolKind::kSum) {
    step = str("sum += ", at(0, forward ? walk.x : walk.y), ";\n");
  } else {
    step = str("const ", wide, " v = ", at(0, walk.x), ";\nif (v != v || v > sum) sum = v;\n");
  }
  const std::string start = operation.kind == PoolKind::kMax ? join_start(Reduce::kMax, result.dtype) : "0";
  launch_per_element(work, result.shape.elements(), params,
                     str(wide, " sum = ", start, ";\n", walk.loops, step, walk.ends, "result[i] = put<", type,
                         ">(narrow<", type, ">(sum));\n"));
}

}  // namespace weft::cuda
