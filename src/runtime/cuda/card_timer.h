// Times of work on a stream, between events of the card.
#pragma once

#include "runtime/cuda/card.h"

namespace weft::cuda {

class CardTimer {
 public:
  explicit CardTimer(cudaStream_t stream) : stream_(stream) {
    check(cudaEventCreate(&begin_), "cudaEventCreate");
    check(cudaEventCreate(&end_), "cudaEventCreate");
  }
  CardTimer(const CardTimer&) = delete;
  CardTimer& operator=(const CardTimer&) = delete;
  ~CardTimer() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }

  template <class Job>
  float milliseconds(const Job& job) const {
    float time = 0;
    check(cudaEventRecord(begin_, stream_), "cudaEventRecord");
    job();
    check(cudaEventRecord(end_, stream_), "cudaEventRecord");
    check(cudaEventSynchronize(end_), "cudaEventSynchronize");
    check(cudaEventElapsedTime(&time, begin_, end_), "cudaEventElapsedTime");
    return time;
  }

 private:
  const cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace weft::cuda
