// convolve: y[o] = sum over taps k of x[o * stride + k * dilation - before] * filter[k], in three directions. For every
// element of x, place of y and tap that meet there is one small product over the other dims: [batch, in] x [in, out]
// for each group. It is solved for the wanted side. Sums are kept in double and rounded once.
#include <memory>

#include "runtime/reference/kernels.h"
#include "runtime/reference/windows.h"

namespace weft::reference {

namespace {

// The dims that no window walks along: of all three = groups; of x and y = batch; of x and the filter = in; of the filter
// and y = out.
struct ConvolutionRoles {
  Shape groups, batch, in, out;
  ConvolutionRoles(const Shape& x, const Shape& y, const Shape& filter, const std::vector<WindowDim>& windows) {
    for (const Dim& dim : x.plus(filter)) {
      bool walked = false;
      for (const WindowDim& w : windows) walked = walked || dim.name == w.dim || dim.name == w.filter;
      if (walked) continue;
      const bool in_x = x.has(dim.name), in_y = y.has(dim.name), in_filter = filter.has(dim.name);
      Shape& role = !in_filter ? batch : !in_x ? out : !in_y ? in : groups;
      role = role.plus({dim});
    }
  }
};

class ConvolveKernel {
 public:
  ConvolveKernel(Direction direction, const std::vector<WindowDim>& windows, const TensorView& x, const TensorView& y,
                 const TensorView& filter)
      : ConvolveKernel(direction, windows, x, y, filter, ConvolutionRoles(x.shape, y.shape, filter.shape, windows)) {}

  void run() {
    Packed& wanted = direction_ == Direction::kForward ? y_ : direction_ == Direction::kToInput ? x_ : filter_;
    for (Packed* packed : {&x_, &y_, &filter_})
      if (packed == &wanted) packed->fill(0);
      else packed->read();
    walk_.each([&](std::int64_t element, std::int64_t place, std::int64_t tap) {
      for (std::int64_t g = 0; g < groups_; ++g)
        product(x_.at((element * groups_ + g) * batch_ * in_), filter_.at((tap * groups_ + g) * in_ * out_),
                y_.at((place * groups_ + g) * batch_ * out_));
    });
    wanted.write();
  }

 private:
  ConvolveKernel(Direction direction, const std::vector<WindowDim>& windows, const TensorView& x, const TensorView& y,
                 const TensorView& filter, const ConvolutionRoles& roles)
      : direction_(direction),
        walk_(windows, x.shape, y.shape),
        x_(x, windows_first(windows, x.shape, roles.groups.plus(roles.batch).plus(roles.in))),
        y_(y, windows_first(windows, y.shape, roles.groups.plus(roles.batch).plus(roles.out))),
        filter_(filter, windows_first(windows, filter.shape, roles.groups.plus(roles.in).plus(roles.out))),
        groups_(roles.groups.elements()),
        batch_(roles.batch.elements()),
        in_(roles.in.elements()),
        out_(roles.out.elements()) {}

  // 2 flops per (batch, in, out).
  void product(double* x, double* filter, double* y) const {
    for (std::int64_t b = 0; b < batch_; ++b)
      for (std::int64_t i = 0; i < in_; ++i) {
        double& xi = x[b * in_ + i];
        double *f = filter + i * out_, *row = y + b * out_;
        if (direction_ == Direction::kForward)
          for (std::int64_t o = 0; o < out_; ++o) row[o] += xi * f[o];
        else if (direction_ == Direction::kToInput)
          for (std::int64_t o = 0; o < out_; ++o) xi += row[o] * f[o];
        else
          for (std::int64_t o = 0; o < out_; ++o) f[o] += xi * row[o];
      }
  }

  Direction direction_;
  WindowWalk walk_;
  Packed x_, y_, filter_;
  std::int64_t groups_, batch_, in_, out_;
};

Kernel convolve(const KernelArgs& args) {
  const auto& operation = *args.instr.as<Convolve>();
  const TensorView &a = args.inputs[0], &b = args.inputs[1], &out = args.outputs[0];
  const bool forward = operation.direction == Direction::kForward,
             to_input = operation.direction == Direction::kToInput;
  const auto kernel = std::make_shared<ConvolveKernel>(operation.direction, operation.windows, to_input ? out : a,
                                                       forward    ? out
                                                       : to_input ? a
                                                                  : b,
                                                       forward || to_input ? b : out);
  return [kernel](const StepState&) { kernel->run(); };
}

const AddKernel kConvolveKernel(kernels(), Convolve::kName, convolve);

}  // namespace

}  // namespace weft::reference
