#include "runtime/cuda/products.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>

#include "base/str.h"
#include "program/matrix_form.h"
#include "runtime/cuda/card_timer.h"
#include "runtime/cuda/few_rows.h"
#include "runtime/cuda/text.h"
#include "runtime/host/host_clock.h"
#include "runtime/host/strided.h"
#include "weft/error.h"

namespace weft::cuda {

namespace {

constexpr int kMostCandidates = 8, kTimings = 3;  // algorithms that are timed, and how often
constexpr std::int64_t kMostCalls = 64;  // of the library for one contraction; beyond that one kernel does it

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32: return CUDA_R_32F;
    case DType::kBF16: return CUDA_R_16BF;
    case DType::kF16: return CUDA_R_16F;
    default: return CUDA_R_64F;
  }
}

// A matrix as the library sees it: columns first, `step` elements from column to column.
struct Matrix {
  std::int64_t rows = 1, columns = 1, step = 1;
  bool turned = false;  // it is used transposed
};

// rows x columns with these strides, one of which is 1 unless there is just one along it. What is used is rows x columns.
Matrix matrix(std::int64_t rows, std::int64_t row, std::int64_t columns, std::int64_t column) {
  if (rows == 1 || row == 1) return {rows, columns, std::max(columns == 1 ? rows : column, rows), false};
  return {columns, rows, std::max(rows == 1 ? columns : row, columns), true};
}

bool has_unit(std::int64_t rows, std::int64_t row, std::int64_t columns, std::int64_t column) {
  return rows == 1 || row == 1 || columns == 1 || column == 1;
}

// One call: d = a b (+ d), for `count` matrices at even distances.
class Product {
 public:
  struct Shape {
    Matrix a, b, d;
    DType in, out;
    std::int64_t count = 1, a_step = 0, b_step = 0, d_step = 0;
  };

  // `a` and `b`: matrices to time algorithms with; null: the library's first choice is taken.
  Product(Card& card, const Shape& shape, std::size_t alignment, const void* a = nullptr, const void* b = nullptr)
      : card_(card), shape_(shape) {
    const bool wide = shape.in == DType::kF64;
    check(cublasLtMatmulDescCreate(&operation_, wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                   wide ? CUDA_R_64F : CUDA_R_32F),
          "cublasLtMatmulDescCreate");
    const auto turn = [&](cublasLtMatmulDescAttributes_t which, const Matrix& m) {
      const cublasOperation_t how = m.turned ? CUBLAS_OP_T : CUBLAS_OP_N;
      check(cublasLtMatmulDescSetAttribute(operation_, which, &how, sizeof how), "cublasLtMatmulDescSetAttribute");
    };
    turn(CUBLASLT_MATMUL_DESC_TRANSA, shape.a);
    turn(CUBLASLT_MATMUL_DESC_TRANSB, shape.b);
    describe(a_, shape.a, shape.in, shape.a_step);
    describe(b_, shape.b, shape.in, shape.b_step);
    describe(d_, shape.d, shape.out, shape.d_step);
    choose(alignment, a, b);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  ~Product() {
    for (const cublasLtMatrixLayout_t layout : {a_, b_, d_})
      if (layout) cublasLtMatrixLayoutDestroy(layout);
    if (operation_) cublasLtMatmulDescDestroy(operation_);
  }

  void run(const void* a, const void* b, void* d, bool adds, cudaStream_t stream) const {
    check(run_with(algorithm_, a, b, d, adds, stream), "cublasLtMatmul");
  }

 private:
  cublasStatus_t run_with(const cublasLtMatmulAlgo_t& algorithm, const void* a, const void* b, void* d, bool adds,
                          cudaStream_t stream) const {
    const double one = 1, beta = adds ? 1 : 0;
    const float one_f = 1, beta_f = adds ? 1 : 0;
    const bool wide = shape_.in == DType::kF64;
    return cublasLtMatmul(card_.products(), operation_, wide ? static_cast<const void*>(&one) : &one_f, a, a_, b, b_,
                          wide ? static_cast<const void*>(&beta) : &beta_f, d, d_, d, d_, &algorithm,
                          card_.product_workspace(), kProductWorkspace, stream);
  }

  void describe(cublasLtMatrixLayout_t& layout, const Matrix& m, DType dtype, std::int64_t step) const {
    check(cublasLtMatrixLayoutCreate(&layout, type_of(dtype), static_cast<std::uint64_t>(m.rows),
                                     static_cast<std::uint64_t>(m.columns), m.step),
          "cublasLtMatrixLayoutCreate");
    const auto count = static_cast<std::int32_t>(shape_.count);
    check(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
          "cublasLtMatrixLayoutSetAttribute");
    check(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step),
          "cublasLtMatrixLayoutSetAttribute");
  }

  // What decides about algorithms, as one word.
  std::string text(std::size_t alignment) const {
    const auto of = [](const Matrix& m, std::int64_t step) {
      return str(m.rows, "x", m.columns, "+", m.step, m.turned ? "t" : "n", step);
    };
    return str(of(shape_.a, shape_.a_step), ",", of(shape_.b, shape_.b_step), ",", of(shape_.d, shape_.d_step), ",",
               name_of(shape_.in), ",", name_of(shape_.out), ",", shape_.count, ",", alignment);
  }

  void choose(std::size_t alignment, const void* a, const void* b) {
    const std::string product = text(alignment);
    if (const std::optional<cublasLtMatmulAlgo_t> known = card_.tuning().find(product)) {
      algorithm_ = *known;
      if (is_possible()) return;
    }
    const std::vector<cublasLtMatmulAlgo_t> found = candidates(alignment, a ? kMostCandidates : 1);
    algorithm_ = found[0];
    if (!a) return;
    if (found.size() > 1) choose_fastest(found, a, b);
    card_.tuning().keep(product, algorithm_);
  }

  // Whether the library still takes an algorithm that a file names.
  bool is_possible() const {
    cublasLtMatmulHeuristicResult_t result{};
    return cublasLtMatmulAlgoCheck(card_.products(), operation_, a_, b_, d_, d_, &algorithm_, &result) ==
               CUBLAS_STATUS_SUCCESS &&
           result.workspaceSize <= kProductWorkspace;
  }

  std::size_t result_bytes() const {
    const std::int64_t elements =
        (shape_.count - 1) * shape_.d_step + (shape_.d.columns - 1) * shape_.d.step + shape_.d.rows;
    return static_cast<std::size_t>(elements) * size_of(shape_.out);
  }

  // Results go to memory of their own, since operands and results of other programs may lie where ours will.
  void choose_fastest(const std::vector<cublasLtMatmulAlgo_t>& found, const void* a, const void* b) {
    void* d = nullptr;
    if (cudaMalloc(&d, result_bytes()) != cudaSuccess) {
      cudaGetLastError();  // no room to try them
      return;
    }
    const std::shared_ptr<void> owner(d, [](void* memory) { cudaFree(memory); });
    const CardTimer timer(card_.stream());
    float best = std::numeric_limits<float>::max();
    for (const cublasLtMatmulAlgo_t& algorithm : found) {
      const auto run = [&] { return run_with(algorithm, a, b, d, false, card_.stream()) == CUBLAS_STATUS_SUCCESS; };
      if (!run()) continue;
      float own = std::numeric_limits<float>::max();
      for (int i = 0; i < kTimings; ++i) own = std::min(own, timer.milliseconds([&] { run(); }));
      if (own >= best) continue;
      best = own;
      algorithm_ = algorithm;
    }
  }

  std::vector<cublasLtMatmulAlgo_t> candidates(std::size_t alignment, int most) const {
    cublasLtMatmulPreference_t preference = nullptr;
    check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t which, const auto& value) {
      check(cublasLtMatmulPreferenceSetAttribute(preference, which, &value, sizeof value),
            "cublasLtMatmulPreferenceSetAttribute");
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kProductWorkspace);
    const auto least = static_cast<std::uint32_t>(alignment);
    for (const auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                             CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      set(which, least);
    std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<std::size_t>(most));
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(card_.products(), operation_, a_, b_, d_, d_,
                                                                 preference, most, found.data(), &count);
    cublasLtMatmulPreferenceDestroy(preference);
    check(status, "cublasLtMatmulAlgoGetHeuristic");
    if (count == 0) check(CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmulAlgoGetHeuristic");
    std::vector<cublasLtMatmulAlgo_t> algorithms;
    for (int i = 0; i < count; ++i) algorithms.push_back(found[static_cast<std::size_t>(i)].algo);
    return algorithms;
  }

  Card& card_;
  const Shape shape_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
};

struct Plan {
  MatrixForm form;
  DimRun batch;  // the outer run that one call does
  bool by_library = false;
};

Plan plan_of(const Work& work) {
  const TensorView &x = work.inputs[0], &y = work.inputs[1], &d = work.outputs[0];
  Plan plan{matrix_form({x.shape, x.strides}, {y.shape, y.strides}, {d.shape, d.strides}), {}, false};
  MatrixForm& form = plan.form;
  const auto largest = std::max_element(form.outer.begin(), form.outer.end(),
                                        [](const DimRun& a, const DimRun& b) { return a.size < b.size; });
  if (largest != form.outer.end()) {
    plan.batch = *largest;
    form.outer.erase(largest);
    form.outers /= plan.batch.size;
  }
  const bool types = is_float(d.dtype) && x.dtype == y.dtype && (d.dtype == x.dtype || d.dtype == DType::kF32) &&
                     !(x.dtype == DType::kF64 && d.dtype != DType::kF64);
  const bool sums = form.sums == 1 || d.dtype == DType::kF32 || d.dtype == DType::kF64;
  const bool units = has_unit(form.m.size, form.m.x, form.k.size, form.k.x) &&
                     has_unit(form.k.size, form.k.y, form.n.size, form.n.y) &&
                     has_unit(form.m.size, form.m.out, form.n.size, form.n.out);
  plan.by_library = types && sums && units && form.products() <= kMostCalls && plan.batch.size < (1 << 30);
  return plan;
}

// The largest power of two, up to 256, that divides all addresses.
std::size_t alignment_of(const std::vector<const void*>& places) {
  std::size_t alignment = 256;
  for (const void* place : places)
    while (reinterpret_cast<std::uintptr_t>(place) % alignment != 0) alignment /= 2;
  return alignment;
}

void by_library(const Work& work, const Plan& plan) {
  const TensorView &x = work.inputs[0], &y = work.inputs[1], &d = work.outputs[0];
  const MatrixForm& f = plan.form;
  const DimRun &m = f.m, &n = f.n, &k = f.k;
  // The library writes columns: rows of ours. Where out's rows lie side by side instead, the factors change places.
  const bool plain = n.size == 1 ? m.size == 1 || m.out != 1 : n.out == 1;
  Product::Shape shape{.a = plain ? matrix(n.size, n.y, k.size, k.y) : matrix(m.size, m.x, k.size, k.x),
                       .b = plain ? matrix(k.size, k.x, m.size, m.x) : matrix(k.size, k.y, n.size, n.y),
                       .d = plain ? matrix(n.size, n.out, m.size, m.out) : matrix(m.size, m.out, n.size, n.out),
                       .in = x.dtype,
                       .out = d.dtype,
                       .count = plan.batch.size,
                       .a_step = plain ? plan.batch.y : plan.batch.x,
                       .b_step = plain ? plan.batch.x : plan.batch.y,
                       .d_step = plan.batch.out};
  internal_check(!shape.d.turned, "a product's result that lies across");
  const auto at = [](const TensorView& view, std::int64_t offset) {
    return static_cast<std::byte*>(view.data) + offset * static_cast<std::int64_t>(size_of(view.dtype));
  };
  struct Call {
    const void *a, *b;
    void* d;
    bool adds;
  };
  std::vector<Call> calls;
  std::vector<const void*> places = {at(x, plan.batch.x), at(y, plan.batch.y), at(d, plan.batch.out)};
  for (std::int64_t o = 0; o < f.outers; ++o)
    for (std::int64_t s = 0; s < f.sums; ++s) {
      const Offsets outer = offsets_at(f.outer, o), sum = offsets_at(f.summed, s);
      const void *left = at(x, outer.x + sum.x), *right = at(y, outer.y + sum.y);
      void* result = at(d, outer.out + sum.out);
      calls.push_back({plain ? right : left, plain ? left : right, result, s > 0});
      places.insert(places.end(), {left, right, result});
    }
  const auto product =
      std::make_shared<Product>(work.card, shape, alignment_of(places), calls.front().a, calls.front().b);
  work.call([product, calls](cudaStream_t stream) {
    for (const Call& call : calls) product->run(call.a, call.b, call.d, call.adds, stream);
  });
}

// One thread per result: correct for every dtype and layout.
void by_kernel(const Work& work) {
  const TensorView &x = work.inputs[0], &y = work.inputs[1], &d = work.outputs[0];
  std::vector<Dim> outer(d.shape.begin(), d.shape.end()), summed;
  for (const Dim& dim : x.shape)
    if (!d.shape.has(dim.name)) summed.push_back(dim);
  const std::vector<Run> results = joined_runs(
      outer, {strides_along(x, Shape(outer)), strides_along(y, Shape(outer)), strides_along(d, Shape(outer))});
  const std::vector<Run> sums = joined_runs(summed, {strides_along(x, Shape(summed)), strides_along(y, Shape(summed))});
  std::int64_t count = 1;
  for (const Dim& dim : summed) count *= dim.size;
  const char* wide = wide_type(d.dtype);
  const std::string product =
      is_float(d.dtype) ? str("sum += (", wide, ")get(x[ox + ", offset_text(sums, 0, "k"), "]) * (", wide,
                              ")get(y[oy + ", offset_text(sums, 1, "k"), "]);\n")
                        : str("sum = (long long)((unsigned long long)sum + (unsigned long long)widen(get(x[ox + ",
                              offset_text(sums, 0, "k"), "])) * (unsigned long long)widen(get(y[oy + ",
                              offset_text(sums, 1, "k"), "])));\n");
  launch_per_element(
      work, d.shape.elements(), {in(x.dtype, "x", x.data), in(y.dtype, "y", y.data), out(d.dtype, "d", d.data)},
      str("const long long ox = ", offset_text(results, 0, "i"), ", oy = ", offset_text(results, 1, "i"), ";\n", wide,
          " sum = 0;\nfor (long long k = 0; k < ", count, "ll; ++k) ", product, "d[", offset_text(results, 2, "i"),
          "] = put<", stored_type(d.dtype), ">(narrow<", stored_type(d.dtype), ">(sum));\n"));
}

}  // namespace

void contract(const Work& work) {
  if (few_rows_product(work)) return;
  const Plan plan = plan_of(work);
  if (plan.by_library) by_library(work, plan);
  else by_kernel(work);
}

Roofs measure_card(Card& card) {
  constexpr std::int64_t kSide = 4096;
  constexpr std::size_t kBytes = kSide * kSide * sizeof(float);
  std::array<std::shared_ptr<void>, 3> memory;
  for (std::shared_ptr<void>& one : memory) {
    void* data = nullptr;
    check(cudaMalloc(&data, kBytes), "cudaMalloc");
    one = {data, [](void* place) { cudaFree(place); }};
    check(cudaMemsetAsync(data, 0, kBytes, card.stream()), "cudaMemsetAsync");
  }
  const Matrix square = matrix(kSide, 1, kSide, kSide);
  const Product product(card, {.a = square, .b = square, .d = square, .in = DType::kF32, .out = DType::kF32}, 256);
  const auto best_seconds = [&](const Issue& issue) {
    double best = 1e30;
    for (int i = 0; i < 5; ++i) {
      const std::int64_t begin = host_now();
      issue(card.stream());
      check(cudaStreamSynchronize(card.stream()), "cudaStreamSynchronize");
      best = std::min(best, static_cast<double>(host_now() - begin) * 1e-9);
    }
    return best;
  };
  best_seconds([](cudaStream_t) {});  // waits for the zeros
  const double product_seconds = best_seconds(
      [&](cudaStream_t stream) { product.run(memory[0].get(), memory[1].get(), memory[2].get(), false, stream); });
  constexpr int kCopies = 16;  // so that the launch does not count
  const double copy_seconds = best_seconds([&](cudaStream_t stream) {
    for (int i = 0; i < kCopies; ++i)
      check(cudaMemcpyAsync(memory[0].get(), memory[1].get(), kBytes, cudaMemcpyDeviceToDevice, stream),
            "cudaMemcpyAsync");
  });
  return {.flops_per_second = 2.0 * kSide * kSide * kSide / product_seconds,
          .bytes_per_second = 2.0 * kCopies * static_cast<double>(kBytes) / copy_seconds};
}

}  // namespace weft::cuda
