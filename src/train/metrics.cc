#include "train/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "train/checkpoint_files.h"
#include "weft/error.h"

namespace weft::train {

namespace {

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

template <class T>
std::string little_endian(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

// The parts of protocol buffers that an Event needs; a field is its number, its wire type and its value.
std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
  return bytes + static_cast<char>(value);
}
std::string whole(int field, std::uint64_t value) {
  return varint(static_cast<std::uint64_t>(field) << 3) + varint(value);
}
std::string fixed64(int field, double value) {
  return varint(static_cast<std::uint64_t>(field) << 3 | 1) + little_endian(value);
}
std::string fixed32(int field, float value) {
  return varint(static_cast<std::uint64_t>(field) << 3 | 5) + little_endian(value);
}
std::string bytes(int field, const std::string& value) {
  return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(value.size()) + value;
}

// Event { wall_time = 1, step = 2, file_version = 3, summary = 5 { value = 1 { tag = 1, simple_value = 2 } } }
std::string version_event() { return fixed64(1, wall_time()) + bytes(3, "brain.Event:2"); }
std::string metrics_event(std::int64_t step, const Metrics& metrics) {
  std::string summary;
  for (const auto& [tag, value] : metrics) summary += bytes(1, bytes(1, tag) + fixed32(2, static_cast<float>(value)));
  return fixed64(1, wall_time()) + whole(2, static_cast<std::uint64_t>(step)) + bytes(5, summary);
}

std::uint32_t masked(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace

std::string event_record(const std::string& data) {
  const std::string length = little_endian<std::uint64_t>(data.size());
  return length + little_endian(masked(checkpoint::crc32c(length))) + data +
         little_endian(masked(checkpoint::crc32c(data)));
}

RecordFile::RecordFile(std::string path)
    : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) fail(errno);
}

RecordFile::~RecordFile() { ::close(descriptor_); }

void RecordFile::append(std::string_view record) {
  const off_t end = ::lseek(descriptor_, 0, SEEK_END);
  while (!record.empty()) {
    const ssize_t done = ::write(descriptor_, record.data(), record.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) {
      const int error = errno;
      if (end >= 0 && ::ftruncate(descriptor_, end) != 0) fail(error);  // of no file with a size, such as a pipe
      fail(error);
    }
    record.remove_prefix(static_cast<std::size_t>(done));
  }
}

void RecordFile::fail(int error) const {
  throw RunError({.code = "metrics.cannot-write",
                  .what = "cannot write metrics to '" + path_ + "': " + std::strerror(error),
                  .where = path_,
                  .fix = "see that the disk has room and that you may write there, or set run.out to another folder"});
}

MetricsFiles::MetricsFiles(const std::string& folder)
    : lines_(folder + "/metrics.jsonl"),
      events_(folder + "/events.out.tfevents." + std::to_string(static_cast<std::int64_t>(wall_time())) + "." +
              std::to_string(getpid()) + ".weft") {
  events_.append(event_record(version_event()));
}

void MetricsFiles::write(std::int64_t step, const Metrics& metrics) {
  nlohmann::ordered_json line = {{"step", step}, {"time", wall_time()}};
  for (const auto& [name, value] : metrics) {
    if (std::isfinite(value)) line[name] = value;
    else line[name] = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";  // JSON has no such numbers
  }
  lines_.append(line.dump() + "\n");
  events_.append(event_record(metrics_event(step, metrics)));
}

}  // namespace weft::train
