// A collective on memory that the device reaches, as NCCL runs it.
#pragma once

#include <cstddef>

#include "comm/group.h"

namespace weft::comm {

struct Operation {
  Collective what = Collective::kBarrier;
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t in_count = 0, out_count = 0;
  DType dtype = DType::kF32;
  Reduce reduce = Reduce::kSum;
  int source = -1, target = -1;
  void* scratch = nullptr;  // as many bytes as the input, if needs_scratch
};

// Receives, and the zeros of who receives nothing, overwrite what is not sent yet where input and output are the same.
inline bool needs_scratch(const Operation& operation) {
  if (operation.in != operation.out || operation.in_count == 0) return false;
  return operation.what == Collective::kAllToAll || (operation.what == Collective::kPermute && operation.target >= 0);
}

// NCCL's max and min lose a NaN among the members: the caller gathers floats and reduces them itself.
inline bool loses_nan(Collective what, DType dtype, Reduce reduce) {
  const bool is_float = dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16 || dtype == DType::kF64;
  return is_float && (what == Collective::kAllReduce || what == Collective::kReduceScatter) &&
         (reduce == Reduce::kMax || reduce == Reduce::kMin);
}

}  // namespace weft::comm
