// Positions of tokens: as vectors added to them, as rotations of queries and keys, as buckets of distances.
#include <algorithm>
#include <cmath>

#include "weft/nn.h"

namespace weft::nn {

namespace {

// position * base^(-step i), i along `half`.
Tensor angles(const Tensor& positions, const Dim& half, double base, double step, Site site) {
  const Tensor i = iota(Graph(positions.graph()), half, DType::kF32, site);
  const Tensor frequency = exp(multiply(i, -step * std::log(base), site), site);
  return multiply(cast(positions, DType::kF32, site), frequency, site);
}

std::int64_t bucket_of(std::int64_t distance, const BucketOptions& o) {
  std::int64_t n = -distance, buckets = o.buckets, first = 0;
  if (o.both_ways) {
    buckets /= 2;
    first = n < 0 ? buckets : 0;
    n = std::abs(n);
  }
  n = std::max<std::int64_t>(n, 0);
  const std::int64_t exact = buckets / 2;
  if (n < exact) return first + n;
  if (exact == 0) return first;
  const double far = std::log(static_cast<double>(n) / static_cast<double>(exact)) /
                     std::log(static_cast<double>(o.max_distance) / static_cast<double>(exact));
  constexpr double kRounding = 1e-9;  // for ratios of logarithms that are integers
  const auto later = static_cast<std::int64_t>(far * static_cast<double>(buckets - exact) + kRounding);
  return first + std::min(buckets - 1, exact + later);
}

}  // namespace

Tensor sinusoids(const Tensor& positions, const Dim& model, Site site) {
  const Dim half{model.name, model.size / 2};
  const double step = 1 / static_cast<double>(std::max<std::int64_t>(half.size - 1, 1));
  const Tensor angle = angles(positions, half, 10000, step, site);
  return concat({sin(angle, site), cos(angle, site)}, model.name, site);
}

Tensor rotary(const Tensor& x, const Tensor& positions, const DimRef& along, double base, Site site) {
  const Dim dim = along.in(x, site);
  const Dim half{dim.name, dim.size / 2};
  const Tensor angle = angles(positions, half, base, 2 / static_cast<double>(dim.size), site);
  const Tensor cosine = cos(angle, site), sine = sin(angle, site);
  const Tensors parts = split(x, dim, 2, site);
  const Tensor a = cast(parts[0], DType::kF32, site), b = cast(parts[1], DType::kF32, site);
  const Tensor turned_a = subtract(multiply(a, cosine, site), multiply(b, sine, site), site);
  const Tensor turned_b = add(multiply(b, cosine, site), multiply(a, sine, site), site);
  return transpose(cast(concat({turned_a, turned_b}, dim.name, site), x.dtype(), site), x.shape(), site);
}

Tensor relative_buckets(const Tensor& distances, const BucketOptions& options, Site site) {
  const Dim table{"distance", 2 * options.reach + 1};
  Array buckets({table}, DType::kI32);
  for (std::int64_t i = 0; i < table.size; ++i)
    buckets.set(i, static_cast<double>(bucket_of(i - options.reach, options)));
  const Tensor at = add(distances, static_cast<double>(options.reach), site);
  return gather(constant(Graph(distances.graph()), buckets, site), at, table, site);
}

}  // namespace weft::nn
