#include "runtime/host/checks.h"

#include <algorithm>
#include <cmath>

#include "base/dispatch.h"
#include "base/str.h"
#include "runtime/host/views.h"

namespace weft {

namespace {

// The element of the row-major index, as an offset in the view.
std::int64_t offset_of(const TensorView& view, std::int64_t index) {
  std::int64_t offset = 0;
  for (std::size_t d = view.strides.size(); d-- > 0;) {
    offset += index % view.shape[d].size * view.strides[d];
    index /= view.shape[d].size;
  }
  return offset;
}

std::string place_of(const TensorView& view, std::int64_t index) {
  std::string text;
  for (std::size_t d = view.strides.size(); d-- > 0;) {
    const std::int64_t begin = view.begin.empty() ? 0 : view.begin[d];
    text = str(view.shape[d].name, "=", begin + index % view.shape[d].size, text.empty() ? "" : " ", text);
    index /= view.shape[d].size;
  }
  return str("[", text, "]");
}

}  // namespace

std::string not_finite(const TensorView& view) {
  if (!is_float(view.dtype)) return "";
  return visit_dtype(view.dtype, [&]<class T>() -> std::string {
    const T* data = static_cast<const T*>(view.data);
    for (std::int64_t i = 0; i < view.shape.elements(); ++i) {
      const double x = to_double(data[offset_of(view, i)]);
      if (std::isfinite(x)) continue;
      return str(std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf", " at ", place_of(view, i));
    }
    return "";
  });
}

bool looks_up_ids(const Instr& instr) {
  const auto& causes = instr.origin.causes;
  return instr.is<Gather>() &&
         std::any_of(causes.begin(), causes.end(), [](const std::string& cause) { return cause.ends_with(" gather"); });
}

std::string id_out_of_range(const TensorView& table, const TensorView& ids, const std::string& dim) {
  const std::size_t d = table.shape.position(dim);
  const bool are_labels = same_dims(table.shape.minus({table.shape[d]}), ids.shape);
  const std::int64_t size = table.whole[d];
  for (std::int64_t i = 0; i < ids.shape.elements(); ++i) {
    const std::int64_t id = integer_at(ids, offset_of(ids, i));
    if (id < size && (id >= 0 || are_labels)) continue;
    return str("the id ", id, " at ", place_of(ids, i), ", but dim ", dim, "=", size, " has 0 to ", size - 1);
  }
  return "";
}

}  // namespace weft
