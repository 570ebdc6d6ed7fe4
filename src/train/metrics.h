// Metrics on disk: JSON lines, and the event files that TensorBoard reads.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace weft::train {

using Metrics = std::map<std::string, double>;

// A file that grows by whole records: one that cannot be written in full is taken back.
class RecordFile {
 public:
  explicit RecordFile(std::string path);  // made if it is not there; RunError if it cannot be opened
  ~RecordFile();
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  void append(std::string_view record);  // RunError if the system fails

 private:
  [[noreturn]] void fail(int error) const;

  std::string path_;
  int descriptor_;
};

// <folder>/metrics.jsonl and <folder>/events.out.tfevents.…: appended to, whole records at a time, so that a killed run
// leaves at most one broken line at the end. A resumed run goes on in the same .jsonl and in an event file of its own.
class MetricsFiles {
 public:
  // RunError if the folder cannot be written.
  explicit MetricsFiles(const std::string& folder);

  // RunError if the disk is full or fails; later records can be written nonetheless.
  void write(std::int64_t step, const Metrics& metrics);

 private:
  RecordFile lines_, events_;
};

// One record of an event file: length, data and their checksums. Visible for tests.
std::string event_record(const std::string& data);

}  // namespace weft::train
