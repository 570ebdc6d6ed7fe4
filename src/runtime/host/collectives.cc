// Collectives: pack the operand for the wire, communicate, unpack. A wire knows blocks in rank order; here a block is a
// shard of one dim, so a gather along an inner dim moves blocks into place afterwards.
#include "base/index.h"
#include "runtime/host/blocks.h"
#include "runtime/host/kernel_table.h"
#include "runtime/host/strided.h"

namespace weft::host {

namespace {

std::size_t elements(const Shape& shape) { return static_cast<std::size_t>(shape.elements()); }

// Workspace for `blocks` dense blocks of this shape.
std::vector<TensorView> blocks(const KernelArgs& args, const Shape& shape, DType dtype, int count) {
  const std::size_t bytes = elements(shape) * size_of(dtype);
  auto* data = static_cast<std::byte*>(args.workspace(bytes * static_cast<std::size_t>(count)));
  std::vector<TensorView> views;
  for (int i = 0; i < count; ++i) views.push_back(dense_view(data + at(i) * bytes, dtype, shape));
  return views;
}

comm::Buffer buffer(const TensorView& view) { return {view.data, elements(view.shape), view.dtype}; }

comm::Buffer buffer(const std::vector<TensorView>& views) {
  return {views[0].data, elements(views[0].shape) * views.size(), views[0].dtype};
}

// Copies the runs of a dim into blocks, or blocks into the runs of a dim.
std::vector<ElementCopy> packing(const TensorView& view, const std::string& dim,
                                 const std::vector<TensorView>& blocks) {
  std::vector<ElementCopy> copies;
  const int count = static_cast<int>(blocks.size());
  for (int r = 0; r < count; ++r) copies.emplace_back(block_of(view, dim, count, r), blocks[at(r)]);
  return copies;
}
std::vector<ElementCopy> unpacking(const std::vector<TensorView>& blocks, const TensorView& view,
                                   const std::string& dim) {
  std::vector<ElementCopy> copies;
  const int count = static_cast<int>(blocks.size());
  for (int r = 0; r < count; ++r) copies.emplace_back(blocks[at(r)], block_of(view, dim, count, r));
  return copies;
}

// One collective on packed buffers.
struct Call {
  comm::Group& group;
  comm::Collective what;
  comm::Buffer in, out;
  comm::Args args;
  std::string label;
  comm::Ticket ticket = {};

  void start() {
    args.label = label;
    ticket = group.start(what, in, out, args);
  }
  void wait(const StepState& state) { group.wait(ticket, state.deadline); }
};

// Copies, calls, copies.
BoundCollective bound(std::vector<ElementCopy> pack, std::vector<Call> calls, std::vector<ElementCopy> unpack) {
  auto shared = std::make_shared<std::vector<Call>>(std::move(calls));
  return {[pack = std::move(pack), shared](const StepState&) mutable {
            for (ElementCopy& copy : pack) copy.run();
            for (Call& call : *shared) call.start();
          },
          [unpack = std::move(unpack), shared](const StepState& state) mutable {
            for (Call& call : *shared) call.wait(state);
            for (ElementCopy& copy : unpack) copy.run();
          }};
}

BoundCollective all_reduce(const KernelArgs& args) {
  const auto& operation = *args.instr.as<AllReduce>();
  comm::Group& group = args.group(operation.axes);
  std::vector<ElementCopy> copies;
  std::vector<Call> calls;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    const comm::Buffer out = buffer(args.outputs[i]);
    copies.emplace_back(args.inputs[i], args.outputs[i]);
    calls.push_back({group, comm::Collective::kAllReduce, out, out, {.reduce = operation.how}, args.label});
  }
  return bound(std::move(copies), std::move(calls), {});
}

// A collective of one operand and result, for several one after another.
template <class Make>
BoundCollective for_each_operand(const KernelArgs& args, const Make& make) {
  if (args.inputs.size() == 1) return make(args);
  std::vector<Kernel> starts, dones;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    KernelArgs one = args;
    one.inputs = {args.inputs[i]};
    one.outputs = {args.outputs[i]};
    BoundCollective both = make(one);
    starts.push_back(std::move(both.start));
    dones.push_back(std::move(both.done));
  }
  const auto all = [](const std::vector<Kernel>& kernels) -> Kernel {
    return [kernels](const StepState& state) {
      for (const Kernel& kernel : kernels) kernel(state);
    };
  };
  return {all(starts), all(dones)};
}

BoundCollective reduce_scatter_one(const KernelArgs& args) {
  const auto& operation = *args.instr.as<ReduceScatter>();
  const TensorView& out = args.outputs[0];
  comm::Group& group = args.group(operation.axes);
  const comm::Args how{.reduce = operation.how};
  if (lies_in_blocks(args.inputs[0], operation.dim))
    return bound({}, {{group, comm::Collective::kReduceScatter, buffer(args.inputs[0]), buffer(out), how, args.label}},
                 {});
  const std::vector<TensorView> packed = blocks(args, out.shape, out.dtype, group.size());
  return bound(packing(args.inputs[0], operation.dim, packed),
               {{group, comm::Collective::kReduceScatter, buffer(packed), buffer(out), how, args.label}}, {});
}

BoundCollective all_gather_one(const KernelArgs& args) {
  const auto& operation = *args.instr.as<AllGather>();
  const TensorView& out = args.outputs[0];
  comm::Group& group = args.group(operation.axes);
  const Shape one = block_of(out, operation.dim, group.size(), 0).shape;
  if (lies_in_blocks(out, operation.dim)) {
    const TensorView own = block_of(out, operation.dim, group.size(), group.rank());
    return bound({ElementCopy(args.inputs[0], own)},
                 {{group, comm::Collective::kAllGather, buffer(own), buffer(out), {}, args.label}}, {});
  }
  const std::vector<TensorView> packed = blocks(args, one, out.dtype, group.size());
  const TensorView& mine = packed[at(group.rank())];
  return bound({ElementCopy(args.inputs[0], mine)},
               {{group, comm::Collective::kAllGather, buffer(mine), buffer(packed), {}, args.label}},
               unpacking(packed, out, operation.dim));
}

BoundCollective reduce_scatter(const KernelArgs& args) { return for_each_operand(args, reduce_scatter_one); }

BoundCollective all_gather(const KernelArgs& args) { return for_each_operand(args, all_gather_one); }

BoundCollective all_to_all(const KernelArgs& args) {
  const auto& operation = *args.instr.as<AllToAll>();
  const TensorView &in = args.inputs[0], &out = args.outputs[0];
  comm::Group& group = args.group(operation.axes);
  const Shape one = block_of(in, operation.split, group.size(), 0).shape;
  const auto packed = [&] { return blocks(args, one, in.dtype, group.size()); };
  std::vector<ElementCopy> pack, unpack;
  comm::Buffer sent = buffer(in), received = buffer(out);
  if (!lies_in_blocks(in, operation.split)) {
    const std::vector<TensorView> all = packed();
    pack = packing(in, operation.split, all);
    sent = buffer(all);
  }
  if (!lies_in_blocks(out, operation.gather)) {
    const std::vector<TensorView> all = packed();
    unpack = unpacking(all, out, operation.gather);
    received = buffer(all);
  }
  return bound(std::move(pack), {{group, comm::Collective::kAllToAll, sent, received, {}, args.label}},
               std::move(unpack));
}

BoundCollective permute(const KernelArgs& args) {
  const auto& operation = *args.instr.as<Permute>();
  comm::Group& group = args.group(operation.axes);
  comm::Args peers;
  peers.target = static_cast<int>(operation.to[at(group.rank())]);
  for (std::size_t r = 0; r < operation.to.size(); ++r)
    if (operation.to[r] == group.rank()) peers.source = static_cast<int>(r);
  const comm::Buffer out = buffer(args.outputs[0]);
  return bound({ElementCopy(args.inputs[0], args.outputs[0])},
               {{group, comm::Collective::kPermute, out, out, peers, args.label}}, {});
}

std::int64_t packing_bytes(const Program& program, const Instr& instr,
                           const ByValue<std::vector<std::int64_t>>& strides) {
  const auto if_packed = [&](ValueId id, const std::string& dim) {
    const TensorView view = unplaced_view(program, id, strides);
    return lies_in_blocks(view, dim) ? 0 : host_aligned(bytes_of(program.values[id]));
  };
  std::int64_t bytes = 0;
  if (const auto* operation = instr.as<ReduceScatter>())
    for (const ValueId id : instr.inputs) bytes += if_packed(id, operation->dim);
  if (const auto* operation = instr.as<AllGather>())
    for (const ValueId id : instr.outputs) bytes += if_packed(id, operation->dim);
  if (const auto* operation = instr.as<AllToAll>())
    bytes = if_packed(instr.inputs[0], operation->split) + if_packed(instr.outputs[0], operation->gather);
  return bytes;
}

const AddCollective kAllReduceKernel(common_kernels(), AllReduce::kName, all_reduce);
const AddCollective kReduceScatterKernel(common_kernels(), ReduceScatter::kName, reduce_scatter, packing_bytes);
const AddCollective kAllGatherKernel(common_kernels(), AllGather::kName, all_gather, packing_bytes);
const AddCollective kAllToAllKernel(common_kernels(), AllToAll::kName, all_to_all, packing_bytes);
const AddCollective kPermuteKernel(common_kernels(), Permute::kName, permute);

}  // namespace

}  // namespace weft::host
