#include "runtime/cpu/product.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/str.h"
#include "runtime/cpu/few_rows.h"
#include "runtime/cpu/onednn.h"
#include "weft/error.h"

namespace weft::cpu {

namespace {

using onednn::engine;

// oneDNN has two kinds of products. One kind takes only dense matrices, and its scratch memory is ours. The other kind,
// "gemm", takes all. It may pack up to 384 rows and 9984 columns of b, in memory that it allocates in every run and that
// no caller can provide. So a product of this kind runs in parts of few columns, which is as fast: a part packs less than
// 3 MiB.
constexpr std::int64_t kMostColumns = 1344;
// Where the rows of b begin at multiples of 4 KiB, gemm packs all of b. Blocks of such a b are packed here instead, in
// scratch memory; gemm takes a packed block as it is.
constexpr std::int64_t kPackedStride = 1024, kPackedColumns = 768, kPackedRows = 512;
constexpr std::int64_t kFewestRows = 512;                  // of a, that are worth packing
constexpr std::int64_t kColumnGrain = 48, kRowGrain = 16;  // of a part

std::int64_t rounded_up(std::int64_t number, std::int64_t grain) { return (number + grain - 1) / grain * grain; }

// A matrix of one row or column may have any stride there; oneDNN wants one that it could use.
dnnl::memory::desc matrix(std::int64_t rows, std::int64_t columns, std::int64_t row, std::int64_t column, DType dtype) {
  if (rows == 1 && column == 1) row = columns;
  if (columns == 1 && row == 1) column = rows;
  return {{rows, columns}, onednn::type_of(dtype), dnnl::memory::dims{row, column}};
}

// A product as oneDNN has it.
struct Multiply {
  Multiply() = default;
  explicit Multiply(const ProductShape& s);
  void run(const void* a, const void* b, void* c, void* scratch);

  dnnl::matmul primitive;
  dnnl::memory of_a, of_b, of_c, of_scratch;
  std::size_t scratch_bytes = 0;
  bool is_gemm = false;
};

Multiply::Multiply(const ProductShape& s) {
  try {
    const auto a = matrix(s.m, s.k, s.a_row, s.a_column, s.in), b = matrix(s.k, s.n, s.b_row, s.b_column, s.in),
               c = matrix(s.m, s.n, s.c_row, 1, s.out);
    dnnl::primitive_attr attributes = onednn::attributes();
    dnnl::post_ops after;
    if (s.adds) after.append_sum(1);
    attributes.set_post_ops(after);
    onednn::stream_of_this_thread();
    const dnnl::matmul::primitive_desc made(dnnl::matmul::desc(a, b, c), attributes, engine());
    primitive = dnnl::matmul(made);
    scratch_bytes = made.scratchpad_desc().get_size();
    is_gemm = std::string_view(made.impl_info_str()).starts_with("gemm");
    of_a = dnnl::memory(a, engine(), nullptr);
    of_b = dnnl::memory(b, engine(), nullptr);
    of_c = dnnl::memory(c, engine(), nullptr);
    of_scratch = dnnl::memory(made.scratchpad_desc(), engine(), nullptr);
  } catch (const dnnl::error& error) {
    throw InternalError(str("oneDNN makes no product of ", s.m, "x", s.k, " and ", s.k, "x", s.n, ": ", error.what()));
  }
}

void Multiply::run(const void* a, const void* b, void* c, void* scratch) {
  dnnl_memory_set_data_handle(of_a.get(), const_cast<void*>(a));
  dnnl_memory_set_data_handle(of_b.get(), const_cast<void*>(b));
  dnnl_memory_set_data_handle(of_c.get(), c);
  dnnl_memory_set_data_handle(of_scratch.get(), scratch);
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, of_a.get()},
                                  {DNNL_ARG_WEIGHTS, of_b.get()},
                                  {DNNL_ARG_DST, of_c.get()},
                                  {DNNL_ARG_SCRATCHPAD, of_scratch.get()}};
  onednn::run(primitive, args, 4);
}

// The parts of a length; the last may be shorter.
struct Parts {
  std::int64_t count = 1, size = 0, last = 0;
  std::int64_t size_of_part(std::int64_t i) const { return i + 1 == count ? last : size; }
};

Parts parts_of(std::int64_t length, std::int64_t most, std::int64_t grain) {
  if (length <= most) return {1, length, length};
  const std::int64_t count = rounded_up(length, most) / most;
  const std::int64_t size = rounded_up(rounded_up(length, count) / count, grain);
  return {count, size, length - (count - 1) * size};
}

// Packed blocks add to c in parts of the sum, which only f32 holds without rounding.
bool is_packed(const ProductShape& s) {
  return s.in == DType::kF32 && s.b_column == 1 && s.b_row % kPackedStride == 0 && s.m >= kFewestRows;
}

}  // namespace

bool has_product(DType in, DType out) {
  if (in == DType::kI8) return out == DType::kI32;
  return (in == DType::kF32 || in == DType::kBF16) && (out == in || out == DType::kF32);
}

void prepare_thread() { onednn::stream_of_this_thread(); }

struct Product::Bound {
  ProductShape shape;
  Parts columns, rows;  // of b
  bool packs = false;
  bool few_rows = false;  // made by few_rows.h
  std::size_t packed_bytes = 0, scratch_bytes = 0;  // of a packed block, and of all scratch memory
  Multiply multiply[2][3];                          // the last columns and the others; the first, inner and last rows

  Multiply& at(std::int64_t column, std::int64_t row) {
    return multiply[column + 1 < columns.count][row == 0 ? 0 : row + 1 < rows.count ? 1 : 2];
  }
  void make_parts();
  const std::byte* packed(const std::byte* b, std::int64_t rows, std::int64_t columns, std::byte* to) const;
};

void Product::Bound::make_parts() {
  packs = is_packed(shape);
  columns = parts_of(shape.n, packs ? kPackedColumns : kMostColumns, kColumnGrain);
  if (packs) rows = parts_of(shape.k, kPackedRows, kRowGrain);
  ProductShape part = shape;
  if (packs) part.b_row = columns.size;
  if (packs) packed_bytes = static_cast<std::size_t>(rounded_up(rows.size * columns.size, kRowGrain)) * sizeof(float);
  for (std::int64_t i = std::max<std::int64_t>(columns.count - 2, 0); i < columns.count; ++i)
    for (const std::int64_t j : {std::int64_t{0}, std::int64_t{1}, rows.count - 1}) {
      if (j >= rows.count) continue;
      part.n = columns.size_of_part(i), part.k = rows.size_of_part(j), part.adds = shape.adds || j > 0;
      at(i, j) = Multiply(part);
      scratch_bytes = std::max(scratch_bytes, packed_bytes + at(i, j).scratch_bytes);
    }
}

const std::byte* Product::Bound::packed(const std::byte* b, std::int64_t count, std::int64_t width,
                                        std::byte* to) const {
  const std::size_t step = static_cast<std::size_t>(shape.b_row) * sizeof(float),
                    packed_step = static_cast<std::size_t>(columns.size) * sizeof(float),
                    bytes = static_cast<std::size_t>(width) * sizeof(float);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
    std::memcpy(to + i * packed_step, b + i * step, bytes);
  return to;
}

Product::Product(const ProductShape& s) : bound_(std::make_unique<Bound>()) {
  Bound& bound = *bound_;
  bound.shape = s;
  bound.few_rows = has_few_rows_product(s);
  if (bound.few_rows) {
    bound.scratch_bytes = few_rows_scratch_bytes(s);
    return;
  }
  bound.columns = {1, s.n, s.n};
  bound.rows = {1, s.k, s.k};
  bound.at(0, 0) = Multiply(s);
  bound.scratch_bytes = bound.at(0, 0).scratch_bytes;
  if (bound.at(0, 0).is_gemm) bound.make_parts();
}

Product::Product(Product&&) noexcept = default;
Product& Product::operator=(Product&&) noexcept = default;
Product::~Product() = default;

std::size_t Product::scratch_bytes() const { return bound_->scratch_bytes; }

void Product::run(const void* a, const void* b, void* c, void* scratch) {
  Bound& bound = *bound_;
  const ProductShape& s = bound.shape;
  if (bound.few_rows) return few_rows_product(s, a, b, c, scratch);
  const std::int64_t in = static_cast<std::int64_t>(size_of(s.in)), out = static_cast<std::int64_t>(size_of(s.out));
  const Parts &columns = bound.columns, &rows = bound.rows;
  std::byte* const memory = static_cast<std::byte*>(scratch);
  for (std::int64_t i = 0; i < columns.count; ++i)
    for (std::int64_t j = 0; j < rows.count; ++j) {
      const std::int64_t column = i * columns.size, row = j * rows.size;
      const std::byte* part = static_cast<const std::byte*>(b) + in * (row * s.b_row + column * s.b_column);
      if (bound.packs) part = bound.packed(part, rows.size_of_part(j), columns.size_of_part(i), memory);
      bound.at(i, j).run(static_cast<const std::byte*>(a) + in * row * s.a_column, part,
                         static_cast<std::byte*>(c) + out * column, memory + bound.packed_bytes);
    }
}

}  // namespace weft::cpu
