#include "api/state.h"
#include "base/philox.h"
#include "runtime/kernels/random.h"

namespace weft {

namespace {

Distribution distribution_of(Init::Kind kind) {
  switch (kind) {
    case Init::Kind::kNormal: return Distribution::kNormal;
    case Init::Kind::kTruncatedNormal: return Distribution::kTruncatedNormal;
    default: return Distribution::kUniform;
  }
}

}  // namespace

Array initial_value(const std::string& name, const Init& init, const Shape& shape, DType dtype, std::uint64_t seed) {
  if (init.kind == Init::Kind::kValues) return init.values->transposed(shape).cast(dtype);
  Array array(shape, dtype);
  const std::uint64_t key = seeded(hash_key(name, 0), seed);
  for (std::int64_t i = 0; i < array.elements(); ++i)
    array.set(i, init.kind == Init::Kind::kConstant ? init.a
                                                    : deviate(philox_word(key, static_cast<std::uint64_t>(i), 0),
                                                              distribution_of(init.kind), init.a, init.b));
  return array;
}

}  // namespace weft
