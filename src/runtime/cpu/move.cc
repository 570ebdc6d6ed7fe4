// copy, concat, dynamic_slice, dynamic_update: strided moves, shared by the workers.
#include <algorithm>
#include <memory>

#include "runtime/cpu/kernels.h"
#include "runtime/cpu/strided_copy.h"
#include "runtime/host/strided.h"
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

// Where rows begin that have a run-time offset each: in the offsets, and in a value whose runs are moved.
struct OffsetRows {
  OffsetRows(const TensorView& offset, const TensorView& view)
      : offset(offset),
        places(offsets_over(offset, offset.shape)),
        starts(offsets_over(view, offset.shape)),
        first(view) {
    for (const Dim& dim : offset.shape) first = without_dim(first, dim.name);
  }

  std::size_t count() const { return places.size(); }
  std::int64_t at(std::size_t row) const { return integer_at(offset, places[row]); }

  TensorView offset;
  std::vector<std::int64_t> places, starts;
  TensorView first;  // the first row
};

Kernel dynamic_slice(const KernelArgs& args) {
  const std::string& dim = args.instr.as<DynamicSlice>()->dim;
  const OffsetRows x(args.inputs[1], args.inputs[0]), out(args.inputs[1], args.outputs[0]);
  const std::int64_t size = out.first.shape.size_of(dim);
  return [move = StridedCopy(run_of(x.first, dim, 0, size), out.first), x, starts = out.starts,
          step = x.first.strides[x.first.shape.position(dim)], most = x.first.shape.size_of(dim) - size,
          workers = args.workers](const StepState&) {
    for (std::size_t row = 0; row < x.count(); ++row)
      move.run(*workers, x.starts[row] + step * std::clamp<std::int64_t>(x.at(row), 0, most), starts[row]);
  };
}

// The piece over the output from run-time offsets on: at once where it fits, else index by index.
class UpdateKernel {
 public:
  UpdateKernel(const KernelArgs& args, const std::string& dim)
      : workers_(*args.workers),
        copy_(args.inputs[0], args.outputs[0]),
        piece_(args.inputs[2], args.inputs[1]),
        out_(args.inputs[2], args.outputs[0]),
        size_(args.inputs[1].shape.size_of(dim)),
        whole_(args.outputs[0].shape.size_of(dim)),
        piece_step_(args.inputs[1].strides[args.inputs[1].shape.position(dim)]),
        out_step_(args.outputs[0].strides[args.outputs[0].shape.position(dim)]),
        all_(piece_.first, run_of(out_.first, dim, 0, std::min(size_, whole_)), size_ <= whole_),
        one_(run_of(piece_.first, dim, 0, 1), run_of(out_.first, dim, 0, 1), true) {}

  void run() const {
    copy_.run(workers_);
    for (std::size_t row = 0; row < out_.count(); ++row) put(row);
  }

 private:
  void put(std::size_t row) const {
    const std::int64_t at = std::clamp(out_.at(row), -size_, whole_), from = piece_.starts[row], to = out_.starts[row];
    if (at >= 0 && at + size_ <= whole_) return all_.move->run(workers_, from, to + at * out_step_);
    for (std::int64_t i = std::max<std::int64_t>(0, -at); i < std::min(size_, whole_ - at); ++i)
      one_.move->run(workers_, from + i * piece_step_, to + (at + i) * out_step_);
  }

  struct Move {
    Move(const TensorView& from, const TensorView& to, bool fits) {
      if (fits) move = std::make_shared<StridedCopy>(from, to);
    }
    std::shared_ptr<const StridedCopy> move;
  };

  Workers& workers_;
  StridedCopy copy_;
  OffsetRows piece_, out_;
  std::int64_t size_, whole_, piece_step_, out_step_;
  Move all_, one_;
};

// The part of a view that has the sizes of `shape`, from its first elements on.
TensorView corner_of(TensorView view, const Shape& shape) {
  for (const Dim& dim : shape) view = run_of(view, dim.name, 0, dim.size);
  return view;
}

// A piece whose indices along `dim` have places of their own in the output. Equal places belong to one worker, so that
// they are written in order.
class PlacesKernel {
 public:
  PlacesKernel(const KernelArgs& args, const std::string& dim)
      : workers_(*args.workers),
        copy_(args.inputs[0], args.outputs[0]),
        piece_(args.inputs[2], args.inputs[1]),
        whole_(args.outputs[0].shape.size_of(dim)),
        step_(args.outputs[0].strides[args.outputs[0].shape.position(dim)]),
        move_(piece_.first, corner_of(without_dim(args.outputs[0], dim), piece_.first.shape)) {}

  void run() const {
    copy_.run(workers_);
    if (!move_.is_shared(static_cast<std::int64_t>(piece_.count()))) return put(0, 1);
    workers_.run([&](int worker) { put(worker, workers_.size()); });
  }

 private:
  void put(int worker, int workers) const {
    for (std::size_t row = 0; row < piece_.count(); ++row) {
      const std::int64_t at = piece_.at(row);
      if (at >= 0 && at < whole_ && at % workers == worker) move_.run_alone(piece_.starts[row], at * step_);
    }
  }

  Workers& workers_;
  StridedCopy copy_;
  OffsetRows piece_;
  std::int64_t whole_, step_;
  StridedCopy move_;
};

Kernel dynamic_update(const KernelArgs& args) {
  const std::string& dim = args.instr.as<DynamicUpdate>()->dim;
  if (args.inputs[2].shape.has(dim)) return [kernel = PlacesKernel(args, dim)](const StepState&) { kernel.run(); };
  return [kernel = UpdateKernel(args, dim)](const StepState&) { kernel.run(); };
}

const AddKernel kCopyKernel(kernels(), Copy::kName, copy);
const AddKernel kConcatKernel(kernels(), Concat::kName, concat);
const AddKernel kDynamicSliceKernel(kernels(), DynamicSlice::kName, dynamic_slice);
const AddKernel kDynamicUpdateKernel(kernels(), DynamicUpdate::kName, dynamic_update);

}  // namespace

}  // namespace weft::cpu
