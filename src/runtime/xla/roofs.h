// Measures the peak rates of one device of a plugin.
#pragma once

#include "runtime/engine.h"
#include "runtime/xla/plugin.h"

namespace weft::xla {

Roofs measure_device(const Plugin& plugin);

}  // namespace weft::xla
