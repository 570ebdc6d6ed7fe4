// scan, sort: each worker runs one kernel on its part of a dim that the instruction does not join. The few best of a line
// of f32 have a fast kernel (top_k.h), all else runs the reference's.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>

#include "base/index.h"
#include "runtime/cpu/kernels.h"
#include "runtime/cpu/top_k.h"
#include "runtime/host/views.h"
#include "runtime/reference/kernels.h"
#include "runtime/reference/lines.h"
#include "runtime/host/workers.h"

namespace weft::cpu {

namespace {

// The outermost dim that all views have and that is not in `but`.
const Dim* dividing_dim(const KernelArgs& args, const std::vector<std::string>& but) {
  for (const Dim& dim : args.outputs[0].shape) {
    const auto has = [&](const TensorView& view) { return view.shape.has(dim); };
    if (dim.size < 2 || std::ranges::find(but, dim.name) != but.end()) continue;
    if (std::ranges::all_of(args.outputs, has) && std::ranges::all_of(args.inputs, has)) return &dim;
  }
  return nullptr;
}

// `alone`: so few elements are not worth waking the other workers for.
Kernel divided(const KernelArgs& args, const std::vector<std::string>& but, std::int64_t alone,
               const std::function<Kernel(const KernelArgs&)>& make) {
  Workers& workers = *args.workers;
  const Dim* dim = dividing_dim(args, but);
  const std::int64_t elements = std::max(args.outputs[0].shape.elements(), args.inputs[0].shape.elements());
  if (workers.size() == 1 || !dim || elements < alone) return make(args);
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
    std::ranges::for_each(part.inputs, cut);
    parts->push_back(make(part));
  }
  return [parts, &workers](const StepState& state) {
    workers.run([&](int worker) {
      if (const Kernel& part = (*parts)[at(worker)]) part(state);
    });
  };
}

// The best of every line. Values and indices may have any strides.
class BestKernel {
 public:
  explicit BestKernel(const KernelArgs& args)
      : x_(args.inputs[0]),
        given_(args.inputs.back()),
        has_given_(args.inputs.size() > 1),
        ascending_(args.instr.as<Sort>()->ascending),
        values_(args.outputs[0]),
        indices_(args.outputs[1]),
        lines_({x_, given_, values_, indices_}, args.instr.as<Sort>()->dim) {
    const std::size_t k = values_.shape.position(args.instr.as<Sort>()->k);
    count_ = values_.shape[k].size;
    value_step_ = values_.strides[k];
    index_step_ = indices_.strides[k];
    begin_ = x_.begin[x_.shape.position(args.instr.as<Sort>()->dim)];
  }

  static bool takes(const KernelArgs& args) {
    const Sort& operation = *args.instr.as<Sort>();
    const TensorView& x = args.inputs[0];
    const std::int64_t count = args.outputs[0].shape.size_of(operation.k);
    return x.dtype == DType::kF32 && x.strides[x.shape.position(operation.dim)] == 1 && count >= 1 &&
           count < x.shape.size_of(operation.dim) && count <= static_cast<std::int64_t>(kMostBest);
  }

  void run() {
    lines_.each([&](const std::int64_t* offsets) {
      std::array<float, kMostBest> values;
      std::array<std::int32_t, kMostBest> places;
      find_best({static_cast<const float*>(x_.data) + offsets[0], static_cast<std::size_t>(lines_.length()),
                 static_cast<std::size_t>(count_), ascending_, values.data(), places.data()});
      for (std::int64_t j = 0; j < count_; ++j) {
        static_cast<float*>(values_.data)[offsets[2] + j * value_step_] = values[at(j)];
        static_cast<std::int32_t*>(indices_.data)[offsets[3] + j * index_step_] = index_of(places[at(j)], offsets[1]);
      }
    });
  }

 private:
  std::int32_t index_of(std::int64_t place, std::int64_t given) const {
    if (!has_given_) return static_cast<std::int32_t>(begin_ + place);
    return static_cast<const std::int32_t*>(given_.data)[given + place * lines_.step(1)];
  }

  TensorView x_, given_;
  bool has_given_, ascending_;
  TensorView values_, indices_;
  reference::Lines lines_;
  std::int64_t count_ = 0, value_step_ = 0, index_step_ = 0, begin_ = 0;
};

Kernel best(const KernelArgs& args) {
  return [kernel = BestKernel(args)](const StepState&) mutable { kernel.run(); };
}

Kernel scan(const KernelArgs& args) { return divided(args, {args.instr.as<Scan>()->dim}, 1 << 12, reference::serve); }

Kernel sort(const KernelArgs& args) {
  const Sort& operation = *args.instr.as<Sort>();
  const bool is_fast = BestKernel::takes(args);
  return divided(args, {operation.dim, operation.k}, is_fast ? 1 << 15 : 1 << 12, is_fast ? best : reference::serve);
}

const AddKernel kScanKernel(kernels(), Scan::kName, scan);
const AddKernel kSortKernel(kernels(), Sort::kName, sort);

}  // namespace

}  // namespace weft::cpu
