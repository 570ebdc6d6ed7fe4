#include "runtime/cpu/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "runtime/host/strided.h"

namespace weft::cpu {

namespace {

constexpr std::int64_t kPieceBytes = 1 << 16;   // the most that one task moves in a run
constexpr std::int64_t kAcross = 512;           // the most rows of a transposition in one task
constexpr std::int64_t kCopiedAlone = 1 << 15;  // bytes that are not worth waking the others for

template <class T>
void copy_strided(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step,
                  std::int64_t count) {
  const T* source = reinterpret_cast<const T*>(from);
  T* target = reinterpret_cast<T*>(to);
  for (std::int64_t i = 0; i < count; ++i) target[i * to_step] = source[i * from_step];
}

}  // namespace

StridedCopy::StridedCopy(const TensorView& from, const TensorView& to)
    : from_(static_cast<const std::byte*>(from.data)),
      to_(static_cast<std::byte*>(to.data)),
      bytes_(static_cast<std::int64_t>(size_of(to.dtype))),
      in_place_(from.data == to.data && from.shape == to.shape && from.strides == to.strides) {
  const std::vector<std::int64_t> from_strides = strides_along(from, to.shape);
  std::vector<Loop> loops;
  for (std::size_t d = 0; d < to.shape.rank(); ++d)
    if (to.shape[d].size > 1) loops.push_back({to.shape[d].size, from_strides[d], to.strides[d]});
  std::ranges::stable_sort(loops, [](const Loop& a, const Loop& b) { return a.to > b.to; });
  for (const Loop& loop : loops) {
    const bool joins =
        !outer_.empty() && outer_.back().from == loop.from * loop.size && outer_.back().to == loop.to * loop.size;
    if (joins) outer_.back() = {outer_.back().size * loop.size, loop.from, loop.to};
    else outer_.push_back(loop);
  }
  if (!outer_.empty()) {
    inner_ = outer_.back();
    outer_.pop_back();
  } else inner_ = {1, 1, 1};
  const auto beside = std::ranges::find_if(outer_, [](const Loop& loop) { return loop.from == 1; });
  transposes_ = inner_.to == 1 && inner_.from != 1 && beside != outer_.end();
  if (transposes_) {
    across_ = *beside;
    outer_.erase(beside);
  }
  const std::int64_t length = transposes_ ? across_.size : inner_.size;
  piece_ = transposes_ ? std::min(kAcross, (length + 127) / 128 * 32) : std::max<std::int64_t>(1, kPieceBytes / bytes_);
  pieces_ = (length + piece_ - 1) / piece_;
  tasks_ = pieces_;
  for (const Loop& loop : outer_) tasks_ *= loop.size;
}

void StridedCopy::run(Workers& workers, std::int64_t from_offset, std::int64_t to_offset) const {
  if (in_place_ && from_offset == to_offset) return;
  if (!is_shared()) return run_alone(from_offset, to_offset);
  workers.run([&](int worker) { run_part(share_of(tasks_, worker, workers.size()), from_offset, to_offset); });
}

bool StridedCopy::is_shared(std::int64_t copies) const {
  std::int64_t elements = inner_.size * across_.size * copies;
  for (const Loop& loop : outer_) elements *= loop.size;
  return elements * bytes_ >= kCopiedAlone;
}

void StridedCopy::run_part(Share tasks, std::int64_t from_offset, std::int64_t to_offset) const {
  for (std::int64_t task = tasks.begin; task < tasks.end; ++task) {
    std::int64_t rest = task / pieces_, from = from_offset, to = to_offset;
    for (std::size_t d = outer_.size(); d-- > 0; rest /= outer_[d].size) {
      from += rest % outer_[d].size * outer_[d].from;
      to += rest % outer_[d].size * outer_[d].to;
    }
    run_task(from_ + from * bytes_, to_ + to * bytes_, task % pieces_);
  }
}

void StridedCopy::run_task(const std::byte* from, std::byte* to, std::int64_t piece) const {
  const std::int64_t first = piece * piece_;
  if (transposes_) {
    const std::int64_t count = std::min(piece_, across_.size - first);
    return transpose(from + first * bytes_, inner_.from, to + first * across_.to * bytes_, across_.to, inner_.size,
                     count, bytes_);
  }
  const std::int64_t count = std::min(piece_, inner_.size - first);
  from += first * inner_.from * bytes_;
  to += first * inner_.to * bytes_;
  if (inner_.from == 1 && inner_.to == 1) return void(std::memcpy(to, from, static_cast<std::size_t>(count * bytes_)));
  switch (bytes_) {
    case 1: return copy_strided<std::uint8_t>(from, inner_.from, to, inner_.to, count);
    case 2: return copy_strided<std::uint16_t>(from, inner_.from, to, inner_.to, count);
    case 4: return copy_strided<std::uint32_t>(from, inner_.from, to, inner_.to, count);
    default: return copy_strided<std::uint64_t>(from, inner_.from, to, inner_.to, count);
  }
}

}  // namespace weft::cpu
