// gather: for every index one block of x, by memcpy where the block is one run of memory.
#include <cstring>
#include <memory>

#include "runtime/cpu/kernels.h"
#include "runtime/host/views.h"
#include "runtime/host/strided.h"
#include "runtime/host/workers.h"

namespace weft::cpu {

namespace {

struct GatherLoop {
  std::int64_t size = 1, x = 0, index = 0, out = 0;  // strides, in elements
};

// Neighbours that both sides walk as one are one.
void add_loop(std::vector<GatherLoop>& loops, const GatherLoop& loop) {
  if (loop.size == 1) return;
  GatherLoop* last = loops.empty() ? nullptr : &loops.back();
  const bool joins = last && last->x == loop.x * loop.size && last->index == loop.index * loop.size &&
                     last->out == loop.out * loop.size;
  if (joins) *last = {last->size * loop.size, loop.x, loop.index, loop.out};
  else loops.push_back(loop);
}

class GatherKernel {
 public:
  GatherKernel(const KernelArgs& args, const std::string& dim)
      : x_(args.inputs[0]), indices_(args.inputs[1]), out_(args.outputs[0]), workers_(*args.workers) {
    const std::size_t d = x_.shape.position(dim);
    size_ = x_.shape[d].size;
    step_ = x_.strides[d];
    begin_ = x_.begin[d];
    bytes_ = static_cast<std::int64_t>(size_of(out_.dtype));
    for (std::size_t o = 0; o < out_.shape.rank(); ++o) {
      const std::string& name = out_.shape[o].name;
      const auto in_x = x_.shape.find(name), in_indices = indices_.shape.find(name);
      const bool of_x = in_x && *in_x != d;
      const GatherLoop loop{out_.shape[o].size, of_x ? x_.strides[*in_x] : 0,
                            in_indices ? indices_.strides[*in_indices] : 0, out_.strides[o]};
      add_loop(in_indices ? outer_ : inner_, loop);
    }
    for (const GatherLoop& loop : outer_) count_ *= loop.size;
    for (const GatherLoop& loop : inner_) block_ *= loop.size;
    one_run_ = inner_.empty() || (inner_.size() == 1 && inner_[0].x == 1 && inner_[0].out == 1);
  }

  void run() const {
    if (count_ * block_ * bytes_ < kAlone) return run_part({0, count_});
    workers_.run([&](int worker) { run_part(share_of(count_, worker, workers_.size())); });
  }

 private:
  static constexpr std::int64_t kAlone = 1 << 15;

  void run_part(Share part) const {
    for (std::int64_t i = part.begin; i < part.end; ++i) {
      std::int64_t rest = i, x = 0, index = 0, out = 0;
      for (std::size_t d = outer_.size(); d-- > 0; rest /= outer_[d].size) {
        const std::int64_t at = rest % outer_[d].size;
        x += at * outer_[d].x;
        index += at * outer_[d].index;
        out += at * outer_[d].out;
      }
      const std::int64_t row = from_start(integer_at(indices_, index), begin_);
      const bool here = row >= 0 && row < size_;
      block(here ? static_cast<const std::byte*>(x_.data) + (x + row * step_) * bytes_ : nullptr,
            static_cast<std::byte*>(out_.data) + out * bytes_);
    }
  }

  // Zeros where there is no source.
  void block(const std::byte* from, std::byte* to) const {
    const auto bytes = static_cast<std::size_t>(bytes_);
    if (one_run_) {
      if (from) std::memcpy(to, from, static_cast<std::size_t>(block_) * bytes);
      else std::memset(to, 0, static_cast<std::size_t>(block_) * bytes);
      return;
    }
    if (inner_.size() == 1 && from && bytes_ == 4) return line(from, to);
    for (std::int64_t e = 0; e < block_; ++e) {
      std::int64_t rest = e, x = 0, out = 0;
      for (std::size_t d = inner_.size(); d-- > 0; rest /= inner_[d].size) {
        x += rest % inner_[d].size * inner_[d].x;
        out += rest % inner_[d].size * inner_[d].out;
      }
      if (from) std::memcpy(to + out * bytes_, from + x * bytes_, bytes);
      else std::memset(to + out * bytes_, 0, bytes);
    }
  }

  // Of numbers of four bytes.
  void line(const std::byte* from, std::byte* to) const {
    const auto* source = reinterpret_cast<const std::uint32_t*>(from);
    auto* target = reinterpret_cast<std::uint32_t*>(to);
    for (std::int64_t e = 0; e < block_; ++e) target[e * inner_[0].out] = source[e * inner_[0].x];
  }

  TensorView x_, indices_, out_;
  Workers& workers_;
  std::int64_t size_ = 1, step_ = 0, begin_ = 0, bytes_ = 4;
  std::vector<GatherLoop> outer_, inner_;  // along the indices; along what only x has
  std::int64_t count_ = 1, block_ = 1;
  bool one_run_ = true;
};

Kernel gather(const KernelArgs& args) {
  return [kernel = std::make_shared<GatherKernel>(args, args.instr.as<Gather>()->dim)](const StepState&) {
    kernel->run();
  };
}

const AddKernel kGatherKernel(kernels(), Gather::kName, gather);

}  // namespace

}  // namespace weft::cpu
