// Group: one processor's view of the processors that take part in the same collectives.
//
// Every member makes the same calls in the same order. The caller owns the buffers and does not touch them between
// start and wait; when wait returns, no peer uses them any more. Reductions go in rank order, so every member gets the
// same bits at any timing. A group knows bytes and dtypes, not tensors. Threads: one processor, one Group; a Group is
// not thread-safe, except abort.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include "base/reduce.h"
#include "weft/dtype.h"
#include "weft/id.h"

namespace weft::comm {

struct Failure;  // comm/failure.h

// With n the count of one block: all_reduce n -> n; reduce_scatter n * size -> n; all_gather n -> n * size;
// all_to_all n * size -> n * size (block i goes to rank i); permute n -> n.
enum class Collective : std::uint8_t { kAllReduce, kReduceScatter, kAllGather, kAllToAll, kPermute, kBarrier };

// bf16 and f16 are reduced in f32 and rounded once; integers wrap; a NaN among the members gives a NaN; on bools
// sum and max mean "any", product and min mean "all".
using weft::Reduce;

std::string_view name_of(Collective what);  // "all_reduce", …
inline std::ostream& operator<<(std::ostream& out, Collective what) { return out << name_of(what); }

// Elements to write, or for barrier nothing. On wires that cross address spaces the data lies in the peer memory of the wire.
struct Buffer {
  void* data = nullptr;
  std::size_t count = 0;
  DType dtype = DType::kF32;
};

// Elements to read.
struct ConstBuffer {
  ConstBuffer() = default;
  ConstBuffer(const void* data, std::size_t count, DType dtype) : data(data), count(count), dtype(dtype) {}
  ConstBuffer(const Buffer& buffer) : data(buffer.data), count(buffer.count), dtype(buffer.dtype) {}
  const void* data = nullptr;
  std::size_t count = 0;
  DType dtype = DType::kF32;
};

struct Args {
  Reduce reduce = Reduce::kSum;
  int source = -1;              // permute: the rank I receive from; none: out is filled with zeros
  int target = -1;              // permute: the rank I send to; none: nobody reads my input
  std::string_view label = {};  // opaque text for reports
};

// A started collective of one Group.
struct Ticket {
  std::uint64_t number = 0;
};

// The longest time that one wait may take.
struct Deadline {
  Deadline() = default;  // none
  template <class Rep, class Period>
  Deadline(std::chrono::duration<Rep, Period> limit)
      : limit(std::chrono::duration_cast<std::chrono::nanoseconds>(limit)) {}
  std::chrono::nanoseconds limit = std::chrono::nanoseconds::max();
};

class Group {
 public:
  virtual ~Group() = default;
  virtual int size() const = 0;
  virtual int rank() const = 0;

  // Publishes the buffers to the peers and returns. in == out is allowed for all_reduce, all_to_all and permute; the
  // input of all_gather may be my block of the output, the output of reduce_scatter my block of the input. Any other
  // overlap is not. Blocks only if the wire's limit of collectives in flight is reached: then it finishes the oldest.
  virtual Ticket start(Collective what, ConstBuffer in, Buffer out, const Args& args) = 0;

  // Finishes the ticket and all earlier ones. FailureError if members disagree on what they run, if a member is still
  // missing at the deadline, or if the wire was aborted; the first two abort the wire for everyone.
  virtual void wait(Ticket ticket, Deadline deadline) = 0;

  // Ends every wait of every group of the wire with a FailureError. Safe from any thread.
  virtual void abort(const Failure& failure) = 0;
  void abort(std::string_view reason);
};

// Start and wait in one, in the same order of arguments as start.
void all_reduce(Group& group, ConstBuffer in, Buffer out, Reduce reduce, std::string_view label = {},
                Deadline deadline = {});
void reduce_scatter(Group& group, ConstBuffer in, Buffer out, Reduce reduce, std::string_view label = {},
                    Deadline deadline = {});
void all_gather(Group& group, ConstBuffer in, Buffer out, std::string_view label = {}, Deadline deadline = {});
void all_to_all(Group& group, ConstBuffer in, Buffer out, std::string_view label = {}, Deadline deadline = {});
void permute(Group& group, ConstBuffer in, Buffer out, int source, int target, std::string_view label = {},
             Deadline deadline = {});
void barrier(Group& group, std::string_view label = {}, Deadline deadline = {});

// InternalError if the counts and dtypes of in and out do not fit the collective or a rank is out of range:
// for the backends, at the top of start.
void check_call(const Group& group, Collective what, const ConstBuffer& in, const Buffer& out, const Args& args);

}  // namespace weft::comm
