// Convolutions on one thread. Only convolution.cc knows oneDNN's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <memory>
#include <vector>

#include "program/windows.h"
#include "weft/dtype.h"

namespace weft::cpu {

// One spatial dim: tap k of place o meets element o * stride + k * dilation - before.
struct ConvolutionDim {
  std::int64_t elements = 1, places = 1, taps = 1;
  std::int64_t stride = 1, dilation = 1, before = 0;
  std::int64_t x = 0, y = 0, filter = 0;  // strides in memory

  std::int64_t reach() const { return (taps - 1) * dilation + 1; }
  std::int64_t after() const { return (places - 1) * stride + reach() - before - elements; }
};

// x[batch, channels, elements…], y[batch, channels, places…], filter[group, out, in, taps…]; the channels of x are
// (group, in), those of y (group, out). Strides in elements; that of a dim of size 1 is not looked at.
struct ConvolutionShape {
  Direction direction = Direction::kForward;
  std::int64_t batch = 1, groups = 1, in = 1, out = 1;
  std::int64_t x_batch = 0, x_channel = 0, y_batch = 0, y_channel = 0;
  std::int64_t filter_group = 0, filter_in = 0, filter_out = 0;
  std::vector<ConvolutionDim> space;  // one to three, outermost first; 0 <= before, after <= reach - 1 < after + stride
  DType x = DType::kF32, y = DType::kF32, filter = DType::kF32;
};

// Made before the first step, one for each thread that uses it.
class Convolution {
 public:
  // None if oneDNN has nothing fast for it.
  static std::optional<Convolution> make(const ConvolutionShape& shape);
  Convolution(Convolution&&) noexcept;
  Convolution& operator=(Convolution&&) noexcept;
  ~Convolution();

  std::size_t scratch_bytes() const;
  // Writes the one that the direction gives.
  void run(void* x, void* y, void* filter, std::byte* scratch);

 private:
  struct Bound;
  explicit Convolution(std::unique_ptr<Bound> bound);
  std::unique_ptr<Bound> bound_;
};

}  // namespace weft::cpu
