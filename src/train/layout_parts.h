// Into how many parts a layout splits a dim on a mesh.
#pragma once

#include <cstdint>
#include <string>

#include "weft/mesh.h"

namespace weft::decode {

inline std::int64_t parts_of(const Layout& layout, const Mesh& mesh, const std::string& dim) {
  std::int64_t parts = 1;
  for (const LayoutRule& rule : layout.rules())
    for (const std::string& name : rule.axes)
      if (const int axis = mesh.find(name); rule.dim == dim && axis >= 0)
        parts *= mesh.axes()[static_cast<std::size_t>(axis)].size;
  return parts;
}

}  // namespace weft::decode
