// Collectives: pack the operand for the wire, talk, unpack. A wire knows blocks in rank order; here a block is a shard
// of one dim, so gathering along an inner dim moves blocks into place afterwards.
#include "runtime/reference/kernels.h"

namespace weft::reference {

namespace {

std::size_t elements(const Shape& shape) { return static_cast<std::size_t>(shape.elements()); }

// The rank-th of `parts` equal runs of a dim.
TensorView block(TensorView view, const std::string& dim, int parts, int rank) {
  const std::size_t d = view.shape.position(dim);
  const std::int64_t size = view.shape[d].size / parts;
  view.data = static_cast<std::byte*>(view.data) +
              rank * size * view.strides[d] * static_cast<std::int64_t>(size_of(view.dtype));
  view.shape = view.shape.resized(dim, size);
  return view;
}

// Workspace for `blocks` dense blocks of this shape.
std::vector<TensorView> blocks(const KernelArgs& args, const Shape& shape, DType dtype, int count) {
  const std::size_t bytes = elements(shape) * size_of(dtype);
  auto* data = static_cast<std::byte*>(args.workspace(bytes * static_cast<std::size_t>(count)));
  std::vector<TensorView> views;
  for (int i = 0; i < count; ++i) views.push_back(dense_view(data + static_cast<std::size_t>(i) * bytes, dtype, shape));
  return views;
}

comm::Buffer buffer(const std::vector<TensorView>& views) {
  return {views[0].data, elements(views[0].shape) * views.size(), views[0].dtype};
}

// Starts and finishes one collective on packed blocks.
void talk(comm::Group& group, comm::Collective what, const std::vector<TensorView>& in,
          const std::vector<TensorView>& out, const comm::Args& args, const StepState& state) {
  group.wait(group.start(what, buffer(in), buffer(out), args), state.deadline);
}

}  // namespace

Kernel all_reduce(const KernelArgs& args) {
  const auto& work = *args.instr.as<AllReduce>();
  comm::Group& group = args.group(work.axes);
  return [&group, in = args.inputs, out = args.outputs, reduce = work.how, label = args.label](const StepState& state) {
    for (std::size_t i = 0; i < in.size(); ++i) {
      copy_elements(in[i], out[i]);
      talk(group, comm::Collective::kAllReduce, {out[i]}, {out[i]}, {.reduce = reduce, .label = label}, state);
    }
  };
}

Kernel reduce_scatter(const KernelArgs& args) {
  const auto& work = *args.instr.as<ReduceScatter>();
  comm::Group& group = args.group(work.axes);
  const std::vector<TensorView> packed = blocks(args, args.outputs[0].shape, args.outputs[0].dtype, group.size());
  return [&group, in = args.inputs[0], out = args.outputs[0], packed, dim = work.dim, reduce = work.how,
          label = args.label](const StepState& state) {
    for (int r = 0; r < group.size(); ++r)
      copy_elements(block(in, dim, group.size(), r), packed[static_cast<std::size_t>(r)]);
    talk(group, comm::Collective::kReduceScatter, packed, {out}, {.reduce = reduce, .label = label}, state);
  };
}

Kernel all_gather(const KernelArgs& args) {
  const auto& work = *args.instr.as<AllGather>();
  comm::Group& group = args.group(work.axes);
  const Shape one = block(args.outputs[0], work.dim, group.size(), 0).shape;
  const std::vector<TensorView> packed = blocks(args, one, args.outputs[0].dtype, group.size());
  return [&group, in = args.inputs[0], out = args.outputs[0], packed, dim = work.dim,
          label = args.label](const StepState& state) {
    const TensorView& mine = packed[static_cast<std::size_t>(group.rank())];
    copy_elements(in, mine);
    talk(group, comm::Collective::kAllGather, {mine}, packed, {.label = label}, state);
    for (int r = 0; r < group.size(); ++r)
      copy_elements(packed[static_cast<std::size_t>(r)], block(out, dim, group.size(), r));
  };
}

Kernel all_to_all(const KernelArgs& args) {
  const auto& work = *args.instr.as<AllToAll>();
  comm::Group& group = args.group(work.axes);
  const Shape one = block(args.inputs[0], work.split, group.size(), 0).shape;
  const std::vector<TensorView> sent = blocks(args, one, args.inputs[0].dtype, group.size());
  const std::vector<TensorView> received = blocks(args, one, args.inputs[0].dtype, group.size());
  return [&group, in = args.inputs[0], out = args.outputs[0], sent, received, work,
          label = args.label](const StepState& state) {
    for (int r = 0; r < group.size(); ++r)
      copy_elements(block(in, work.split, group.size(), r), sent[static_cast<std::size_t>(r)]);
    talk(group, comm::Collective::kAllToAll, sent, received, {.label = label}, state);
    for (int r = 0; r < group.size(); ++r)
      copy_elements(received[static_cast<std::size_t>(r)], block(out, work.gather, group.size(), r));
  };
}

Kernel permute(const KernelArgs& args) {
  const auto& work = *args.instr.as<Permute>();
  comm::Group& group = args.group(work.axes);
  comm::Args wire_args{.label = {}};
  wire_args.target = static_cast<int>(work.to[static_cast<std::size_t>(group.rank())]);
  for (std::size_t r = 0; r < work.to.size(); ++r)
    if (work.to[r] == group.rank()) wire_args.source = static_cast<int>(r);
  return [&group, in = args.inputs[0], out = args.outputs[0], wire_args, label = args.label](const StepState& state) {
    comm::Args now = wire_args;
    now.label = label;
    copy_elements(in, out);
    talk(group, comm::Collective::kPermute, {out}, {out}, now, state);
  };
}

}  // namespace weft::reference
