// random: numbers by place and seed.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/dispatch.h"
#include "base/philox.h"
#include "runtime/random.h"
#include "runtime/reference/kernels.h"

namespace weft::reference {

namespace {

class RandomKernel {
 public:
  RandomKernel(const TensorView& out, const Random& operation, const std::int64_t* iteration)
      : out_(out),
        operation_(operation),
        iteration_(iteration),
        whole_strides_(strides_of_whole(out)),
        begin_(std::inner_product(out.begin.begin(), out.begin.end(), whole_strides_.begin(), std::int64_t{0})),
        rows_(out.shape, {whole_strides_, out.strides}) {}

  void run(const StepState& state) {
    const std::uint64_t key = seeded(operation_.key, state.seed);
    const auto iteration = static_cast<std::uint32_t>(iteration_ ? *iteration_ : 0);
    const std::int64_t length = row_length(out_.shape);
    visit_dtype(out_.dtype, [&]<class T>() {
      T* target = static_cast<T*>(out_.data);
      // Rounding may reach b, which is outside of [a, b).
      const bool open =
          operation_.distribution == Distribution::kUniform && operation_.a < operation_.b && is_float(out_.dtype);
      const double most = open ? below<T>(operation_.b) : 0;
      rows_.each([&](const std::int64_t* offsets, const std::int64_t*) {
        const auto first = static_cast<std::uint64_t>(begin_ + offsets[0]);
        PhiloxWords words{};  // of a block of four elements
        for (std::int64_t i = 0; i < length; ++i) {
          const std::uint64_t element = first + static_cast<std::uint64_t>(i), block = element / 4;
          if (i == 0 || element % 4 == 0)
            words = philox(
                {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), state.step, iteration},
                key);
          const double number = deviate(words[element % 4], operation_.distribution, operation_.a, operation_.b);
          target[offsets[1] + i * row_stride(out_.strides)] = from_double<T>(open ? std::min(number, most) : number);
        }
      });
    });
  }

 private:
  // Of the global tensor: the last dim's is 1.
  static std::vector<std::int64_t> strides_of_whole(const TensorView& view) {
    std::vector<std::int64_t> strides(view.shape.rank());
    std::int64_t stride = 1;
    for (std::size_t d = view.shape.rank(); d-- > 0; stride *= view.whole[d]) strides[d] = stride;
    return strides;
  }

  TensorView out_;
  Random operation_;
  const std::int64_t* iteration_;
  std::vector<std::int64_t> whole_strides_;
  std::int64_t begin_;
  Rows rows_;
};

Kernel random(const KernelArgs& args) {
  const auto* iteration = args.inputs.empty() ? nullptr : static_cast<const std::int64_t*>(args.inputs[0].data);
  return [kernel = RandomKernel(args.outputs[0], *args.instr.as<Random>(), iteration)](const StepState& state) mutable {
    kernel.run(state);
  };
}

const AddKernel kRandomKernel(kernels(), Random::kName, random);

}  // namespace

}  // namespace weft::reference
