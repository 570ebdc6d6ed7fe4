// One golden op as Weft says it.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "weft/nn.h"

namespace weft::test {

using Named = std::map<std::string, Tensor>;

struct OpCase {
  std::string name;
  std::function<Named(const Named& in)> build;        // inputs by name -> outputs by name
  std::set<std::string> refused = {};                 // even input dims that Weft may not split, see the case
  std::map<std::string, std::string> variables = {};  // our name of a variable -> the golden one, where they differ
  std::set<std::string> stopped = {};                 // inputs by which Mesh-TensorFlow gives no derivative and we do
};

inline void PrintTo(const OpCase& op, std::ostream* out) { *out << op.name; }

inline Named only(const Tensor& y) { return {{"y", y}}; }

}  // namespace weft::test
