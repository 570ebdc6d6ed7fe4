// Gatherer: collects values of all processors of the mesh in a process that holds only some of them. Every processor
// has one and makes the same calls in the same order.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/wire.h"
#include "program/ir.h"
#include "weft/array.h"

namespace weft {

class Device;

class Gatherer {
 public:
  // Memory for a piece of every peer's shard. Made and used by the processor's own thread.
  static constexpr std::size_t kStagingBytes = std::size_t{1} << 20;
  Gatherer(const Mesh& mesh, comm::Wire& wire, ProcessorId processor);

  // Writes the shards of all processors to their places in `whole`; a null one is for processors that only give.
  void gather(Device& device, const Value& value, const void* shard, Array* whole, const std::string& label,
              comm::Deadline deadline);
  // The numbers of all processors, one processor after the other, in `all`; null for processors that only give.
  void gather_numbers(std::span<const std::int64_t> own, std::vector<std::int64_t>* all, const std::string& label,
                      comm::Deadline deadline);

 private:
  comm::Group& group(const Axes& axes);

  const Mesh& mesh_;
  comm::Wire& wire_;
  ProcessorId processor_;
  comm::Memory staging_;
  std::map<Axes, std::unique_ptr<comm::Group>> groups_;
};

}  // namespace weft
