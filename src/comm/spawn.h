// Running one function on every processor of a wire that lives in this process: all of them, or one.
#pragma once

#include <functional>

#include "comm/wire.h"

namespace weft::comm {

// Runs body(processor) on one thread per processor, the caller's among them, and joins them. If a body throws, the wire is aborted, so that the
// others end too, and the first exception thrown is thrown again here.
void on_every_processor(Wire& wire, const std::function<void(int processor)>& body);

}  // namespace weft::comm
