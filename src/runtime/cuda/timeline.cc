#include "runtime/cuda/timeline.h"

#include "runtime/cuda/card.h"
#include "runtime/host/host_clock.h"

namespace weft::cuda {

Timeline::~Timeline() {
  for (const cudaEvent_t event : events_) cudaEventDestroy(event);
}

void Timeline::start(cudaStream_t stream) {
  stream_ = stream;
  used_ = 0;
  marks_.clear();
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  host_start_ = host_now();
  record();
}

std::size_t Timeline::record() {
  if (used_ == events_.size()) check(cudaEventCreate(&events_.emplace_back()), "cudaEventCreate");
  check(cudaEventRecord(events_[used_], stream_), "cudaEventRecord");
  return used_++;
}

std::size_t Timeline::begin(std::int64_t what) {
  marks_.push_back({what, record(), 0});
  return marks_.size() - 1;
}

void Timeline::end(std::size_t mark) { marks_[mark].end = record(); }

void Timeline::write(TraceLog& log) {
  const auto time_of = [&](std::size_t event) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, events_[0], events_[event]), "cudaEventElapsedTime");
    return host_start_ + static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6);
  };
  for (const Mark& mark : marks_) log.add(mark.what, time_of(mark.begin), time_of(mark.end));
}

}  // namespace weft::cuda
