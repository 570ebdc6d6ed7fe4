// The wire between threads of one process: every processor can reach all memory.
#pragma once

#include <vector>

#include "comm/shared/wire.h"

namespace weft::comm {

class ThreadsWire : public SharedWire {
 public:
  explicit ThreadsWire(int processors);

  std::vector<ProcessorId> local() const override { return block_.local(); }
};

}  // namespace weft::comm
