// convolve on oneDNN: every worker has a part of the batch, or of the result's channels. The gradient by the filter is summed
// over the workers' parts of the batch, in their order.
#include <algorithm>
#include <cstring>
#include <memory>

#include "base/dispatch.h"
#include "base/index.h"
#include "runtime/cpu/convolution_form.h"
#include "runtime/cpu/kernels.h"
#include "runtime/reference/kernels.h"

namespace weft::cpu {

namespace {

constexpr double kFewestConvolved = 1 << 16;  // multiplications that are worth another worker
constexpr std::int64_t kChannelGrain = 16;    // channels of a share

enum class Cut : std::uint8_t { kBatch, kChannels, kSum };  // kSum: by batch, and the results are added up

// A worker's part and where it begins, in elements.
struct ConvolutionPart {
  Convolution convolution;
  std::int64_t x = 0, y = 0, filter = 0;
};

bool is_dense(const TensorView& view) {
  std::int64_t span = 1;
  for (std::size_t d = 0; d < view.shape.rank(); ++d) span += (view.shape[d].size - 1) * view.strides[d];
  return span == view.shape.elements();
}

class ConvolveKernel {
 public:
  ConvolveKernel(const ConvolutionForm& form, const TensorView& x, const TensorView& y, const TensorView& filter,
                 Workers& workers)
      : form_(form), x_(x), y_(y), filter_(filter), workers_(workers) {
    divide();
  }

  // Whether oneDNN has what every worker needs.
  bool is_made() const { return made_; }

  void run() {
    if (clears_) std::memset(x_.data, 0, static_cast<std::size_t>(x_.shape.elements()) * size_of(x_.dtype));
    workers_.run([this](int worker) { run_part(worker); });
    if (cut_ == Cut::kSum) workers_.run([this](int worker) { add_up(worker); });
  }

 private:
  const ConvolutionShape& shape() const { return form_.shape; }
  bool to_input() const { return shape().direction == Direction::kToInput; }

  int sharing() const {
    const ConvolutionShape& s = shape();
    double operation = static_cast<double>(s.batch * s.groups) * static_cast<double>(s.in * s.out);
    for (const ConvolutionDim& dim : s.space) operation *= static_cast<double>(dim.places * dim.taps);
    return static_cast<int>(std::clamp(operation / kFewestConvolved, 1.0, static_cast<double>(workers_.size())));
  }

  // Whole images if that divides them evenly, else channels.
  void divide() {
    const ConvolutionShape& s = shape();
    const bool to_filter = s.direction == Direction::kToFilter;
    clears_ = form_.leaves_out && to_input();
    if (clears_ && !is_dense(x_)) return;
    const int sharing = this->sharing();
    const std::int64_t channels = to_input() ? s.in : s.out;
    const bool by_channels = s.groups == 1 && channels >= sharing * kChannelGrain;
    const bool even = s.batch >= 4 * sharing || s.batch % sharing == 0;
    cut_ = by_channels && (!even || (to_filter && !is_dense(filter_))) ? Cut::kChannels : Cut::kBatch;
    if (to_filter && cut_ == Cut::kBatch) cut_ = Cut::kSum;
    const std::int64_t items = cut_ == Cut::kChannels ? channels : s.batch;
    const int parts = static_cast<int>(std::min<std::int64_t>(sharing, items));
    // One part needs no sum; nor are there parts of a result with gaps.
    const bool alone = parts == 1 || (cut_ == Cut::kSum && !is_dense(filter_));
    if (cut_ == Cut::kSum && alone) cut_ = Cut::kBatch;
    made_ = true;
    for (int worker = 0; worker < (alone ? 1 : parts) && made_; ++worker)
      add_part(alone ? Share{0, items} : share_of(items, worker, parts, cut_ == Cut::kChannels ? kChannelGrain : 1));
    reserve();
  }

  void add_part(Share share) {
    ConvolutionShape s = shape();
    std::int64_t x = form_.x_offset, y = 0, filter = 0;
    const std::int64_t size = share.end - share.begin;
    if (cut_ != Cut::kChannels) {
      s.batch = size;
      x += share.begin * s.x_batch, y += share.begin * s.y_batch;
    } else if (to_input()) {
      s.in = size;
      x += share.begin * s.x_channel, filter += share.begin * s.filter_in;
    } else {
      s.out = size;
      y += share.begin * s.y_channel, filter += share.begin * s.filter_out;
    }
    if (cut_ == Cut::kSum) s.filter = DType::kF32;
    auto convolution = Convolution::make(s);
    made_ = convolution.has_value();
    if (made_) parts_.push_back({std::move(*convolution), x, y, filter});
  }

  void reserve() {
    if (cut_ == Cut::kSum)
      sum_bytes_ = (static_cast<std::size_t>(filter_.shape.elements()) * sizeof(float) + 63) / 64 * 64;
    for (const ConvolutionPart& part : parts_) workers_.reserve(sum_bytes_ + part.convolution.scratch_bytes());
  }

  static std::byte* data_at(const TensorView& view, std::int64_t offset) {
    return static_cast<std::byte*>(view.data) + offset * static_cast<std::int64_t>(size_of(view.dtype));
  }

  void run_part(int worker) {
    if (at(worker) >= parts_.size()) return;
    ConvolutionPart& part = parts_[at(worker)];
    std::byte* scratch = workers_.scratch(worker);
    part.convolution.run(data_at(x_, part.x), data_at(y_, part.y),
                         cut_ == Cut::kSum ? scratch : data_at(filter_, part.filter), scratch + sum_bytes_);
  }

  // The workers' sums lie as the filter does.
  void add_up(int worker) {
    const Share share = share_of(filter_.shape.elements(), worker, workers_.size(), 1024);
    visit_dtype(filter_.dtype, [&]<class T>() {
      T* out = static_cast<T*>(filter_.data);
      for (std::int64_t i = share.begin; i < share.end; ++i) {
        float sum = 0;
        for (std::size_t k = 0; k < parts_.size(); ++k)
          sum += reinterpret_cast<const float*>(workers_.scratch(static_cast<int>(k)))[i];
        out[i] = from_double<T>(sum);
      }
    });
  }

  ConvolutionForm form_;
  TensorView x_, y_, filter_;
  Workers& workers_;
  Cut cut_ = Cut::kBatch;
  bool made_ = false, clears_ = false;
  std::vector<ConvolutionPart> parts_;
  std::size_t sum_bytes_ = 0;
};

Kernel convolve(const KernelArgs& args) {
  const auto& operation = *args.instr.as<Convolve>();
  const TensorView &a = args.inputs[0], &b = args.inputs[1], &out = args.outputs[0];
  const bool forward = operation.direction == Direction::kForward,
             to_input = operation.direction == Direction::kToInput;
  const TensorView &x = to_input ? out : a,
                   &y = forward    ? out
                        : to_input ? a
                                   : b,
                   &filter = forward || to_input ? b : out;
  const auto form = convolution_form(operation, x, y, filter);
  if (!form) return reference::serve(args);
  auto kernel = std::make_shared<ConvolveKernel>(*form, x, y, filter, *args.workers);
  if (!kernel->is_made()) return reference::serve(args);
  return [kernel](const StepState&) { kernel->run(); };
}

const AddKernel kConvolveKernel(kernels(), Convolve::kName, convolve);

}  // namespace

}  // namespace weft::cpu
