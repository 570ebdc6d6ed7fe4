#include "runtime/trace.h"

#include <algorithm>
#include <cstring>

#include "base/index.h"

namespace weft {

namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 19;  // records of a lane, 20 MiB
constexpr std::int64_t kOthers = 3;                    // records of a run besides its steps
constexpr std::int64_t kFields = 5;
static_assert(sizeof(TraceRecord) == kFields * sizeof(std::int64_t));

}  // namespace

TraceLog::TraceLog(int workers, std::int64_t steps, std::int64_t first, std::int64_t runs)
    : first_(first),
      runs_(std::max<std::int64_t>(1, std::min(runs, kMost / (steps + kOthers)))),
      capacity_(std::min(kMost, runs_ * (steps + kOthers))),
      shares_(static_cast<std::size_t>(workers)) {
  steps_.records = std::make_unique<TraceRecord[]>(static_cast<std::size_t>(capacity_));
  for (Lane& lane : shares_) lane.records = std::make_unique<TraceRecord[]>(static_cast<std::size_t>(capacity_));
}

void TraceLog::add_share(int worker, std::int64_t begin, std::int64_t end) {
  Lane& lane = shares_[at(worker)];
  if (lane.serial != serial_) {
    lane.serial = serial_;
    write(lane, {what_, run_, begin, end, end - begin});
  } else if (lane.count > 0) {
    TraceRecord& last = lane.records[at(lane.count - 1)];
    last.end = end;
    last.busy += end - begin;
  }
}

// Each lane: how many records, then room for all that there could be.
std::int64_t TraceLog::numbers() const {
  return (1 + static_cast<std::int64_t>(shares_.size())) * (1 + capacity_ * kFields);
}

std::vector<std::int64_t> TraceLog::packed() const {
  std::vector<std::int64_t> all(static_cast<std::size_t>(numbers()));
  std::int64_t* to = all.data();
  const auto pack = [&](const Lane& lane) {
    *to = lane.count;
    std::memcpy(to + 1, lane.records.get(), static_cast<std::size_t>(lane.count) * sizeof(TraceRecord));
    to += 1 + capacity_ * kFields;
  };
  pack(steps_);
  for (const Lane& lane : shares_) pack(lane);
  return all;
}

TraceLanes TraceLog::unpacked(const std::int64_t* numbers) const {
  const auto unpack = [&] {
    std::vector<TraceRecord> records(static_cast<std::size_t>(*numbers));
    if (!records.empty())
      std::memcpy(static_cast<void*>(records.data()), numbers + 1, records.size() * sizeof(TraceRecord));
    numbers += 1 + capacity_ * kFields;
    return records;
  };
  TraceLanes lanes;
  lanes.steps = unpack();
  for (std::size_t worker = 0; worker < shares_.size(); ++worker) lanes.shares.push_back(unpack());
  return lanes;
}

}  // namespace weft
