// Initial values of variables: each processor makes its shard, divided over its workers. A number depends only on the
// variable's name, the global index of the element and the seed.
#include <algorithm>

#include "runtime/host/initial.h"
#include "base/dispatch.h"
#include "base/index.h"
#include "base/philox.h"
#include "language/shape_math.h"
#include "runtime/cpu/random_run.h"
#include "runtime/host/strided.h"
#include "runtime/host/views.h"

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

// Index `index` of a dim, which the view then lacks.
TensorView slice_of(TensorView view, const std::string& dim, std::int64_t index) {
  const std::size_t d = view.shape.position(dim);
  view = run_of(std::move(view), dim, index, 1);
  view.shape = view.shape.minus({view.shape[d]});
  for (auto* numbers : {&view.strides, &view.begin, &view.whole})
    numbers->erase(numbers->begin() + static_cast<std::ptrdiff_t>(d));
  return view;
}

void fill_stacked(const TensorView& out, const std::string& name, const Init& init, std::uint64_t seed,
                  Workers& workers) {
  const std::size_t d = out.shape.position(init.stacked);
  Init each = init;
  each.parts.clear();
  for (std::int64_t i = 0; i < out.shape[d].size; ++i) {
    const std::size_t part = at(out.begin[d] + i);
    const double scale = part < init.scales.size() ? init.scales[part] : 1;
    if (scale != 1) each.a = init.a.real() * scale;
    else each.a = init.a;
    each.b = init.b * scale;
    fill_initial(slice_of(out, init.stacked, i), name_of_part(name, init.stacked, init.parts[part]), each, seed,
                 workers);
  }
}

void fill_given(const TensorView& out, const Array& values) {
  if (values.dtype() != out.dtype) return fill_given(out, values.cast(out.dtype));
  TensorView from = dense_view(const_cast<std::byte*>(values.bytes()), values.dtype(), values.shape());
  for (std::size_t d = 0; d < out.shape.rank(); ++d)
    from = run_of(std::move(from), out.shape[d].name, out.begin[d], out.shape[d].size);
  copy_elements(from, out);
}

void fill_constant(const TensorView& out, const Number& number, Workers& workers) {
  visit_dtype(out.dtype, [&]<class T>() {
    T constant = from_number<T>(number);
    if (out.strides != dense_strides(out.shape)) return copy_elements(dense_view(&constant, out.dtype, {}), out);
    workers.run([&](int worker) {
      const Share share = share_of(out.shape.elements(), worker, workers.size(), 1024);
      std::fill(static_cast<T*>(out.data) + share.begin, static_cast<T*>(out.data) + share.end, constant);
    });
  });
}

}  // namespace

void fill_initial(const TensorView& out, const std::string& name, const Init& init, std::uint64_t seed,
                  Workers& workers) {
  if (!init.parts.empty()) return fill_stacked(out, name, init, seed, workers);
  if (init.kind == Init::Kind::kValues) return fill_given(out, *init.values);
  if (init.kind == Init::Kind::kConstant) return init.a == Number(0) ? void() : fill_constant(out, init.a, workers);
  cpu::RandomFill(out).fill({.key = seeded(hash_key(name, 0), seed),
                             .distribution = distribution_of(init.kind),
                             .a = init.a.real(),
                             .b = init.b},
                            false, workers);
}

Array initial_value(const std::string& name, const Init& init, const Shape& shape, DType dtype, std::uint64_t seed) {
  Array array(shape, dtype);
  Workers alone(1);
  fill_initial(dense_view(array.bytes(), dtype, shape), name, init, seed, alone);
  return array;
}

}  // namespace weft
