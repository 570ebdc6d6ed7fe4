// Timeline: when the card ran each instruction of a traced step, by events on its stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "runtime/trace.h"

namespace weft::cuda {

class Timeline {
 public:
  Timeline() = default;
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  void start(cudaStream_t stream);    // of a step; waits for what is on the stream
  std::size_t begin(std::int64_t what);  // the work behind it belongs to `what`, up to:
  void end(std::size_t mark);
  void write(TraceLog& log);          // once the stream is done

 private:
  struct Mark {
    std::int64_t what;
    std::size_t begin, end;  // events
  };
  std::size_t record();

  cudaStream_t stream_ = nullptr;
  std::vector<cudaEvent_t> events_;  // used again by the next step
  std::size_t used_ = 0;
  std::vector<Mark> marks_;
  std::int64_t host_start_ = 0;
};

}  // namespace weft::cuda
