// The outputs of attend_back, for all engines.
#pragma once

#include "base/index.h"
#include "program/attend.h"
#include "runtime/host/kernel.h"

namespace weft {

// The derivative by q (0), k (1) or v (2): an output of its own, or its part of the joined one.
inline TensorView derivative_view(const Instr& instr, const std::vector<TensorView>& outputs, int operand) {
  const auto& operation = *instr.as<AttendBack>();
  if (operation.joined.empty()) return outputs[at(operand)];
  const TensorView& joined = outputs[0];
  TensorView view = joined;
  const std::size_t at = joined.shape.position(operation.joined);
  const auto bytes = static_cast<std::int64_t>(size_of(joined.dtype));
  view.data = static_cast<std::byte*>(joined.data) + operand * joined.strides[at] * bytes;
  for (auto* numbers : {&view.strides, &view.begin, &view.whole})  // a view without a place has neither begin nor whole
    if (!numbers->empty()) numbers->erase(numbers->begin() + static_cast<std::ptrdiff_t>(at));
  view.shape = joined_part(operation, joined.shape, operand);
  return view;
}

}  // namespace weft
