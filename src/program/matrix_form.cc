#include "program/matrix_form.h"

#include <algorithm>

namespace weft {

namespace {

std::int64_t stride(const Strided& view, const Dim& dim) {
  const auto at = view.shape.find(dim.name);
  return at ? view.strides[*at] : 0;
}

// The dim joins the run before it where all operands step from one to the other evenly.
void append(std::vector<DimRun>& runs, const DimRun& dim) {
  if (dim.size == 1) return;
  if (!runs.empty()) {
    DimRun& last = runs.back();
    if (last.x == dim.x * dim.size && last.y == dim.y * dim.size && last.out == dim.out * dim.size) {
      last = {last.size * dim.size, dim.x, dim.y, dim.out};
      return;
    }
  }
  runs.push_back(dim);
}

// Takes the best run out of the list: one that `prefers`, else the largest.
template <class Prefers>
DimRun take(std::vector<DimRun>& runs, const Prefers& prefers) {
  if (runs.empty()) return {};
  const auto best = std::max_element(runs.begin(), runs.end(), [&](const DimRun& a, const DimRun& b) {
    return prefers(a) != prefers(b) ? prefers(b) : a.size < b.size;
  });
  const DimRun run = *best;
  runs.erase(best);
  return run;
}

bool is_plain(std::int64_t rows, std::int64_t row, std::int64_t columns, std::int64_t column) {
  return column == 1 || row == 1 || (columns == 1 && rows == 1);
}

}  // namespace

MatrixForm matrix_form(const Strided& x, const Strided& y, const Strided& out) {
  std::vector<DimRun> batch, m, n, k;
  for (const Dim& dim : out.shape) {
    const bool in_x = x.shape.has(dim.name), in_y = y.shape.has(dim.name);
    append(in_x && in_y ? batch : in_x ? m : n, {dim.size, stride(x, dim), stride(y, dim), stride(out, dim)});
  }
  for (const Dim& dim : x.shape)
    if (!out.shape.has(dim.name)) append(k, {dim.size, stride(x, dim), stride(y, dim), 0});

  MatrixForm form;
  form.m = take(m, [](const DimRun& run) { return run.out == 1; });
  form.n = take(n, [](const DimRun& run) { return run.out == 1; });
  form.k = take(k, [](const DimRun& run) { return run.x == 1 || run.y == 1; });
  form.outer = std::move(batch);
  form.outer.insert(form.outer.end(), m.begin(), m.end());
  form.outer.insert(form.outer.end(), n.begin(), n.end());
  form.summed = std::move(k);
  for (const DimRun& run : form.outer) form.outers *= run.size;
  for (const DimRun& run : form.summed) form.sums *= run.size;
  form.x_plain = is_plain(form.m.size, form.m.x, form.k.size, form.k.x);
  form.y_plain = is_plain(form.k.size, form.k.y, form.n.size, form.n.y);
  form.out_plain = is_plain(form.m.size, form.m.out, form.n.size, form.n.out);
  return form;
}

bool lies_in_panels(const MatrixForm& form, std::int64_t lanes, std::int64_t word) {
  const DimRun &n = form.n, &k = form.k;
  if (word == 0 || n.size != lanes || n.y != word || n.out != 1) return false;
  if (word == 1) return form.sums == 1 && k.x == 1 && k.y == lanes;
  if (k.size != word || k.x != 1 || k.y != 1 || form.summed.size() != 1) return false;
  return form.summed[0].x == word && form.summed[0].y == word * lanes;
}

std::int64_t numbers_of_word(DType dtype) { return static_cast<std::int64_t>(4 / size_of(dtype)); }

Offsets offsets_at(const std::vector<DimRun>& runs, std::int64_t i) {
  Offsets at;
  for (std::size_t r = runs.size(); r-- > 0;) {
    const std::int64_t index = i % runs[r].size;
    i /= runs[r].size;
    at.x += index * runs[r].x;
    at.y += index * runs[r].y;
    at.out += index * runs[r].out;
  }
  return at;
}

}  // namespace weft
