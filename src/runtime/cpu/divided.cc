// random, scan, sort: each worker runs a kernel of its own on its part of a dim that the instruction does not join.
#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>

#include "runtime/cpu/kernels.h"
#include "runtime/cpu/views.h"
#include "runtime/kernels/random.h"
#include "runtime/reference/kernels.h"
#include "runtime/workers.h"

namespace weft::cpu {

namespace {

using Maker = std::function<Kernel(const KernelArgs&)>;

constexpr std::int64_t kAlone = 1 << 12;  // elements that are not worth waking the others for

// The outermost dim that all views have and that is not in `but`.
const Dim* dividing_dim(const KernelArgs& args, const std::vector<std::string>& but, bool of_inputs) {
  for (const Dim& dim : args.outputs[0].shape) {
    const auto has = [&](const TensorView& view) { return view.shape.has(dim); };
    if (dim.size < 2 || std::ranges::find(but, dim.name) != but.end()) continue;
    if (std::ranges::all_of(args.outputs, has) && (!of_inputs || std::ranges::all_of(args.inputs, has))) return &dim;
  }
  return nullptr;
}

// `of_inputs`: the inputs are divided too.
Kernel divided(const KernelArgs& args, const std::vector<std::string>& but, bool of_inputs, const Maker& make) {
  Workers& workers = *args.workers;
  const Dim* dim = dividing_dim(args, but, of_inputs);
  const std::int64_t elements =
      std::max(args.outputs[0].shape.elements(), of_inputs ? args.inputs[0].shape.elements() : std::int64_t{0});
  if (workers.size() == 1 || !dim || elements < kAlone) return make(args);
  auto parts = std::make_shared<std::vector<Kernel>>();
  for (int worker = 0; worker < workers.size(); ++worker) {
    const Share share = share_of(dim->size, worker, workers.size());
    if (share.empty()) {
      parts->emplace_back();
      continue;
    }
    KernelArgs part = args;
    const auto cut = [&](TensorView& view) { view = run_of(view, dim->name, share.begin, share.end - share.begin); };
    std::ranges::for_each(part.outputs, cut);
    if (of_inputs) std::ranges::for_each(part.inputs, cut);
    parts->push_back(make(part));
  }
  return [parts, &workers](const StepState& state) {
    workers.run([&](int worker) {
      if (const Kernel& part = (*parts)[static_cast<std::size_t>(worker)]) part(state);
    });
  };
}

// As the reference's, but a block of four numbers from one call of the generator.
class RandomKernel {
 public:
  RandomKernel(const TensorView& out, const Random& work, const std::int64_t* iteration)
      : out_(out),
        work_(work),
        iteration_(iteration),
        whole_strides_(strides_of_whole(out)),
        begin_(std::inner_product(out.begin.begin(), out.begin.end(), whole_strides_.begin(), std::int64_t{0})),
        rows_(out.shape, {whole_strides_, out.strides}) {}

  void run(const StepState& state) {
    const std::uint64_t key = seeded(work_.key, state.seed);
    const auto iteration = static_cast<std::uint32_t>(iteration_ ? *iteration_ : 0);
    const bool open = work_.distribution == Distribution::kUniform && work_.a < work_.b && is_float(out_.dtype);
    visit_dtype(out_.dtype, [&]<class T>() {
      const double most = open ? below<T>(work_.b) : 0;
      T* target = static_cast<T*>(out_.data);
      rows_.each([&](const std::int64_t* offsets, const std::int64_t*) {
        const auto first = static_cast<std::uint64_t>(begin_ + offsets[0]);
        const auto length = static_cast<std::uint64_t>(row_length(out_.shape));
        PhiloxWords words{};
        for (std::uint64_t i = 0; i < length; ++i) {
          const std::uint64_t element = first + i, block = element / 4;
          if (i == 0 || element % 4 == 0)
            words = philox(
                {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), state.step, iteration},
                key);
          const double number = deviate(words[element % 4], work_.distribution, work_.a, work_.b);
          target[offsets[1] + static_cast<std::int64_t>(i) * row_stride(out_.strides)] =
              from_double<T>(open ? std::min(number, most) : number);
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
  Random work_;
  const std::int64_t* iteration_;
  std::vector<std::int64_t> whole_strides_;
  std::int64_t begin_;
  Rows rows_;
};

}  // namespace

Kernel random(const KernelArgs& args) {
  return divided(args, {}, false, [](const KernelArgs& part) -> Kernel {
    const auto* iteration = part.inputs.empty() ? nullptr : static_cast<const std::int64_t*>(part.inputs[0].data);
    return [kernel = RandomKernel(part.outputs[0], *part.instr.as<Random>(), iteration)](
               const StepState& state) mutable { kernel.run(state); };
  });
}

Kernel scan(const KernelArgs& args) { return divided(args, {args.instr.as<Scan>()->dim}, true, reference::scan); }

Kernel sort(const KernelArgs& args) {
  const Sort& work = *args.instr.as<Sort>();
  return divided(args, {work.dim, work.k}, true, reference::sort);
}

}  // namespace weft::cpu
