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

// "a/qkv/kernel" with "q" for "qkv": "a/q/kernel". A name without the dim's gets the part at its end.
std::string name_of_part(const std::string& name, const std::string& dim, const std::string& part) {
  const std::string path = "/" + name + "/";
  const std::size_t at = path.rfind("/" + dim + "/");
  if (at == std::string::npos) return name + "/" + part;
  return name.substr(0, at) + part + name.substr(at + dim.size());
}

Array stacked_value(const std::string& name, const Init& init, const Shape& shape, DType dtype, std::uint64_t seed) {
  const Shape rows = Shape{shape.dim(init.stacked)}.plus(shape);
  Array array(rows, dtype);
  Init each = init;
  each.parts.clear();
  const Shape own = shape.minus({shape.dim(init.stacked)});
  std::int64_t next = 0;
  for (std::size_t part = 0; part < init.parts.size(); ++part) {
    const double scale = part < init.scales.size() ? init.scales[part] : 1;
    if (scale != 1) each.a = init.a.real() * scale;
    else each.a = init.a;
    each.b = init.b * scale;
    const Array values = initial_value(name_of_part(name, init.stacked, init.parts[part]), each, own, dtype, seed);
    for (std::int64_t i = 0; i < values.elements(); ++i) array.set(next++, values.number(i));
  }
  return array.transposed(shape);
}

}  // namespace

Array initial_value(const std::string& name, const Init& init, const Shape& shape, DType dtype, std::uint64_t seed) {
  if (!init.parts.empty()) return stacked_value(name, init, shape, dtype, seed);
  if (init.kind == Init::Kind::kValues) return init.values->transposed(shape).cast(dtype);
  Array array(shape, dtype);
  const std::uint64_t key = seeded(hash_key(name, 0), seed);
  for (std::int64_t i = 0; i < array.elements(); ++i)
    array.set(i, init.kind == Init::Kind::kConstant
                     ? init.a
                     : Number(deviate(philox_word(key, static_cast<std::uint64_t>(i), 0), distribution_of(init.kind),
                                      init.a.real(), init.b)));
  return array;
}

}  // namespace weft
