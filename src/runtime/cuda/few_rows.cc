// d[m, n] = the sum over k of x[m, k] w[n, k], for few m. A block has 16 row_tiles columns of the result, of which its warps
// have a part of the depth each; with several parts, the blocks of a cluster share the depth and add up what they have in
// order, from each other's shared memory (few_rows of the prelude).
#include "runtime/cuda/few_rows.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "base/str.h"
#include "program/matrix_form.h"
#include "runtime/cuda/card_timer.h"
#include "runtime/cuda/text.h"

namespace weft::cuda {

namespace {

constexpr std::int64_t kPiece = 32;  // numbers along the depth that a warp multiplies at a time

struct FewRows {
  const TensorView *x, *w;
  std::size_t w_operand;
  std::int64_t rows, columns, depth, x_step, w_step, out_row, out_column;

  std::int64_t row_groups() const { return power_of_two_above(divided_up(rows, 8)); }  // of 8: 1, 2 or 4
};

bool lies_in_words(const TensorView& view, std::int64_t step) {
  return reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0 && step % 8 == 0;
}

// x and w change places where the few rows are the second operand's.
std::optional<FewRows> few_rows_of(const Work& work, const MatrixForm& f) {
  const TensorView &x = work.inputs[0], &y = work.inputs[1], &d = work.outputs[0];
  const bool types =
      x.dtype == DType::kBF16 && y.dtype == DType::kBF16 && (d.dtype == DType::kBF16 || d.dtype == DType::kF32);
  if (!types || f.products() != 1 || f.k.x != 1 || f.k.y != 1 || f.k.size % kPiece != 0) return std::nullopt;
  FewRows found{&x, &y, 1, f.m.size, f.n.size, f.k.size, f.m.x, f.n.y, f.m.out, f.n.out};
  if (found.rows > found.columns) found = {&y, &x, 0, f.n.size, f.m.size, f.k.size, f.n.y, f.m.x, f.n.out, f.m.out};
  if (found.rows > kMostFewRows || found.columns % 16 != 0 || found.columns < 64) return std::nullopt;
  if (found.rows == 1) found.x_step = found.depth;
  if (!lies_in_words(*found.x, found.x_step) || !lies_in_words(*found.w, found.w_step)) return std::nullopt;
  return found;
}

// How a product is divided.
struct ProductSplit {
  std::int64_t row_tiles = 1;  // of 16 columns of the result, for each block
  std::int64_t warps = 8, parts = 1;
};

// The time that a division takes, about, in seconds on an H200: every multiprocessor has its share of the memory's rate if
// enough loads are under way.
double split_seconds(const FewRows& f, const ProductSplit& d, int multiprocessors) {
  constexpr double kRate = 32e9, kBytesUnderWay = 32768, kBytesOfWarp = 4096, kClusterSeconds = 0.7e-6;
  const std::int64_t blocks = f.columns / (16 * d.row_tiles) * d.parts;
  const auto depth = static_cast<double>(f.depth) / static_cast<double>(d.parts);
  const double bytes = 2 * depth * static_cast<double>(16 * d.row_tiles + 4 * f.row_groups());
  const std::int64_t each = divided_up(blocks, multiprocessors),
                     resident = std::min<std::int64_t>(each, d.warps == 8 ? 2 : 3);
  const double under_way = static_cast<double>(resident * d.warps) * kBytesOfWarp;
  return static_cast<double>(each) * bytes / (kRate * std::min(1.0, under_way / kBytesUnderWay)) +
         (d.parts > 1 ? kClusterSeconds : 0) + 0.1e-6 * static_cast<double>(each);
}

// All splits that are possible, the ones that promise most first.
std::vector<ProductSplit> splits_of(const FewRows& f, const Card& card) {
  std::vector<ProductSplit> all;
  for (const std::int64_t row_tiles : {1, 2, 4})
    for (const std::int64_t warps : {8, 4})
      for (const std::int64_t parts : {1, 2, 4, 8}) {
        if (f.columns % (16 * row_tiles) != 0 || row_tiles * warps * f.row_groups() > 64) continue;
        if (parts > 1 && (!card.has_clusters() || f.depth < kPiece * warps * parts)) continue;
        all.push_back({row_tiles, warps, parts});
      }
  std::ranges::stable_sort(all, {},
                           [&](const ProductSplit& split) { return split_seconds(f, split, card.multiprocessors()); });
  return all;
}

// Whether nothing in the program writes the operand: it may be read before the kernels before have ended.
bool is_never_written(const Work& work, std::size_t operand) {
  for (const ProgramVariable& variable : work.program.variables)
    if (variable.value == work.instr.inputs[operand]) return !variable.update || *variable.update == variable.value;
  return false;
}

// `result`: where the product goes; null: to the maps of the epilogue.
void launch_split(const Work& work, const FewRows& f, const ProductSplit& d, void* result, const Epilogue& then = {}) {
  const DType dtype = work.outputs[0].dtype;
  std::vector<Param> params = {in(DType::kBF16, "w", f.w->data), in(DType::kBF16, "x", f.x->data),
                               number("depth", f.depth),         number("rows", f.rows),
                               number("w_step", f.w_step),       number("x_step", f.x_step),
                               number("y_row", f.out_row),       number("y_column", f.out_column)};
  std::string store = str("y[m * y_row + n * y_column] = put<", stored_type(dtype), ">(sum);\n");
  if (result) {
    params.push_back(out(dtype, "y", result));
  } else {
    params.insert(params.end(), then.params.begin(), then.params.end());
    store = str("const float a = keep<", stored_type(dtype), ">(sum);\nconst long long i = m * y_row + n * y_column;\n",
                then.text);
  }
  work.launch(
      f.columns / (16 * d.row_tiles) * d.parts, static_cast<int>(32 * d.warps), params,
      str("few_rows<", d.row_tiles, ", ", f.row_groups(), ", ", d.warps, ", ", d.parts, ", ",
          is_never_written(work, f.w_operand) ? "true" : "false",
          ">(w, x, (int)depth, (int)rows, w_step, x_step, [&](int m, long long n, float sum) {\n", store, "});\n"),
      {.cluster = static_cast<int>(d.parts), .waits = true});
}

// The fastest of the most promising, with a matrix that is not in the card's cache, as in a step.
ProductSplit timed_split(const Work& work, const FewRows& f, std::vector<ProductSplit> splits) {
  constexpr std::size_t kMostSplits = 9;
  constexpr int kRuns = 4;
  splits.resize(std::min(splits.size(), kMostSplits));
  const std::int64_t elements = (f.rows - 1) * f.out_row + (f.columns - 1) * f.out_column + 1;
  void* result = nullptr;
  if (cudaMalloc(&result, static_cast<std::size_t>(elements) * size_of(work.outputs[0].dtype)) != cudaSuccess) {
    cudaGetLastError();  // no room to try them
    return splits[0];
  }
  const std::shared_ptr<void> owner(result, [](void* memory) { cudaFree(memory); });
  KernelSet kernels;
  std::vector<Issue> issues;
  const Work trial{work.program, work.instr, work.inputs, work.outputs, work.processor, {}, work.card, kernels, issues};
  for (const ProductSplit& split : splits) launch_split(trial, f, split, result);
  kernels.compile(work.card.architecture());
  const cudaStream_t stream = work.card.stream();
  const CardTimer timer(stream);
  std::vector<float> least(splits.size(), 1e30F);
  for (int run = 0; run < kRuns; ++run)
    for (std::size_t i = 0; i < splits.size(); ++i) {
      check(cudaMemsetAsync(work.card.product_workspace(), 0, kProductWorkspace, stream), "cudaMemsetAsync");
      least[i] = std::min(least[i], timer.milliseconds([&] { issues[i](stream); }));
    }
  return splits[static_cast<std::size_t>(std::ranges::min_element(least) - least.begin())];
}

ProductSplit chosen_split(const Work& work, const FewRows& f) {
  const std::vector<ProductSplit> splits = splits_of(f, work.card);
  const std::string product = str("few,", f.rows, "x", f.columns, "x", f.depth, "+", f.w_step, ",", f.out_row, ",",
                                  f.out_column, ",", name_of(work.outputs[0].dtype));
  if (const auto known = work.card.tuning().find_split(product))
    for (const ProductSplit& split : splits)
      if (*known == Tuning::Split{static_cast<int>(split.row_tiles), static_cast<int>(split.warps),
                                  static_cast<int>(split.parts)})
        return split;
  const ProductSplit best = timed_split(work, f, splits);
  work.card.tuning().keep_split(
      product, {static_cast<int>(best.row_tiles), static_cast<int>(best.warps), static_cast<int>(best.parts)});
  return best;
}

std::optional<FewRows> few_rows_of(const Work& work) {
  const TensorView &x = work.inputs[0], &y = work.inputs[1], &d = work.outputs[0];
  return few_rows_of(work, matrix_form({x.shape, x.strides}, {y.shape, y.strides}, {d.shape, d.strides}));
}

}  // namespace

bool few_rows_product(const Work& work, const Epilogue* then) {
  const std::optional<FewRows> found = few_rows_of(work);
  if (!found) return false;
  const ProductSplit split = chosen_split(work, *found);
  if (then) launch_split(work, *found, split, nullptr, *then);
  else launch_split(work, *found, split, work.outputs[0].data);
  work.kernels.overlap();
  return true;
}

bool is_few_rows_product(const Work& work) { return few_rows_of(work).has_value(); }

}  // namespace weft::cuda
