// scan, sort: each worker runs one kernel on its part of a dim that the instruction does not join.
#include <algorithm>
#include <functional>
#include <memory>

#include "base/index.h"
#include "runtime/cpu/kernels.h"
#include "runtime/host/views.h"
#include "runtime/reference/kernels.h"
#include "runtime/host/workers.h"

namespace weft::cpu {

namespace {

constexpr std::int64_t kDividedAlone = 1 << 12;  // elements that are not worth waking the others for

// The outermost dim that all views have and that is not in `but`.
const Dim* dividing_dim(const KernelArgs& args, const std::vector<std::string>& but) {
  for (const Dim& dim : args.outputs[0].shape) {
    const auto has = [&](const TensorView& view) { return view.shape.has(dim); };
    if (dim.size < 2 || std::ranges::find(but, dim.name) != but.end()) continue;
    if (std::ranges::all_of(args.outputs, has) && std::ranges::all_of(args.inputs, has)) return &dim;
  }
  return nullptr;
}

Kernel divided(const KernelArgs& args, const std::vector<std::string>& but) {
  Workers& workers = *args.workers;
  const Dim* dim = dividing_dim(args, but);
  const std::int64_t elements = std::max(args.outputs[0].shape.elements(), args.inputs[0].shape.elements());
  if (workers.size() == 1 || !dim || elements < kDividedAlone) return reference::serve(args);
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
    parts->push_back(reference::serve(part));
  }
  return [parts, &workers](const StepState& state) {
    workers.run([&](int worker) {
      if (const Kernel& part = (*parts)[at(worker)]) part(state);
    });
  };
}

Kernel scan(const KernelArgs& args) { return divided(args, {args.instr.as<Scan>()->dim}); }

Kernel sort(const KernelArgs& args) {
  const Sort& operation = *args.instr.as<Sort>();
  return divided(args, {operation.dim, operation.k});
}

const AddKernel kScanKernel(kernels(), Scan::kName, scan);
const AddKernel kSortKernel(kernels(), Sort::kName, sort);

}  // namespace

}  // namespace weft::cpu
