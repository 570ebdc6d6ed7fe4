// random, axis_index, constant, host: values from nothing, and values for the host.
#include <algorithm>
#include <cmath>

#include "base/dispatch.h"
#include "base/philox.h"
#include "runtime/kernels/random.h"
#include "runtime/reference/kernels.h"

namespace weft::reference {

namespace {

// The largest number of type T below x.
template <class T>
double below(double x) {
  T y = from_double<T>(x);
  if (to_double(y) < x) return to_double(y);
  if constexpr (std::is_floating_point_v<T>) y = std::nextafter(y, -std::numeric_limits<T>::infinity());
  else if constexpr (std::is_same_v<T, BF16> || std::is_same_v<T, F16>)
    y.bits = to_double(y) > 0   ? static_cast<std::uint16_t>(y.bits - 1)
             : to_double(y) < 0 ? static_cast<std::uint16_t>(y.bits + 1)
                                : std::uint16_t{0x8001};
  return to_double(y);
}

}  // namespace

Kernel random(const KernelArgs& args) {
  return [out = args.outputs[0], work = *args.instr.as<Random>()](const StepState& state) {
    const std::uint64_t key = seeded(work.key, state.seed);
    std::vector<std::int64_t> whole_strides(out.shape.rank());  // of the global tensor
    std::int64_t stride = 1;
    for (std::size_t d = out.shape.rank(); d-- > 0; stride *= out.whole[d]) whole_strides[d] = stride;
    std::int64_t begin = 0;
    for (std::size_t d = 0; d < out.shape.rank(); ++d) begin += out.begin[d] * whole_strides[d];
    const std::int64_t length = row_length(out.shape);
    visit_dtype(out.dtype, [&]<class T>() {
      T* target = static_cast<T*>(out.data);
      // Rounding may reach b, which is outside of [a, b).
      const bool open = work.distribution == Distribution::kUniform && work.a < work.b && is_float(out.dtype);
      const double most = open ? below<T>(work.b) : 0;
      for_each_row(out.shape, {whole_strides, out.strides}, [&](const std::int64_t* offsets, const std::int64_t*) {
        for (std::int64_t i = 0; i < length; ++i) {
          const std::int64_t element = begin + offsets[0] + i * row_stride(whole_strides);
          const std::uint32_t word = philox_word(key, static_cast<std::uint64_t>(element), state.step);
          const double number = deviate(word, work.distribution, work.a, work.b);
          target[offsets[1] + i * row_stride(out.strides)] = from_double<T>(open ? std::min(number, most) : number);
        }
      });
    });
  };
}

Kernel axis_index(const KernelArgs& args) {
  const std::int64_t place = args.program.mesh.coordinate(args.processor, args.instr.as<AxisIndex>()->axes);
  return [out = args.outputs[0], place](const StepState&) { *static_cast<std::int64_t*>(out.data) = place; };
}

Kernel constant(const KernelArgs& args) {
  return [out = args.outputs[0], data = args.instr.as<Constant>()->data](const StepState&) {
    visit_dtype(out.dtype, [&]<class T>() {
      T* target = static_cast<T*>(out.data);
      for (std::size_t i = 0; i < data.size(); ++i) target[i] = from_double<T>(data[i]);
    });
  };
}

Kernel host(const KernelArgs& args) {
  return [x = args.inputs[0], work = *args.instr.as<Host>()](const StepState& state) {
    if (!state.host) return;
    HostEvent event{work.what, work.text, Array(x.shape, x.dtype)};
    copy_elements(x, dense_view(event.value.bytes(), x.dtype, x.shape));
    (*state.host)(event);
  };
}

}  // namespace weft::reference
