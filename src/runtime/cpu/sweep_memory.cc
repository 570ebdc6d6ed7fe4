// The memory that a sweep reads besides its registers: numbers made when it is bound, and memory that is fetched ahead.
#include <algorithm>
#include <tuple>

#include "base/dispatch.h"
#include "base/index.h"
#include "runtime/cpu/sweep.h"
#include "weft/error.h"

namespace weft::cpu {

std::pair<std::int64_t, std::int64_t> radix_of(const std::vector<Dim>& dims, const std::string& name) {
  std::int64_t inner = 1;
  for (std::size_t d = dims.size(); d-- > 0; inner *= dims[d].size)
    if (dims[d].name == name) return {inner, dims[d].size};
  throw InternalError("an index along a dim that is not in the sweep");
}

std::size_t add_table(std::vector<std::byte>& table, const Term& leaf, const std::vector<Dim>& cols) {
  const Lane lane = lane_of(leaf.dtype);
  const auto size = static_cast<std::int64_t>(size_of(lane));
  const bool is_index = leaf.kind == Term::Kind::kIndex;
  std::int64_t count = 1, inner = 1, extent = 1;
  if (is_index) {
    for (const Dim& dim : cols) count *= dim.size;
    std::tie(inner, extent) = radix_of(cols, leaf.dim);
  }
  const std::size_t offset = table.size();
  table.resize(offset + static_cast<std::size_t>((count * size + 63) / 64 * 64));
  std::byte* to = table.data() + offset;
  for (std::int64_t c = 0; c < count; ++c) {
    const Number number = is_index ? Number(leaf.begin + c / inner % extent) : leaf.literal;
    if (is_float(leaf.dtype)) set_lane(lane, to + c * size, rounded(number.real(), leaf.dtype));
    else set_lane(lane, to + c * size, from_number<std::int64_t>(number));
  }
  return offset;
}

void find_streams(BoundSweep& bound, const Terms& terms, std::size_t operands) {
  constexpr std::int64_t kCached = 1 << 19;  // bytes that are near anyway
  constexpr std::int64_t kWide = 4096;       // elements of a row that the machine sees coming
  std::int64_t bytes = 0;
  std::vector<const void*> seen;
  const auto add = [&](std::size_t access, Extent extent) {
    const Access& a = bound.accesses[access];
    const bool known = std::ranges::find(seen, a.data()) != seen.end();
    if (extent != Extent::kFull || !a.is_dense_in_columns() || known) return;
    seen.push_back(a.data());
    bytes += bound.rows * bound.cols * a.element_bytes();
    bound.streams.push_back(static_cast<int>(access));
  };
  for (const Term& term : terms.all)
    if (term.kind == Term::Kind::kOperand) add(at(term.operand), term.extent);
  for (std::size_t k = 0; k < terms.outputs.size(); ++k) add(operands + k, terms.all[at(terms.outputs[k])].extent);
  const bool few = bound.streams.size() < 2 || bound.steps.size() < 4;
  if (bytes < kCached || few || bound.tile_rows * bound.tile_cols > kWide) bound.streams.clear();
}

}  // namespace weft::cpu
