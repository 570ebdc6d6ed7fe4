// pool: joins what each window meets. max: -infinity where a window meets nothing, NaN where it meets one. sum, and back
// to x its adjoint. winners: the sum of v, or the number, of the elements of x that equal their window's y.
#include <limits>
#include <memory>
#include <optional>

#include "runtime/reference/kernels.h"
#include "runtime/reference/windows.h"

namespace weft::reference {

namespace {

class PoolKernel {
 public:
  explicit PoolKernel(const KernelArgs& args)
      : operation_(*args.instr.as<Pool>()), result_(packed(args.outputs[0], args.outputs[0].shape)) {
    for (const TensorView& input : args.inputs) operands_.push_back(packed(input, args.outputs[0].shape));
    const bool winners = operation_.kind == PoolKind::kWinners, forward = operation_.direction == Direction::kForward;
    const Shape &first = args.inputs[0].shape, &second = (winners ? args.inputs[1] : args.outputs[0]).shape;
    walk_.emplace(operation_.windows, winners || forward ? first : second, winners || forward ? second : first);
    rest_ = args.outputs[0].shape.elements();
    for (const WindowDim& w : operation_.windows) rest_ /= args.outputs[0].shape.size_of(w.dim);
  }

  void run() {
    for (Packed& operand : operands_) operand.read();
    result_.fill(operation_.kind == PoolKind::kMax ? -std::numeric_limits<double>::infinity() : 0);
    const bool forward = operation_.direction == Direction::kForward;
    walk_->each([&](std::int64_t element, std::int64_t place, std::int64_t) {
      double* out = result_.at((forward ? place : element) * rest_);
      if (operation_.kind == PoolKind::kWinners)
        winners(operands_[0].at(element * rest_), operands_[1].at(place * rest_),
                operands_.size() == 3 ? operands_[2].at((forward ? element : place) * rest_) : nullptr, out);
      else join(operands_[0].at((forward ? element : place) * rest_), out);
    });
    result_.write();
  }

 private:
  // Every operand in the output's order of the other dims.
  Packed packed(const TensorView& view, Shape rest) const {
    for (const WindowDim& w : operation_.windows) rest = rest.minus({rest.dim(w.dim)});
    return {view, windows_first(operation_.windows, view.shape, rest)};
  }

  void join(const double* from, double* out) const {
    for (std::int64_t r = 0; r < rest_; ++r)
      if (operation_.kind == PoolKind::kSum) out[r] += from[r];
      else if (from[r] != from[r] || from[r] > out[r]) out[r] = from[r];
  }

  void winners(const double* x, const double* y, const double* v, double* out) const {
    for (std::int64_t r = 0; r < rest_; ++r)
      if (x[r] == y[r]) out[r] += v ? v[r] : 1;
  }

  Pool operation_;
  Packed result_;
  std::vector<Packed> operands_;
  std::optional<WindowWalk> walk_;
  std::int64_t rest_ = 1;
};

Kernel pool(const KernelArgs& args) {
  return [kernel = std::make_shared<PoolKernel>(args)](const StepState&) { kernel->run(); };
}

const AddKernel kPoolKernel(kernels(), Pool::kName, pool);

}  // namespace

}  // namespace weft::reference
