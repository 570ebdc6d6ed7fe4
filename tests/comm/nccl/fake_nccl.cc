// A library that stands for NCCL and for the calls of the CUDA runtime that the nccl wire makes. Its devices are host
// memory; its streams are threads; its communicators are shared memory between threads or processes. Reductions round
// after every step and lose a NaN in max and min, like NCCL's. It serves the wire's tests, nothing else.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/nccl/calls.h"
#include "fake_nccl.h"

using weft::BF16;
using weft::F16;

namespace {

// ---- streams, events and memory

struct Stream {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> work;
  bool ends = false;
  std::thread thread{[this] { run(); }};

  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return ends || !work.empty(); });
      if (work.empty()) return;
      const std::function<void()> next = std::move(work.front());
      work.pop_front();
      lock.unlock();
      next();
      lock.lock();
    }
  }
  void put(std::function<void()> next) {
    const std::lock_guard lock(mutex);
    work.push_back(std::move(next));
    changed.notify_all();
  }
};

struct Event {
  std::shared_ptr<std::atomic<bool>> passed = std::make_shared<std::atomic<bool>>(true);
};

Stream& stream_of(cudaStream_t stream) { return *reinterpret_cast<Stream*>(stream); }
Event& event_of(cudaEvent_t event) { return *reinterpret_cast<Event*>(event); }

std::mutex memory_mutex;
std::map<const char*, std::size_t> device_memory;  // by its begin

cudaError_t allocate(void** data, std::size_t bytes) {
  *data = std::malloc(std::max<std::size_t>(bytes, 1));
  const std::lock_guard lock(memory_mutex);
  device_memory[static_cast<const char*>(*data)] = bytes;
  return cudaSuccess;
}

cudaError_t free_device(void* data) {
  {
    const std::lock_guard lock(memory_mutex);
    device_memory.erase(static_cast<const char*>(data));
  }
  std::free(data);
  return cudaSuccess;
}

bool is_on_device(const void* data) {
  const std::lock_guard lock(memory_mutex);
  auto after = device_memory.upper_bound(static_cast<const char*>(data));
  return after != device_memory.begin() && static_cast<const char*>(data) < (--after)->first + after->second;
}

std::atomic<int> devices{64};

// ---- communicators

constexpr std::size_t kChunk = 32 << 10;

// One direction between two ranks: full, or empty for the next piece.
struct Channel {
  std::atomic<std::uint32_t> full;
  std::uint32_t bytes;
  char data[kChunk];
};

struct Segment {
  std::atomic<int> arrived;
  Channel channels[1];
};

std::size_t segment_bytes(int ranks) {
  return sizeof(Segment) + static_cast<std::size_t>(ranks * ranks) * sizeof(Channel);
}

struct Transfer {
  Channel* channel;
  char* data;  // to read, or to write
  std::size_t bytes;
  bool is_send;
};

std::atomic<int> failing_rank{-1}, failing_after{0};

}  // namespace

struct ncclComm {
  Segment* segment = nullptr;
  int rank = 0, ranks = 1;
  bool has_arrived = false;
  int launched = 0;
  std::atomic<bool> aborted = false, failed = false;
  std::atomic<int> running = 0;

  Channel* channel(int from, int to) { return &segment->channels[from * ranks + to]; }

  // Moves all pieces that can be moved, until none is left.
  void transfer(std::vector<Transfer> all) {
    for (int idle = 0; !all.empty() && !aborted;) {
      bool moved = false;
      for (Transfer& each : all) {
        if ((each.channel->full.load(std::memory_order_acquire) != 0) == each.is_send) continue;
        if (each.is_send) {
          const std::size_t piece = std::min(each.bytes, kChunk);
          std::memcpy(each.channel->data, each.data, piece);
          each.channel->bytes = static_cast<std::uint32_t>(piece);
        } else if (each.channel->bytes <= each.bytes) {
          std::memcpy(each.data, each.channel->data, each.channel->bytes);
        } else {
          continue;  // members that disagree hang
        }
        each.data += each.channel->bytes;
        each.bytes -= each.channel->bytes;
        each.channel->full.store(each.is_send ? 1 : 0, std::memory_order_release);
        moved = true;
      }
      std::erase_if(all, [](const Transfer& each) { return each.bytes == 0; });
      idle = moved ? 0 : idle + 1;
      if (idle > 200) usleep(50);
      else if (!moved) sched_yield();
    }
  }
};

namespace {

struct Call {
  ncclComm_t comm;
  Stream* stream;
  Transfer transfer;  // of a send or receive
};
thread_local int depth = 0;
thread_local std::vector<Call> grouped;

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat64:
    case ncclInt64:
    case ncclUint64: return 8;
    case ncclFloat32:
    case ncclInt32:
    case ncclUint32: return 4;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    default: return 1;
  }
}

template <class T>
void combine(char* into, const char* from, std::size_t count, ncclRedOp_t how) {
  for (std::size_t i = 0; i < count; ++i) {
    T a, b;
    std::memcpy(&a, into + i * sizeof a, sizeof a);
    std::memcpy(&b, from + i * sizeof b, sizeof b);
    if constexpr (std::is_integral_v<T>) {
      const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
      a = how == ncclSum    ? static_cast<T>(x + y)
          : how == ncclProd ? static_cast<T>(x * y)
          : how == ncclMax  ? std::max(a, b)
                            : std::min(a, b);
    } else {
      const auto x = static_cast<double>(static_cast<std::conditional_t<(sizeof(T) > 4), T, float>>(a)),
                 y = static_cast<double>(static_cast<std::conditional_t<(sizeof(T) > 4), T, float>>(b));
      const double z = how == ncclSum    ? x + y
                       : how == ncclProd ? x * y
                       : how == ncclMax  ? std::fmax(x, y)
                                         : std::fmin(x, y);
      if constexpr (sizeof(T) == 2) a = T(static_cast<float>(z));
      else a = static_cast<T>(z);
    }
    std::memcpy(into + i * sizeof a, &a, sizeof a);
  }
}

void combine(char* into, const char* from, std::size_t count, ncclDataType_t type, ncclRedOp_t how) {
  switch (type) {
    case ncclFloat64: return combine<double>(into, from, count, how);
    case ncclFloat32: return combine<float>(into, from, count, how);
    case ncclFloat16: return combine<F16>(into, from, count, how);
    case ncclBfloat16: return combine<BF16>(into, from, count, how);
    case ncclInt64: return combine<std::int64_t>(into, from, count, how);
    case ncclInt32: return combine<std::int32_t>(into, from, count, how);
    case ncclUint32: return combine<std::uint32_t>(into, from, count, how);
    case ncclUint8: return combine<std::uint8_t>(into, from, count, how);
    default: return combine<std::int8_t>(into, from, count, how);
  }
}

// Runs the work on the stream, unless the communicator is told to fail then.
ncclResult_t put(ncclComm_t comm, Stream& stream, std::function<void()> work) {
  if (++comm->launched > failing_after && comm->rank == failing_rank) comm->failed = true;
  if (comm->failed) return ncclSuccess;  // what failed is told later, as NCCL does
  ++comm->running;
  stream.put([comm, work = std::move(work)] {
    if (!comm->aborted) work();
    --comm->running;
  });
  return ncclSuccess;
}

std::vector<Transfer> to_everyone(ncclComm_t comm, const void* in, std::size_t bytes, char* gathered) {
  std::vector<Transfer> all;
  for (int peer = 0; peer < comm->ranks; ++peer) {
    if (peer == comm->rank || bytes == 0) continue;
    char* mine = const_cast<char*>(static_cast<const char*>(in));
    all.push_back({comm->channel(comm->rank, peer), mine, bytes, true});
    all.push_back({comm->channel(peer, comm->rank), gathered + static_cast<std::size_t>(peer) * bytes, bytes, false});
  }
  return all;
}

// Everyone's input, then `result` makes something of it.
ncclResult_t gather(ncclComm_t comm, cudaStream_t stream, const void* in, std::size_t bytes,
                    std::function<void(char* gathered)> result) {
  return put(comm, stream_of(stream), [=] {
    std::vector<char> gathered(bytes * static_cast<std::size_t>(comm->ranks));
    if (bytes > 0) std::memcpy(gathered.data() + static_cast<std::size_t>(comm->rank) * bytes, in, bytes);
    comm->transfer(to_everyone(comm, in, bytes, gathered.data()));
    if (!comm->aborted) result(gathered.data());
  });
}

void end(ncclComm_t comm) {
  comm->aborted = true;
  while (comm->running > 0) usleep(100);
  if (comm->segment) munmap(comm->segment, segment_bytes(comm->ranks));
  delete comm;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  const char* told = std::getenv("WEFT_FAKE_NCCL_VERSION");
  *version = told ? std::atoi(told) : NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> next{0};
  *id = {};
  const std::string name = "/weft-fake-nccl-" + std::to_string(getpid()) + "-" + std::to_string(next++);
  std::copy(name.begin(), name.end(), id->internal);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t*) {
  const int file = shm_open(id.internal, O_CREAT | O_RDWR, 0600);
  if (file < 0 || ftruncate(file, static_cast<off_t>(segment_bytes(ranks))) != 0) return ncclSystemError;
  void* memory = mmap(nullptr, segment_bytes(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  *comm = new ncclComm;
  (*comm)->segment = static_cast<Segment*>(memory);
  (*comm)->rank = rank;
  (*comm)->ranks = ranks;
  if (++(*comm)->segment->arrived == ranks) shm_unlink(id.internal);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  *error = comm->failed ? ncclRemoteError : comm->segment->arrived < comm->ranks ? ncclInProgress : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  end(comm);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  end(comm);
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error" : "an error";
}
const char* ncclGetLastError(ncclComm_t) { return "told by a test"; }

ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t how,
                           ncclComm_t comm, cudaStream_t stream) {
  const std::size_t bytes = count * size_of(type);
  return gather(comm, stream, in, bytes, [=](char* all) {
    for (int r = 1; r < comm->ranks; ++r) combine(all, all + static_cast<std::size_t>(r) * bytes, count, type, how);
    if (bytes > 0) std::memcpy(out, all, bytes);
  });
}

ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t how,
                               ncclComm_t comm, cudaStream_t stream) {
  const std::size_t block = count * size_of(type), bytes = block * static_cast<std::size_t>(comm->ranks);
  return gather(comm, stream, in, bytes, [=](char* all) {
    char* mine = all + static_cast<std::size_t>(comm->rank) * block;
    for (int r = 1; r < comm->ranks; ++r) combine(mine, mine + static_cast<std::size_t>(r) * bytes, count, type, how);
    if (block > 0) std::memcpy(out, mine, block);
  });
}

ncclResult_t ncclAllGather(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  const std::size_t bytes = count * size_of(type);
  return gather(comm, stream, in, bytes, [=](char* all) {
    if (bytes > 0) std::memcpy(out, all, bytes * static_cast<std::size_t>(comm->ranks));
  });
}

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* in, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  char* data = const_cast<char*>(static_cast<const char*>(in));
  grouped.push_back({comm, &stream_of(stream), {comm->channel(comm->rank, peer), data, count * size_of(type), true}});
  return ncclSuccess;
}

ncclResult_t ncclRecv(void* out, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  grouped.push_back({comm,
                     &stream_of(stream),
                     {comm->channel(peer, comm->rank), static_cast<char*>(out), count * size_of(type), false}});
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (--depth > 0 || grouped.empty()) return ncclSuccess;
  std::vector<Transfer> all;
  for (const Call& call : grouped) all.push_back(call.transfer);
  const ncclComm_t comm = grouped[0].comm;
  Stream& stream = *grouped[0].stream;
  grouped.clear();
  return put(comm, stream, [=] { comm->transfer(all); });
}

// ---- for tests

void weft_fake_cuda(weft::comm::CudaCalls* calls) {
  *calls = {
      .device_count =
          [](int* count) {
            *count = devices;
            return cudaSuccess;
          },
      .device_id =
          [](int device, weft::comm::DeviceId* id) {
            id->fill(static_cast<char>('a' + device));
            return cudaSuccess;
          },
      .set_device = [](int) { return cudaSuccess; },
      .is_on_device = is_on_device,
      .allocate = allocate,
      .free = free_device,
      .allocate_host =
          [](void** data, std::size_t bytes) {
            *data = std::malloc(bytes);
            return cudaSuccess;
          },
      .free_host =
          [](void* data) {
            std::free(data);
            return cudaSuccess;
          },
      .create_stream =
          [](cudaStream_t* stream) {
            *stream = reinterpret_cast<cudaStream_t>(new Stream);
            return cudaSuccess;
          },
      .destroy_stream =
          [](cudaStream_t stream) {
            Stream& s = stream_of(stream);
            {
              const std::lock_guard lock(s.mutex);
              s.ends = true;
              s.changed.notify_all();
            }
            s.thread.join();
            delete &s;
            return cudaSuccess;
          },
      .create_event =
          [](cudaEvent_t* event) {
            *event = reinterpret_cast<cudaEvent_t>(new Event);
            return cudaSuccess;
          },
      .destroy_event =
          [](cudaEvent_t event) {
            delete &event_of(event);
            return cudaSuccess;
          },
      .record_event =
          [](cudaEvent_t event, cudaStream_t stream) {
            const auto passed = std::make_shared<std::atomic<bool>>(false);
            event_of(event).passed = passed;
            stream_of(stream).put([passed] { *passed = true; });
            return cudaSuccess;
          },
      .query_event = [](cudaEvent_t event) { return *event_of(event).passed ? cudaSuccess : cudaErrorNotReady; },
      .copy =
          [](void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
            stream_of(stream).put([=] {
              if (bytes > 0) std::memmove(to, from, bytes);
            });
            return cudaSuccess;
          },
      .fill_zeros =
          [](void* data, std::size_t bytes, cudaStream_t stream) {
            stream_of(stream).put([=] { std::memset(data, 0, bytes); });
            return cudaSuccess;
          },
      .error_text = [](cudaError_t) { return "an error of the fake device"; },
  };
}

void weft_fake_devices(int count) { devices = count; }

void weft_fake_failure(int rank, int after) {
  failing_after = after;
  failing_rank = rank;
}

}  // extern "C"
