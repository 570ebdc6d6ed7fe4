// HostDevice: one processor of a host engine: its memory, its workers, and its arena, which all its programs share.
#pragma once

#include <array>

#include "comm/memory.h"
#include "runtime/host/host_engine.h"
#include "runtime/host/workers.h"

namespace weft {

class HostDevice : public Device {
 public:
  // `spins`: every worker has a core to itself.
  HostDevice(const HostEngine& engine, comm::Wire& wire, const Mesh& mesh, ProcessorId processor, int workers,
             bool spins)
      : engine_(engine),
        wire_(wire),
        mesh_(mesh),
        processor_(processor),
        workers_(workers, spins, engine.prepare_thread()),
        variables_(wire, processor),
        arena_(wire, processor) {}

  comm::Memory allocate(std::size_t bytes, MemoryUse use) override;
  std::int64_t allocated(MemoryUse use) const override;
  void write(std::span<const std::byte> from, void* to) override;
  void read(const void* from, std::span<std::byte> to) override;
  void upload(const Array& whole, const Value& value, void* shard) override;
  void download(const void* shard, const Value& value, Array& whole) override;
  void fill(void* shard, const Value& value, const std::string& name, const Init& init, std::uint64_t seed) override;
  std::unique_ptr<BoundProgram> bind(std::shared_ptr<const Compiled> compiled, const std::vector<void*>& variables,
                                     const Checks& checks) override;
  int lanes() const override { return workers_.size(); }
  std::int64_t now() const override;

  // For its programs.
  const HostEngine& engine() const { return engine_; }
  comm::Wire& wire() const { return wire_; }
  ProcessorId processor() const { return processor_; }
  Workers& workers() { return workers_; }

 private:
  const HostEngine& engine_;
  comm::Wire& wire_;
  const Mesh& mesh_;
  const ProcessorId processor_;
  Workers workers_;
  comm::MemoryPool variables_;
  comm::GrowingMemory arena_;
  std::int64_t variable_bytes_ = 0;
};

}  // namespace weft
