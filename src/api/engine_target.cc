#include "runtime/engine.h"
#include "weft/detail/target.h"

namespace weft {

const Target& engine_target(const std::string& device, const std::string& plugin, bool nondeterministic) {
  return engine_named(device, "engine_target", plugin, nondeterministic).target();
}

}  // namespace weft
