// The part of a training step that an op belongs to, set when the op is made.
#pragma once

#include <array>
#include <cstdint>

namespace weft {

enum class Phase : std::uint8_t { kForward, kRecompute, kBackward, kUpdate };

inline const char* name_of(Phase phase) {
  static constexpr std::array kNames = {"forward", "recompute", "backward", "update"};
  return kNames[static_cast<std::size_t>(phase)];
}

}  // namespace weft
