// Metrics on disk: JSON lines, and the event files that TensorBoard reads.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <string>

namespace weft::train {

using Metrics = std::map<std::string, double>;

// <folder>/metrics.jsonl and <folder>/events.out.tfevents.…: appended to, whole records at a time, so that a killed run
// leaves at most one broken line at the end. A resumed run goes on in the same .jsonl and in an event file of its own.
class MetricsFiles {
 public:
  // RunError if the folder cannot be written.
  explicit MetricsFiles(const std::string& folder);

  void write(std::int64_t step, const Metrics& metrics);

 private:
  void check(const std::ofstream& file, const std::string& path) const;

  std::string lines_path_, events_path_;
  std::ofstream lines_, events_;
};

// One record of an event file: length, data and their checksums. Visible for tests.
std::string event_record(const std::string& data);

}  // namespace weft::train
