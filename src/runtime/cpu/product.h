// Products of matrices on one thread. Only product.cc knows oneDNN's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "weft/dtype.h"

namespace weft::cpu {

// c[m, n] = a[m, k] b[k, n], or c += a b. Strides in elements; each of a and b has a stride of 1, c's columns lie side by
// side.
struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t a_row = 0, a_column = 0, b_row = 0, b_column = 0, c_row = 0;
  DType in = DType::kF32, out = DType::kF32;
  bool adds = false;
  bool operator==(const ProductShape&) const = default;
};

// Whether there is a product of these: f32 or bf16 factors, results of the same or f32; i8 factors, results in i32.
bool has_product(DType in, DType out);

// Makes what oneDNN needs on this thread, so that the thread's first product allocates nothing of ours.
void prepare_thread();

// Made before the first step, one for each thread that uses it.
class Product {
 public:
  explicit Product(const ProductShape& shape);
  Product(Product&&) noexcept;
  Product& operator=(Product&&) noexcept;
  ~Product();

  std::size_t scratch_bytes() const;
  void run(const void* a, const void* b, void* c, void* scratch);

 private:
  struct Bound;
  std::unique_ptr<Bound> bound_;
};

}  // namespace weft::cpu
