#include "weft/machine.h"

#include <algorithm>

namespace weft {

int Link::units() const {
  int product = 1;
  for (const int side : sides) product *= side;
  return product;
}

double Machine::peak(DType dtype) const {
  const auto found = peaks.find(dtype);
  if (found != peaks.end()) return found->second;
  return dtype == DType::kF32 ? 0 : peak();
}

const Rates& Machine::rates_of(int processors) const {
  const int each = cores == 0 ? 1 : std::max(1, cores / processors);
  const Rates* best = &rates.front();
  for (const Rates& one : rates)
    if (one.cores <= each) best = &one;
  return *best;
}

double Machine::crowding(int processors) const {
  return cores == 0 ? 1 : std::max(1.0, static_cast<double>(processors) / cores);
}

Machine Machine::uniform(double flops_per_second, double bytes_per_second) {
  Machine machine;
  machine.name = "uniform";
  machine.peaks[DType::kF32] = flops_per_second;
  machine.bytes_per_second = bytes_per_second;
  machine.rates.push_back(
      {.sweep = Table::constant(bytes_per_second), .pointwise = flops_per_second, .random = flops_per_second});
  return machine;
}

}  // namespace weft
