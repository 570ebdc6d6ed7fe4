#include "runtime/cpu/product.h"

#include "base/str.h"
#include "runtime/cpu/onednn.h"
#include "weft/error.h"

namespace weft::cpu {

namespace {

using onednn::engine;

// A matrix of one row or column may have any stride there; oneDNN wants one that it could use.
dnnl::memory::desc matrix(std::int64_t rows, std::int64_t columns, std::int64_t row, std::int64_t column, DType dtype) {
  if (rows == 1 && column == 1) row = columns;
  if (columns == 1 && row == 1) column = rows;
  return {{rows, columns}, onednn::type_of(dtype), dnnl::memory::dims{row, column}};
}

}  // namespace

bool has_product(DType in, DType out) {
  return (in == DType::kF32 || in == DType::kBF16) && (out == in || out == DType::kF32);
}

struct Product::Bound {
  dnnl::matmul multiply;
  dnnl::memory a, b, c, scratch;
  std::size_t scratch_bytes = 0;
};

Product::Product(const ProductShape& s) : bound_(std::make_unique<Bound>()) {
  try {
    const auto a = matrix(s.m, s.k, s.a_row, s.a_column, s.in), b = matrix(s.k, s.n, s.b_row, s.b_column, s.in),
               c = matrix(s.m, s.n, s.c_row, 1, s.out);
    dnnl::primitive_attr attributes = onednn::attributes();
    dnnl::post_ops after;
    if (s.adds) after.append_sum(1);
    attributes.set_post_ops(after);
    onednn::stream_of_this_thread();
    const dnnl::matmul::primitive_desc made(dnnl::matmul::desc(a, b, c), attributes, engine());
    bound_->multiply = dnnl::matmul(made);
    bound_->scratch_bytes = made.scratchpad_desc().get_size();
    bound_->a = dnnl::memory(a, engine(), nullptr);
    bound_->b = dnnl::memory(b, engine(), nullptr);
    bound_->c = dnnl::memory(c, engine(), nullptr);
    bound_->scratch = dnnl::memory(made.scratchpad_desc(), engine(), nullptr);
  } catch (const dnnl::error& error) {
    throw InternalError(str("oneDNN makes no product of ", s.m, "x", s.k, " and ", s.k, "x", s.n, ": ", error.what()));
  }
}

Product::Product(Product&&) noexcept = default;
Product& Product::operator=(Product&&) noexcept = default;
Product::~Product() = default;

std::size_t Product::scratch_bytes() const { return bound_->scratch_bytes; }

void Product::run(const void* a, const void* b, void* c, void* scratch) {
  Bound& bound = *bound_;
  dnnl_memory_set_data_handle(bound.a.get(), const_cast<void*>(a));
  dnnl_memory_set_data_handle(bound.b.get(), const_cast<void*>(b));
  dnnl_memory_set_data_handle(bound.c.get(), c);
  dnnl_memory_set_data_handle(bound.scratch.get(), scratch);
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, bound.a.get()},
                                  {DNNL_ARG_WEIGHTS, bound.b.get()},
                                  {DNNL_ARG_DST, bound.c.get()},
                                  {DNNL_ARG_SCRATCHPAD, bound.scratch.get()}};
  onednn::run(bound.multiply, args, 4);
}

}  // namespace weft::cpu
