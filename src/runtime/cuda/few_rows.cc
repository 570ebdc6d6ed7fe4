// d[m, n] = the sum over k of x[m, k] w[n, k], for few m. A block has 16 row_tiles columns of the result, of which its warps
// have a part of the depth each; with several parts, the blocks of a cluster share the depth and add up what they have in
// order, from each other's shared memory (few_rows of the prelude).
#include "runtime/cuda/few_rows.h"

#include <algorithm>
#include <optional>

#include "base/str.h"
#include "runtime/cuda/text.h"

namespace weft::cuda {

namespace {

constexpr std::int64_t kPiece = 32;  // numbers along the depth that a warp multiplies at a time

struct FewRows {
  const TensorView *x, *w;
  std::int64_t rows, columns, depth, x_step, w_step, out_row, out_column;

  std::int64_t row_groups() const { return divided_up(rows, 8); }
};

bool lies_in_words(const TensorView& view, std::int64_t step) {
  return reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0 && step % 8 == 0;
}

// x and w change places where the few rows are the second operand's.
std::optional<FewRows> few_rows_of(const Work& work, const MatrixForm& f) {
  const TensorView &x = work.inputs[0], &y = work.inputs[1], &d = work.outputs[0];
  const bool types = x.dtype == DType::kBF16 && y.dtype == DType::kBF16 &&
                     (d.dtype == DType::kBF16 || d.dtype == DType::kF32);
  if (!types || f.products() != 1 || f.k.x != 1 || f.k.y != 1 || f.k.size % kPiece != 0) return std::nullopt;
  FewRows found{&x, &y, f.m.size, f.n.size, f.k.size, f.m.x, f.n.y, f.m.out, f.n.out};
  if (found.rows > found.columns)
    found = {&y, &x, f.n.size, f.m.size, f.k.size, f.n.y, f.m.x, f.n.out, f.m.out};
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
  const std::int64_t each = divided_up(blocks, multiprocessors), resident = std::min<std::int64_t>(each, d.warps == 8 ? 2 : 3);
  const double under_way = static_cast<double>(resident * d.warps) * kBytesOfWarp;
  return static_cast<double>(each) * bytes / (kRate * std::min(1.0, under_way / kBytesUnderWay)) +
         (d.parts > 1 ? kClusterSeconds : 0) + 0.1e-6 * static_cast<double>(each);
}

ProductSplit best_split(const FewRows& f, const Card& card) {
  ProductSplit best;
  double least = 1e30;
  const bool has_clusters = card.has_clusters();
  for (const std::int64_t row_tiles : {1, 2, 4})
    for (const std::int64_t warps : {8, 4})
      for (const std::int64_t parts : {1, 2, 4, 8}) {
        const ProductSplit split{row_tiles, warps, parts};
        if (f.columns % (16 * row_tiles) != 0 || row_tiles * warps * f.row_groups() > 64) continue;
        if (parts > 1 && (!has_clusters || f.depth < kPiece * warps * parts)) continue;
        const double seconds = split_seconds(f, split, card.multiprocessors());
        if (seconds >= least) continue;
        least = seconds;
        best = split;
      }
  return best;
}

// Whether nothing in the program writes the operand: it may be read before the kernels before have ended.
bool is_never_written(const Work& work, const TensorView& operand) {
  const std::size_t i = &operand == &work.inputs[0] ? 0 : 1;
  for (const ProgramVariable& variable : work.program.variables)
    if (variable.value == work.instr.inputs[i]) return !variable.update || *variable.update == variable.value;
  return false;
}

}  // namespace

bool few_rows_product(const Work& work, const MatrixForm& form) {
  const std::optional<FewRows> found = few_rows_of(work, form);
  if (!found) return false;
  const FewRows& f = *found;
  const ProductSplit d = best_split(f, work.card);
  const TensorView& y = work.outputs[0];
  work.launch(f.columns / (16 * d.row_tiles) * d.parts, static_cast<int>(32 * d.warps),
              {in(DType::kBF16, "w", f.w->data), in(DType::kBF16, "x", f.x->data), out(y.dtype, "y", y.data),
               number("depth", f.depth), number("rows", f.rows), number("w_step", f.w_step), number("x_step", f.x_step),
               number("y_row", f.out_row), number("y_column", f.out_column)},
              str("few_rows<", d.row_tiles, ", ", f.row_groups(), ", ", d.warps, ", ", d.parts, ", ",
                  is_never_written(work, *f.w) ? "true" : "false", ">(w, x, y, (int)depth, (int)rows, w_step, x_step, y_row, y_column);\n"),
              {.cluster = static_cast<int>(d.parts), .waits = true});
  work.kernels.overlap();
  return true;
}

}  // namespace weft::cuda
