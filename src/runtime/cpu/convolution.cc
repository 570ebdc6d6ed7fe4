#include "runtime/cpu/convolution.h"

#include <algorithm>
#include <array>
#include <string>

#include "runtime/cpu/onednn.h"
#include "runtime/host/kernel.h"

namespace weft::cpu {

namespace {

using onednn::engine;
using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

// A value with its channels last. A dim of size 1 gets the stride that it would have if the value were dense.
Desc strided(const Dims& sizes, Dims strides, const std::vector<std::size_t>& order, DType dtype) {
  std::int64_t span = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    const std::size_t d = order[i];
    if (sizes[d] == 1) strides[d] = span;
    span = std::max(span, sizes[d] * strides[d]);
  }
  return {sizes, onednn::type_of(dtype), strides};
}

Desc activations(const ConvolutionShape& s, bool of_x) {
  const std::int64_t channels = s.groups * (of_x ? s.in : s.out);
  Dims sizes = {s.batch, channels}, strides = {of_x ? s.x_batch : s.y_batch, of_x ? s.x_channel : s.y_channel};
  std::vector<std::size_t> order = {0};
  for (const ConvolutionDim& dim : s.space) {
    order.push_back(sizes.size());
    sizes.push_back(of_x ? dim.elements : dim.places);
    strides.push_back(of_x ? dim.x : dim.y);
  }
  order.push_back(1);
  return strided(sizes, strides, order, of_x ? s.x : s.y);
}

Desc filter(const ConvolutionShape& s) {
  Dims sizes, strides;
  if (s.groups > 1) sizes.push_back(s.groups), strides.push_back(s.filter_group);
  const std::size_t out = sizes.size(), in = out + 1;
  sizes.insert(sizes.end(), {s.out, s.in});
  strides.insert(strides.end(), {s.filter_out, s.filter_in});
  std::vector<std::size_t> order;
  for (const ConvolutionDim& dim : s.space) {
    order.push_back(sizes.size());
    sizes.push_back(dim.taps);
    strides.push_back(dim.filter);
  }
  order.insert(order.end(), {in, out});
  if (s.groups > 1) order.push_back(0);
  return strided(sizes, strides, order, s.filter);
}

Desc any_of(const Desc& plain, dnnl::memory::data_type type) {
  return {plain.dims(), type, dnnl::memory::format_tag::any};
}
Desc any_of(const Desc& plain) { return any_of(plain, plain.data_type()); }

// A primitive and the layouts that it wants.
struct Candidate {
  dnnl::primitive primitive;
  Desc x, y, filter, scratch;
  std::string name;

  bool is_fast() const {
    return !name.empty() && name.find("ref") == std::string::npos && name.find("gemm") == std::string::npos;
  }
  bool is_usable() const { return !name.empty() && name.find("ref") == std::string::npos; }
};

template <class Primitive, class Made>
Candidate candidate(const Made& made, const Desc& x, const Desc& y, const Desc& filter) {
  return {Primitive(made), x, y, filter, made.scratchpad_desc(), made.impl_info_str()};
}

// What oneDNN has for these layouts; without a name if nothing.
Candidate candidate_for(const ConvolutionShape& s, const Desc& x, const Desc& y, const Desc& filter) {
  constexpr auto kDirect = dnnl::algorithm::convolution_direct;
  Dims strides, dilations, before, after;
  for (const ConvolutionDim& dim : s.space) {
    strides.push_back(dim.stride);
    dilations.push_back(dim.dilation - 1);
    before.push_back(dim.before);
    after.push_back(dim.after());
  }
  const dnnl::primitive_attr attributes = onednn::attributes();
  const auto forward = [&](const Desc& fx, const Desc& fy, const Desc& ff) {
    return dnnl::convolution_forward::primitive_desc(
        {dnnl::prop_kind::forward_training, kDirect, fx, ff, fy, strides, dilations, before, after}, attributes,
        engine());
  };
  try {
    if (s.direction == Direction::kForward) {
      const auto made = forward(x, y, filter);
      return candidate<dnnl::convolution_forward>(made, made.src_desc(), made.dst_desc(), made.weights_desc());
    }
    // oneDNN asks which forward convolution this belongs to: one of the operands' dtype.
    const auto type = onednn::type_of(s.direction == Direction::kToInput ? s.y : s.x);
    const auto hint = forward(any_of(x, type), any_of(y, type), any_of(filter, type));
    if (s.direction == Direction::kToInput) {
      const dnnl::convolution_backward_data::primitive_desc made(
          {kDirect, x, filter, y, strides, dilations, before, after}, attributes, engine(), hint);
      return candidate<dnnl::convolution_backward_data>(made, made.diff_src_desc(), made.diff_dst_desc(),
                                                        made.weights_desc());
    }
    const dnnl::convolution_backward_weights::primitive_desc made(
        {kDirect, x, filter, y, strides, dilations, before, after}, attributes, engine(), hint);
    return candidate<dnnl::convolution_backward_weights>(made, made.src_desc(), made.diff_dst_desc(),
                                                         made.diff_weights_desc());
  } catch (const dnnl::error&) {
    return {};
  }
}

// x and y are left where they lie if there is a fast primitive for that; the filter is small and always moves.
Candidate best_candidate(const ConvolutionShape& s, const Desc& x, const Desc& y, const Desc& filter) {
  Candidate in_place = candidate_for(s, x, y, any_of(filter));
  if (in_place.is_fast()) return in_place;
  Candidate moved = candidate_for(s, any_of(x), any_of(y), any_of(filter));
  if (moved.is_fast()) return moved;
  return in_place.is_usable() ? in_place : moved.is_usable() ? moved : Candidate{};
}

// x, y or the filter: where the caller has it, and where the primitive wants it.
struct Operand {
  dnnl::memory given, used;
  dnnl::reorder move;
  bool moves = false;
  std::size_t at = 0;  // of the moved one, in scratch
};

std::size_t aligned(std::size_t bytes) {
  return static_cast<std::size_t>(host_aligned(static_cast<std::int64_t>(bytes)));
}

}  // namespace

struct Convolution::Bound {
  dnnl::primitive primitive;
  Operand x, y, filter;
  Direction direction;
  dnnl::memory scratch;
  std::size_t scratch_at = 0, scratch_bytes = 0;

  Operand& result() { return direction == Direction::kForward ? y : direction == Direction::kToInput ? x : filter; }

  void place(Operand& operand, const Desc& given, const Desc& used, std::size_t& most) {
    operand.given = dnnl::memory(given, engine(), nullptr);
    operand.used = dnnl::memory(used, engine(), nullptr);
    operand.moves = given != used;
    if (!operand.moves) return;
    const bool is_result = &operand == &result();
    const dnnl::reorder::primitive_desc made(engine(), is_result ? used : given, engine(), is_result ? given : used,
                                             onednn::attributes());
    operand.move = dnnl::reorder(made);
    operand.at = scratch_at;
    scratch_at += aligned(used.get_size());
    most = std::max(most, made.scratchpad_desc().get_size());
  }

  void move(Operand& operand) {
    const bool is_result = &operand == &result();
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, (is_result ? operand.used : operand.given).get()},
                                    {DNNL_ARG_TO, (is_result ? operand.given : operand.used).get()},
                                    {DNNL_ARG_SCRATCHPAD, scratch.get()}};
    onednn::run(operand.move, args, 3);
  }

  void set(Operand& operand, void* data, std::byte* memory) {
    dnnl_memory_set_data_handle(operand.given.get(), data);
    dnnl_memory_set_data_handle(operand.used.get(), operand.moves ? memory + operand.at : data);
  }
};

std::optional<Convolution> Convolution::make(const ConvolutionShape& shape) {
  onednn::stream_of_this_thread();
  try {
    const Desc x = activations(shape, true), y = activations(shape, false), taps = filter(shape);
    const Candidate best = best_candidate(shape, x, y, taps);
    if (best.name.empty()) return {};
    auto bound = std::make_unique<Bound>();
    bound->primitive = best.primitive;
    bound->direction = shape.direction;
    std::size_t most = best.scratch.get_size();
    bound->place(bound->x, x, best.x, most);
    bound->place(bound->y, y, best.y, most);
    bound->place(bound->filter, taps, best.filter, most);
    bound->scratch = dnnl::memory(best.scratch, engine(), nullptr);
    bound->scratch_bytes = bound->scratch_at + aligned(most);
    return Convolution(std::move(bound));
  } catch (const dnnl::error&) {  // strides that no memory of oneDNN's has
    return {};
  }
}

Convolution::Convolution(std::unique_ptr<Bound> bound) : bound_(std::move(bound)) {}
Convolution::Convolution(Convolution&&) noexcept = default;
Convolution& Convolution::operator=(Convolution&&) noexcept = default;
Convolution::~Convolution() = default;

std::size_t Convolution::scratch_bytes() const { return bound_->scratch_bytes; }

void Convolution::run(void* x, void* y, void* filter, std::byte* scratch) {
  Bound& b = *bound_;
  b.set(b.x, x, scratch);
  b.set(b.y, y, scratch);
  b.set(b.filter, filter, scratch);
  dnnl_memory_set_data_handle(b.scratch.get(), scratch + b.scratch_at);
  for (Operand* operand : {&b.x, &b.y, &b.filter})
    if (operand->moves && operand != &b.result()) b.move(*operand);
  const bool forward = b.direction == Direction::kForward, to_input = b.direction == Direction::kToInput;
  const dnnl_exec_arg_t args[] = {{to_input ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, b.x.used.get()},
                                  {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, b.y.used.get()},
                                  {forward || to_input ? DNNL_ARG_WEIGHTS : DNNL_ARG_DIFF_WEIGHTS, b.filter.used.get()},
                                  {DNNL_ARG_SCRATCHPAD, b.scratch.get()}};
  onednn::run(b.primitive, args, 4);
  if (b.result().moves) b.move(b.result());
}

}  // namespace weft::cpu
