#include "comm/measure.h"

#include <algorithm>
#include <cstdio>
#include <thread>

#include "base/clock.h"
#include "base/index.h"
#include "base/str.h"
#include "comm/launch.h"
#include "comm/spawn.h"
#include "comm/wire.h"

namespace weft::comm {

namespace {

int calls_per_repeat(std::size_t bytes, bool crowded) {
  if (crowded) return bytes <= (64 << 10) ? 200 : bytes <= (1 << 20) ? 20 : 3;
  return bytes <= (64 << 10) ? 5000 : bytes <= (1 << 20) ? 200 : bytes <= (16 << 20) ? 10 : 3;
}

// One call in place on a buffer of `count` elements, count divisible by the size of the group.
void call(Group& group, Collective what, float* data, std::size_t count) {
  const std::size_t block = count / static_cast<std::size_t>(group.size());
  float* mine = data + block * static_cast<std::size_t>(group.rank());
  const Buffer whole{data, count, DType::kF32}, part{mine, block, DType::kF32};
  const int next = (group.rank() + 1) % group.size(), before = (group.rank() + group.size() - 1) % group.size();
  switch (what) {
    case Collective::kAllReduce: return all_reduce(group, whole, whole, Reduce::kSum, "measure");
    case Collective::kReduceScatter: return reduce_scatter(group, whole, part, Reduce::kSum, "measure");
    case Collective::kAllGather: return all_gather(group, part, whole, "measure");
    case Collective::kAllToAll: return all_to_all(group, whole, whole, "measure");
    case Collective::kPermute: return permute(group, whole, whole, before, next, "measure");
    case Collective::kBarrier: return barrier(group, "measure");
  }
}

// Mean seconds per call for every repeat, by the clock of rank 0; none in the processes of other ranks.
std::vector<double> time_calls(const std::string& kind, Collective what, int processors, std::size_t bytes,
                               int repeats) {
  const std::optional<Launch> launch = kind == "mpi" ? launched() : std::nullopt;
  if (launch && launch->rank >= processors && launch->size > processors) return {};
  const std::unique_ptr<Wire> wire = kind == "mpi" ? make_mpi_wire(processors) : make_threads_wire(processors);
  const std::size_t size = static_cast<std::size_t>(processors);
  const std::size_t count = std::max((bytes / sizeof(float) + size - 1) / size, std::size_t{1}) * size;
  const int calls = calls_per_repeat(bytes, size > std::thread::hardware_concurrency());
  const std::vector<ProcessorId> members = identity<ProcessorId>(size);
  std::vector<double> seconds;
  on_every_processor(*wire, [&](ProcessorId processor) {
    const std::unique_ptr<Group> group = wire->join(processor, members);
    const Memory memory = allocate(*wire, processor, count * sizeof(float));
    float* data = reinterpret_cast<float*>(memory.data());
    volatile float* written = data;  // so that the compiler keeps the stores of every call
    for (int repeat = 0; repeat < repeats; ++repeat) {
      double total = 0;
      for (int i = 0; i < calls; ++i) {
        for (std::size_t j = 0; j < count; ++j) written[j] = 1e-3f * static_cast<float>(i & 7);
        barrier(*group, "before the measured call");
        const double begin = seconds_now();
        call(*group, what, data, count);
        total += seconds_now() - begin;
      }
      if (processor == members[0]) seconds.push_back(total / calls);
    }
    barrier(*group, "before the buffers go");
  });
  return seconds;
}

}  // namespace

std::vector<CollectiveTiming> measure_collectives(const std::vector<Collective>& kinds,
                                                  const std::vector<int>& processors,
                                                  const std::vector<std::size_t>& bytes, int repeats,
                                                  const std::string& wire) {
  std::vector<CollectiveTiming> timings;
  for (const Collective what : kinds)
    for (const int size : processors)
      for (const std::size_t each : bytes) {
        std::vector<double> seconds = time_calls(wire, what, size, each, std::max(repeats, 1));
        if (seconds.empty()) continue;
        std::sort(seconds.begin(), seconds.end());
        const auto at = [&](double part) { return seconds[static_cast<std::size_t>(part * (seconds.size() - 1))]; };
        timings.push_back({.wire = wire,
                           .what = what,
                           .processors = size,
                           .bytes = each,
                           .median_seconds = at(0.5),
                           .p10_seconds = at(0.1),
                           .p90_seconds = at(0.9),
                           .gigabytes_per_second = static_cast<double>(each) / at(0.5) * 1e-9});
      }
  return timings;
}

std::string table_of(const std::vector<CollectiveTiming>& timings) {
  std::string text = "collective      processors       bytes    median us       p10 us       p90 us      GB/s\n";
  for (const CollectiveTiming& t : timings) {
    char line[160];
    std::snprintf(line, sizeof line, "%-15s %10d %11zu %12.2f %12.2f %12.2f %9.2f\n",
                  std::string(name_of(t.what)).c_str(), t.processors, t.bytes, t.median_seconds * 1e6,
                  t.p10_seconds * 1e6, t.p90_seconds * 1e6, t.gigabytes_per_second);
    text += line;
  }
  return text;
}

std::string json_of(const CollectiveTiming& t) {
  return str("{\"collective\": \"", t.what, "\", \"wire\": \"", t.wire, "\", \"processors\": ", t.processors,
             ", \"bytes\": ", t.bytes, ", \"median_s\": ", t.median_seconds, ", \"p10_s\": ", t.p10_seconds,
             ", \"p90_s\": ", t.p90_seconds, ", \"gb_per_s\": ", t.gigabytes_per_second, "}");
}

}  // namespace weft::comm
