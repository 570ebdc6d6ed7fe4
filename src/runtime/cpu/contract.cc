// contract: every worker multiplies a share of the rows (columns, or products) on one thread. Operands
// without a plain matrix form are packed first.
#include <algorithm>
#include <memory>

#include "base/index.h"
#include "program/matrix_form.h"
#include "runtime/cpu/kernels.h"
#include "runtime/cpu/panel_contract.h"
#include "runtime/cpu/product.h"
#include "runtime/cpu/strided_copy.h"
#include "runtime/reference/kernels.h"
#include "weft/error.h"

namespace weft::cpu {

namespace {

constexpr std::int64_t kFewest = 1 << 17;  // multiplications that are worth another worker
constexpr std::int64_t kGrain = 16;        // rows or columns of a share
// With few rows and a large y, workers share the columns, so that each element of y is read by one worker.
constexpr std::int64_t kFewRows = 256, kLarge = 1 << 16;

MatrixForm form_of(const TensorView& x, const TensorView& y, const TensorView& out) {
  return matrix_form({x.shape, x.strides}, {y.shape, y.strides}, {out.shape, out.strides});
}

// Whether Product takes it as it is, or seen the other way round: with the columns side by side.
bool is_product(const MatrixForm& form, DType dtype) {
  if (dtype == DType::kI8 && (form.k.x != 1 || form.k.y != 1)) return false;  // kernels of i8 read along k
  const DimRun& columns = form.n.out != 1 && form.m.out == 1 ? form.m : form.n;
  return form.x_plain && form.y_plain && (columns.size == 1 || columns.out == 1);
}

// A worker's part of every product, and the products it makes.
struct Part {
  Share outer;
  Share rows, columns;
  std::vector<Product> products;  // the first of a sum, and the one that adds
};

class ContractKernel {
 public:
  ContractKernel(const TensorView& x, const TensorView& y, const TensorView& out, Workers& workers)
      : form_(form_of(x, y, out)), x_(x), y_(y), out_(out), workers_(workers) {
    // The columns lie side by side: else the product is seen the other way round.
    if (form_.n.out != 1 && form_.m.out == 1) flip();
    divide();
  }

  void run() {
    if (sharing_ == 1) run_part(0);  // nobody else is woken
    else workers_.run([this](int worker) { run_part(worker); });
  }

 private:
  void flip() {
    std::swap(form_.m, form_.n);
    std::swap(x_, y_);
    std::swap(form_.x_plain, form_.y_plain);
    const auto swap_strides = [](DimRun& run) { std::swap(run.x, run.y); };
    for (DimRun* run : {&form_.m, &form_.n, &form_.k}) swap_strides(*run);
    for (DimRun& run : form_.outer) swap_strides(run);
    for (DimRun& run : form_.summed) swap_strides(run);
  }

  // Rows are divided if x lies by rows, so that a worker keeps its rows from instruction to instruction; else the longer
  // side.
  void divide() {
    const std::int64_t m = form_.m.size, n = form_.n.size, k = form_.k.size;
    const double operation = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
                             static_cast<double>(form_.outers * form_.sums);
    const int sharing = static_cast<int>(std::clamp(operation / kFewest, 1.0, static_cast<double>(workers_.size())));
    sharing_ = sharing;
    const bool by_outer = form_.outers >= 2 * sharing || form_.outers % sharing == 0;
    const bool reads_y_once = m <= kFewRows && n * k >= kLarge;
    const bool by_rows = (form_.k.x == 1 && m >= sharing * kGrain && !reads_y_once) || m >= n;
    for (int worker = 0; worker < workers_.size(); ++worker) {
      Part part{{0, form_.outers}, {0, m}, {0, n}, {}};
      Share& share = by_outer ? part.outer : by_rows ? part.rows : part.columns;
      share = worker < sharing ? share_of(share.end, worker, sharing, by_outer ? 1 : kGrain) : Share{};
      if (!share.empty()) make_products(part);
      parts_.push_back(std::move(part));
    }
  }

  void make_products(Part& part) {
    ProductShape shape{.m = part.rows.end - part.rows.begin,
                       .n = part.columns.end - part.columns.begin,
                       .k = form_.k.size,
                       .a_row = form_.m.x,
                       .a_column = form_.k.x,
                       .b_row = form_.k.y,
                       .b_column = form_.n.y,
                       .c_row = form_.m.out,
                       .in = x_.dtype,
                       .out = out_.dtype};
    part.products.emplace_back(shape);
    shape.adds = true;
    if (form_.sums > 1) part.products.emplace_back(shape);
    for (const Product& product : part.products) workers_.reserve(product.scratch_bytes());
  }

  void run_part(int worker) {
    Part& part = parts_[at(worker)];
    if (part.products.empty()) return;
    const std::int64_t in = static_cast<std::int64_t>(size_of(x_.dtype)),
                       made = static_cast<std::int64_t>(size_of(out_.dtype));
    for (std::int64_t i = part.outer.begin; i < part.outer.end; ++i) {
      const Offsets at = offsets_at(form_.outer, i);
      for (std::int64_t j = 0; j < form_.sums; ++j) {
        const Offsets term = offsets_at(form_.summed, j);
        part.products[j == 0 ? 0 : 1].run(
            static_cast<const std::byte*>(x_.data) + in * (at.x + term.x + part.rows.begin * form_.m.x),
            static_cast<const std::byte*>(y_.data) + in * (at.y + term.y + part.columns.begin * form_.n.y),
            static_cast<std::byte*>(out_.data) +
                made * (at.out + part.rows.begin * form_.m.out + part.columns.begin * form_.n.out),
            workers_.scratch(worker));
      }
    }
  }

  MatrixForm form_;
  TensorView x_, y_, out_;
  Workers& workers_;
  std::vector<Part> parts_;
  int sharing_ = 0;  // workers that have a part
};

// Dims in the order [batch, m, k], [batch, k, n] and [batch, m, n]: what always has a matrix form.
struct Orders {
  Shape x, y, out;
  Orders(const Shape& of_x, const Shape& of_y, const Shape& of_out) {
    Shape batch, m, n, k;
    for (const Dim& dim : of_out) {
      Shape& role = !of_y.has(dim.name) ? m : !of_x.has(dim.name) ? n : batch;
      role = role.plus({dim});
    }
    for (const Dim& dim : of_x)
      if (!of_out.has(dim.name)) k = k.plus({dim});
    x = batch.plus(m).plus(k);
    y = batch.plus(k).plus(n);
    out = batch.plus(m).plus(n);
  }
};

// Some of the operands and the result are copied into such an order: as few as will do.
struct Packing {
  TensorView views[3];  // x, y and out; copies have no data yet
  bool copied[3] = {};

  Packing(const TensorView& x, const TensorView& y, const TensorView& out) {
    const TensorView* given[3] = {&x, &y, &out};
    const Orders orders(x.shape, y.shape, out.shape);
    const Shape* order[3] = {&orders.x, &orders.y, &orders.out};
    for (const unsigned some : {1u, 2u, 4u, 3u, 5u, 6u, 7u}) {
      for (unsigned i = 0; i < 3; ++i) {
        copied[i] = some & (1u << i);
        views[i] = copied[i] ? dense_view(nullptr, given[i]->dtype, *order[i]) : *given[i];
      }
      if (form_of(views[0], views[1], views[2]).is_plain()) return;
    }
  }

  std::size_t bytes(std::size_t i) const {
    return static_cast<std::size_t>(views[i].shape.elements()) * size_of(views[i].dtype);
  }
};

Kernel packed(const KernelArgs& args) {
  const TensorView given[3] = {args.inputs[0], args.inputs[1], args.outputs[0]};
  Packing packing(given[0], given[1], given[2]);
  std::vector<StridedCopy> before, after;
  for (std::size_t i = 0; i < 3; ++i) {
    if (!packing.copied[i]) continue;
    packing.views[i].data = args.workspace(packing.bytes(i));
    if (i < 2) before.emplace_back(given[i], packing.views[i]);
    else after.emplace_back(packing.views[i], given[i]);
  }
  auto multiply = std::make_shared<ContractKernel>(packing.views[0], packing.views[1], packing.views[2], *args.workers);
  return [multiply, before, after, workers = args.workers](const StepState&) {
    for (const StridedCopy& copy : before) copy.run(*workers);
    multiply->run();
    for (const StridedCopy& copy : after) copy.run(*workers);
  };
}

Kernel contract(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &y = args.inputs[1], &out = args.outputs[0];
  if (!has_product(x.dtype, out.dtype)) return reference::serve(args);
  if (std::optional<PanelForm> form = panel_form(x, y, out))
    return [kernel = std::make_shared<PanelContraction>(std::move(*form), x, y, out, *args.workers)](const StepState&) {
      kernel->run();
    };
  if (!is_product(form_of(x, y, out), x.dtype)) return packed(args);
  return [kernel = std::make_shared<ContractKernel>(x, y, out, *args.workers)](const StepState&) { kernel->run(); };
}

// See WorkspaceBytes.
std::int64_t contract_bytes(const Program& program, const Instr& instr,
                            const ByValue<std::vector<std::int64_t>>& strides) {
  const TensorView x = unplaced_view(program, instr.inputs[0], strides),
                   y = unplaced_view(program, instr.inputs[1], strides),
                   out = unplaced_view(program, instr.outputs[0], strides);
  if (!has_product(x.dtype, out.dtype)) return reference::wide_bytes(program, instr, strides);
  if (panel_form(x, y, out) || is_product(form_of(x, y, out), x.dtype)) return 0;
  const Packing packing(x, y, out);
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < 3; ++i)
    if (packing.copied[i]) bytes += host_aligned(static_cast<std::int64_t>(packing.bytes(i)));
  return bytes;
}

const AddKernel kContractKernel(kernels(), Contract::kName, contract, contract_bytes);

}  // namespace

}  // namespace weft::cpu
