#include "layout/sharding.h"

#include <algorithm>

#include "base/index.h"
#include "base/str.h"
#include "weft/error.h"

namespace weft {

bool Sharding::splits_nothing() const {
  return std::all_of(dims.begin(), dims.end(), [](const Axes& axes) { return axes.empty(); });
}

bool Sharding::uses(int axis) const {
  const auto in = [axis](const Axes& axes) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); };
  return in(partial) || std::any_of(dims.begin(), dims.end(), in);
}

Sharding unsplit(const Shape& shape) { return {.dims = std::vector<Axes>(shape.rank()), .partial = {}}; }

Shape local_shape(const Shape& global, const Sharding& sharding, const Mesh& mesh) {
  std::vector<Dim> dims = global.dims();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const int parts = mesh.size(sharding.dims[i]);
    internal_check(dims[i].size % parts == 0, "a dim is split that does not divide");
    dims[i].size /= parts;
  }
  return dims;
}

Shape global_shape(const Shape& local, const Sharding& sharding, const Mesh& mesh) {
  std::vector<Dim> dims = local.dims();
  for (std::size_t i = 0; i < dims.size(); ++i) dims[i].size *= mesh.size(sharding.dims[i]);
  return dims;
}

Axes replicated_axes(const Sharding& sharding, const Mesh& mesh) {
  Axes axes;
  for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis)
    if (!sharding.uses(axis)) axes.push_back(axis);
  return axes;
}

std::vector<std::int64_t> shard_begin(const Shape& local, const Sharding& sharding, const Mesh& mesh,
                                      ProcessorId processor) {
  std::vector<std::int64_t> begin;
  for (std::size_t i = 0; i < local.rank(); ++i)
    begin.push_back(local[i].size * mesh.coordinate(processor, sharding.dims[i]));
  return begin;
}

std::string text_of(const Axes& axes, const Mesh& mesh) {
  std::vector<std::string> names;
  for (int axis : axes) names.push_back(mesh.axes()[at(axis)].name);
  return join(names, "+");
}

std::string text_of(const Sharding& sharding, const Shape& shape, const Mesh& mesh) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < shape.rank(); ++i)
    if (!sharding.dims[i].empty()) words.push_back(str(shape[i].name, ":", text_of(sharding.dims[i], mesh)));
  if (sharding.is_partial()) {
    words.push_back("|");
    words.push_back(str(sharding.pending, ":", text_of(sharding.partial, mesh)));
  }
  return str("{", join(words, " "), "}");
}

std::string coordinates_text(const Mesh& mesh, ProcessorId processor) {
  std::vector<std::string> words;
  const std::vector<int> place = mesh.coordinates(processor);
  for (std::size_t i = 0; i < place.size(); ++i) words.push_back(str(mesh.axes()[i].name, "=", place[i]));
  return join(words, " ");
}

}  // namespace weft
