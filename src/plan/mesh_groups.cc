#include "plan/mesh_groups.h"

#include <algorithm>
#include <string_view>

namespace weft {

MeshGroups::MeshGroups(const Machine& machine, std::span<const int> sizes)
    : machine_(machine), sizes_(sizes.begin(), sizes.end()) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < sizes.size(); ++i) axes.push_back({std::string(1, static_cast<char>('a' + i)), sizes[i]});
  const Mesh mesh(axes);
  for (AxisSet set = 0; set < AxisSet{1} << sizes.size(); ++set) {
    Axes group;
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (set >> i & 1) group.push_back(static_cast<int>(i));
    stages_.push_back(stages_of(mesh, group, machine));
  }
}

double MeshGroups::seconds(const Operation& operation, const char* name, AxisSet axes, double bytes) const {
  if (axes == 0) return 0;
  for (const CollectiveTimes& times : machine_.collectives) {
    if (times.kind != name) continue;
    double members = 1;
    for (std::size_t i = 0; i < sizes_.size(); ++i)
      if (axes >> i & 1) members *= sizes_[i];
    // Beyond the largest measured size the rate is constant.
    const double most = times.seconds.axes[1].back();
    const double sizes[2] = {members, std::min(bytes, most)};
    return times.seconds.at(sizes) * std::max(1.0, bytes / most);
  }
  return collective_seconds(operation, bytes, stages_[axes]);
}

}  // namespace weft
