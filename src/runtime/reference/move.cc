// copy, concat, dynamic_slice, dynamic_update, gather, scatter_add: moving elements.
#include <algorithm>
#include <span>

#include "base/dispatch.h"
#include "base/index.h"
#include "runtime/reference/kernels.h"
#include "runtime/host/views.h"

namespace weft::reference {

namespace {

Kernel copy(const KernelArgs& args) {
  return [move = ElementCopy(args.inputs[0], args.outputs[0])](const StepState&) mutable { move.run(); };
}

Kernel concat(const KernelArgs& args) {
  std::vector<ElementCopy> moves;
  const std::string& dim = args.instr.as<Concat>()->dim;
  std::int64_t begin = 0;
  for (const TensorView& input : args.inputs) {
    const std::int64_t size = input.shape.size_of(dim);
    moves.emplace_back(input, run_of(args.outputs[0], dim, begin, size));
    begin += size;
  }
  return [moves](const StepState&) mutable {
    for (ElementCopy& move : moves) move.run();
  };
}

// A run along `dim` of a whole from a run-time offset on, row by row; each row has its offset.
class RunKernel {
 public:
  RunKernel(const TensorView& whole, const TensorView& piece, const TensorView& offset, const std::string& dim)
      : RunKernel(whole, piece, offset, piece.shape.minus({piece.shape.dim(dim)}).plus({piece.shape.dim(dim)})) {}

  // The run, clamped to fit, to the piece.
  void take() {
    each_row([&](auto* whole, auto* piece, std::int64_t at) {
      const std::int64_t begin = std::clamp<std::int64_t>(at, 0, all_ - size_);
      for (std::int64_t i = 0; i < size_; ++i) piece[i * piece_step_] = whole[(begin + i) * whole_step_];
    });
  }
  // The piece over the run; what falls outside is dropped.
  void put() {
    each_row([&](auto* whole, const auto* piece, std::int64_t at) {
      const std::int64_t begin = std::clamp(at, -size_, all_);
      for (std::int64_t i = std::max<std::int64_t>(0, -begin); i < std::min(size_, all_ - begin); ++i)
        whole[(begin + i) * whole_step_] = piece[i * piece_step_];
    });
  }

 private:
  RunKernel(const TensorView& whole, const TensorView& piece, const TensorView& offset, const Shape& dim_last)
      : whole_(whole),
        piece_(piece),
        offset_(offset),
        size_(row_length(dim_last)),
        all_(whole.shape.size_of(dim_last[dim_last.rank() - 1].name)),
        whole_step_(row_stride(strides_along(whole, dim_last))),
        piece_step_(row_stride(strides_along(piece, dim_last))),
        rows_(dim_last,
              {strides_along(whole, dim_last), strides_along(piece, dim_last), strides_along(offset, dim_last)}) {}

  template <class Row>
  void each_row(const Row& row) {
    visit_dtype(whole_.dtype, [&]<class T>() {
      rows_.each([&](const std::int64_t* o, const std::int64_t*) {
        row(static_cast<T*>(whole_.data) + o[0], static_cast<T*>(piece_.data) + o[1], integer_at(offset_, o[2]));
      });
    });
  }

  TensorView whole_, piece_, offset_;
  std::int64_t size_, all_, whole_step_, piece_step_;
  Rows rows_;
};

Kernel dynamic_slice(const KernelArgs& args) {
  return [run = RunKernel(args.inputs[0], args.outputs[0], args.inputs[1], args.instr.as<DynamicSlice>()->dim)](
             const StepState&) mutable { run.take(); };
}

// A piece whose indices along `dim` have places of their own in the whole.
class PlacesKernel {
 public:
  PlacesKernel(const TensorView& whole, const TensorView& piece, const TensorView& places, const std::string& dim)
      : whole_(whole),
        piece_(piece),
        places_(places),
        all_(whole.shape.size_of(dim)),
        step_(whole.strides[whole.shape.position(dim)]),
        shape_(Shape{piece.shape.dim(dim)}.plus(piece.shape.minus({piece.shape.dim(dim)}))),
        length_(row_length(shape_)),
        whole_step_(row_stride(strides_along(whole, shape_))),
        piece_step_(row_stride(strides_along(piece, shape_))),
        rows_(shape_, {strides_along(without_dim(whole, dim), shape_), strides_along(piece, shape_),
                       strides_along(places, shape_)}) {}

  void put() {
    const bool alone = shape_.rank() == 1;  // a row is along the dim itself
    visit_dtype(whole_.dtype, [&]<class T>() {
      rows_.each([&](const std::int64_t* o, const std::int64_t*) {
        for (std::int64_t i = 0; i < length_; ++i) {
          const std::int64_t at = integer_at(places_, o[2] + (alone ? i * places_.strides[0] : 0));
          if (at < 0 || at >= all_) continue;
          static_cast<T*>(whole_.data)[o[0] + at * step_ + (alone ? 0 : i * whole_step_)] =
              static_cast<const T*>(piece_.data)[o[1] + i * piece_step_];
        }
      });
    });
  }

 private:
  TensorView whole_, piece_, places_;
  std::int64_t all_, step_;
  Shape shape_;
  std::int64_t length_, whole_step_, piece_step_;
  Rows rows_;
};

Kernel dynamic_update(const KernelArgs& args) {
  const TensorView& out = args.outputs[0];
  const std::string& dim = args.instr.as<DynamicUpdate>()->dim;
  if (args.inputs[2].shape.has(dim))
    return [copy = ElementCopy(args.inputs[0], out),
            run = PlacesKernel(out, args.inputs[1], args.inputs[2], dim)](const StepState&) mutable {
      copy.run();
      run.put();
    };
  return [copy = ElementCopy(args.inputs[0], out),
          run = RunKernel(out, args.inputs[1], args.inputs[2], dim)](const StepState&) mutable {
    copy.run();
    run.put();
  };
}

// For every element of the output: x at (index - start), or zero outside the shard.
class GatherKernel {
 public:
  GatherKernel(const TensorView& x, const TensorView& indices, const TensorView& out, const std::string& dim)
      : x_(x),
        indices_(indices),
        out_(out),
        d_(x.shape.position(dim)),
        x_strides_(strides_along(without_dim(x, dim), out.shape)),
        index_strides_(strides_along(indices, out.shape)),
        rows_(out.shape, {x_strides_, index_strides_, out.strides}) {}

  void run() {
    const std::int64_t length = row_length(out_.shape), x_step = row_stride(x_strides_),
                       index_step = row_stride(index_strides_), out_step = row_stride(out_.strides);
    visit_dtype(out_.dtype, [&]<class T>() {
      const T* source = static_cast<const T*>(x_.data);
      T* target = static_cast<T*>(out_.data);
      rows_.each([&](const std::int64_t* o, const std::int64_t*) {
        for (std::int64_t i = 0; i < length; ++i) {
          const std::int64_t index = from_start(integer_at(indices_, o[1] + i * index_step), x_.begin[d_]);
          const bool here = index >= 0 && index < x_.shape[d_].size;
          target[o[2] + i * out_step] = here ? source[o[0] + i * x_step + index * x_.strides[d_]] : T{};
        }
      });
    });
  }

 private:
  TensorView x_, indices_, out_;
  std::size_t d_;
  std::vector<std::int64_t> x_strides_, index_strides_;
  Rows rows_;
};

// Adds every update at its index; sums are kept wide and rounded once. An update is repeated along dims that only the
// indices have.
template <class Wide>
class ScatterKernel {
 public:
  explicit ScatterKernel(const KernelArgs& args)
      : indices_(args.inputs[0]),
        updates_(args.inputs[1]),
        out_(args.outputs[0]),
        d_(out_.shape.position(args.instr.as<ScatterAdd>()->dim)),
        every_(updates_.shape.plus(indices_.shape)),
        update_strides_(strides_along(updates_, every_)),
        index_strides_(strides_along(indices_, every_)),
        sum_strides_(strides_along(
            without_dim(dense_view(nullptr, out_.dtype, out_.shape), args.instr.as<ScatterAdd>()->dim), every_)),
        rows_(every_, {update_strides_, index_strides_, sum_strides_}) {
    const auto count = static_cast<std::size_t>(out_.shape.elements());
    sums_ = {static_cast<Wide*>(args.workspace(count * sizeof(Wide))), count};
  }

  void run() {
    std::fill(sums_.begin(), sums_.end(), Wide{0});
    visit_dtype(out_.dtype, [&]<class T>() {
      add_updates<T>();
      T* target = static_cast<T*>(out_.data);
      for (std::size_t i = 0; i < sums_.size(); ++i) {
        if constexpr (std::is_same_v<Wide, double>) target[i] = from_double<T>(sums_[i]);
        else target[i] = from_int64<T>(static_cast<std::int64_t>(sums_[i]));
      }
    });
  }

 private:
  template <class T>
  void add_updates() {
    const T* source = static_cast<const T*>(updates_.data);
    const std::int64_t length = row_length(every_), dim_stride = out_.strides[d_];
    rows_.each([&](const std::int64_t* o, const std::int64_t*) {
      for (std::int64_t i = 0; i < length; ++i) {
        const std::int64_t index =
            from_start(integer_at(indices_, o[1] + i * row_stride(index_strides_)), out_.begin[d_]);
        if (index < 0 || index >= out_.shape[d_].size) continue;
        Wide& sum = sums_[at(o[2] + i * row_stride(sum_strides_) + index * dim_stride)];
        const T update = source[o[0] + i * row_stride(update_strides_)];
        if constexpr (std::is_same_v<Wide, double>) sum += to_double(update);
        else sum += static_cast<Wide>(to_int64(update));
      }
    });
  }

  TensorView indices_, updates_, out_;
  std::size_t d_;
  Shape every_;
  std::vector<std::int64_t> update_strides_, index_strides_, sum_strides_;
  Rows rows_;
  std::span<Wide> sums_;
};

Kernel gather(const KernelArgs& args) {
  return [kernel = GatherKernel(args.inputs[0], args.inputs[1], args.outputs[0], args.instr.as<Gather>()->dim)](
             const StepState&) mutable { kernel.run(); };
}

Kernel scatter_add(const KernelArgs& args) {
  if (is_float(args.outputs[0].dtype))
    return [kernel = ScatterKernel<double>(args)](const StepState&) mutable { kernel.run(); };
  return [kernel = ScatterKernel<std::uint64_t>(args)](const StepState&) mutable { kernel.run(); };
}

const AddKernel kCopyKernel(kernels(), Copy::kName, copy);
const AddKernel kConcatKernel(kernels(), Concat::kName, concat);
const AddKernel kDynamicSliceKernel(kernels(), DynamicSlice::kName, dynamic_slice);
const AddKernel kDynamicUpdateKernel(kernels(), DynamicUpdate::kName, dynamic_update);
const AddKernel kGatherKernel(kernels(), Gather::kName, gather);
const AddKernel kScatterAddKernel(kernels(), ScatterAdd::kName, scatter_add, wide_bytes);

}  // namespace

}  // namespace weft::reference
