// Functions of a session for checkpoints, training and the commands. Not part of the API's promise: it may change in any
// release.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "weft/session.h"

namespace weft::detail {

// The processors of this process, ascending.
const std::vector<ProcessorId>& processors(const Session& session);

// Whether `here` is true in any process. All processes must call.
bool any(const Session& session, bool here);

// Waits for all processes. If some pass an error, every process throws the error of the lowest processor. Reports of a
// missing process use `what`, the purpose of the wait. All processes must call.
void agree(const Session& session, const std::exception_ptr& error, const std::string& what);

// The sum over all processes of the peak resident memory so far. All processes must call.
std::int64_t peak_resident_bytes(const Session& session);

// The shard of a variable on one processor: its begin and its sizes along the dims of `whole`.
struct VariableShard {
  std::string variable;
  std::string slot_of;  // the variable whose optimizer state this is, if any
  Shape whole;
  DType dtype = DType::kF32;   // of the bytes that the processor holds
  DType stored = DType::kF32;  // what a checkpoint holds: VariableOptions::stored, `dtype` of optimizer state
  std::vector<std::int64_t> begin, sizes;
  ProcessorId processor = {};
  bool is_primary = false;  // the first holder of this shard: at coordinate 0 of the axes that do not split it

  std::int64_t elements() const;
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype); }
};

// The shards that the processors of this process hold, by variable and processor.
std::vector<VariableShard> shards(const Session& session);
// Copies the bytes of a shard, dense in the order of the variable's dims, out of or into this process. Nothing is sent.
// InternalError if the number of bytes differs.
void read_shard(const Session& session, const VariableShard& shard, std::span<std::byte> out);
void write_shard(Session& session, const VariableShard& shard, std::span<const std::byte> in);

// Runs so many steps of an executable of the session, one after another, without the host in between where the device has
// a queue of work. Each is fed the same; variables hold what passes from step to step. Returns what the last one fetches.
Values run_times(Session& session, Executable& executable, std::int64_t times, Feeds feeds = {});

// Whether the session's device, or a device, has a queue of work: steps that follow each other need not wait for the host.
bool queues_steps(const Session& session);
bool queues_steps(const device::Choice& device);

// A number that grows with every step that updates the variable and every write from this process. UserError if unknown.
std::uint64_t changes(const Session& session, const std::string& variable);

// The outputs of a panel, where the session's device, or a device, has products with kernels that lie in panels; else 0.
std::int64_t panel_lanes(const Session& session);
std::int64_t panel_lanes(const device::Choice& device);

}  // namespace weft::detail
