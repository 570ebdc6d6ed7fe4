// copy, concat, dynamic_slice, dynamic_update: strided moves, shared by the workers.
#include <algorithm>
#include <memory>

#include "runtime/cpu/kernels.h"
#include "runtime/cpu/strided_copy.h"
#include "runtime/host/views.h"

namespace weft::cpu {

namespace {

Kernel copy(const KernelArgs& args) {
  return [move = StridedCopy(args.inputs[0], args.outputs[0]), workers = args.workers](const StepState&) {
    move.run(*workers);
  };
}

Kernel concat(const KernelArgs& args) {
  std::vector<StridedCopy> moves;
  const std::string& dim = args.instr.as<Concat>()->dim;
  std::int64_t begin = 0;
  for (const TensorView& input : args.inputs) {
    const std::int64_t size = input.shape.size_of(dim);
    moves.emplace_back(input, run_of(args.outputs[0], dim, begin, size));
    begin += size;
  }
  return [moves, workers = args.workers](const StepState&) {
    for (const StridedCopy& move : moves) move.run(*workers);
  };
}

Kernel dynamic_slice(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &out = args.outputs[0];
  const std::string& dim = args.instr.as<DynamicSlice>()->dim;
  const std::int64_t size = out.shape.size_of(dim);
  return [move = StridedCopy(run_of(x, dim, 0, size), out), offset = args.inputs[1],
          step = x.strides[x.shape.position(dim)], most = x.shape.size_of(dim) - size, workers = args.workers](
             const StepState&) { move.run(*workers, step * std::clamp<std::int64_t>(integer_at(offset, 0), 0, most)); };
}

// The piece over the output from a run-time offset on: at once where it fits, else index by index.
class UpdateKernel {
 public:
  UpdateKernel(const KernelArgs& args, const std::string& dim)
      : workers_(*args.workers),
        copy_(args.inputs[0], args.outputs[0]),
        offset_(args.inputs[2]),
        size_(args.inputs[1].shape.size_of(dim)),
        whole_(args.outputs[0].shape.size_of(dim)),
        piece_step_(args.inputs[1].strides[args.inputs[1].shape.position(dim)]),
        out_step_(args.outputs[0].strides[args.outputs[0].shape.position(dim)]),
        all_(args.inputs[1], run_of(args.outputs[0], dim, 0, std::min(size_, whole_)), size_ <= whole_),
        one_(run_of(args.inputs[1], dim, 0, 1), run_of(args.outputs[0], dim, 0, 1), true) {}

  void run() const {
    copy_.run(workers_);
    const std::int64_t at = std::clamp(integer_at(offset_, 0), -size_, whole_);
    if (at >= 0 && at + size_ <= whole_) return all_.move->run(workers_, 0, at * out_step_);
    for (std::int64_t i = std::max<std::int64_t>(0, -at); i < std::min(size_, whole_ - at); ++i)
      one_.move->run(workers_, i * piece_step_, (at + i) * out_step_);
  }

 private:
  struct Move {
    Move(const TensorView& from, const TensorView& to, bool fits) {
      if (fits) move = std::make_shared<StridedCopy>(from, to);
    }
    std::shared_ptr<const StridedCopy> move;
  };

  Workers& workers_;
  StridedCopy copy_;
  TensorView offset_;
  std::int64_t size_, whole_, piece_step_, out_step_;
  Move all_, one_;
};

Kernel dynamic_update(const KernelArgs& args) {
  return [kernel = UpdateKernel(args, args.instr.as<DynamicUpdate>()->dim)](const StepState&) { kernel.run(); };
}

const AddKernel kCopyKernel(kernels(), Copy::kName, copy);
const AddKernel kConcatKernel(kernels(), Concat::kName, concat);
const AddKernel kDynamicSliceKernel(kernels(), DynamicSlice::kName, dynamic_slice);
const AddKernel kDynamicUpdateKernel(kernels(), DynamicUpdate::kName, dynamic_update);

}  // namespace

}  // namespace weft::cpu
