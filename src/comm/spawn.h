// Runs one function on every processor of a wire that is in this process.
#pragma once

#include <functional>

#include "comm/wire.h"

namespace weft::comm {

// Runs body(processor) on one thread per processor, one of them the caller's, and joins the threads. If a body throws,
// the call aborts the wire, so that the other bodies end too, and throws the first exception.
void on_every_processor(Wire& wire, const std::function<void(ProcessorId processor)>& body);

}  // namespace weft::comm
