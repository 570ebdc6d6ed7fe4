#include "train/metrics.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/expect_error.h"
#include "train/signals.h"

namespace weft::train::metrics_test {
namespace {

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Folder {
  std::string path = ::testing::TempDir() + "/weft_metrics";
  Folder() {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

std::string events_in(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().find("tfevents") != std::string::npos) return file_text(entry.path());
  return "";
}

TEST(Metrics, LinesAreJson) {
  const Folder folder;
  {
    MetricsFiles files(folder.path);
    files.write(3, {{"loss", 0.1}, {"speed", std::nan("")}});
    files.write(4, {{"loss", 2}});
  }
  const std::string text = file_text(folder.path + "/metrics.jsonl");
  EXPECT_THAT(text, ::testing::HasSubstr("{\"step\":3,"));
  EXPECT_THAT(text, ::testing::HasSubstr("\"loss\":0.1,\"speed\":\"nan\"}\n{\"step\":4,"));
  { MetricsFiles(folder.path).write(5, {}); }
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  const std::string more = file_text(folder.path + "/metrics.jsonl");
  EXPECT_EQ(more.substr(0, text.size()), text) << "a resumed run keeps what is there";
}

// Every record: u64 length, its masked crc, data, its masked crc; the first says which version it is.
TEST(Metrics, EventFilesAreRecords) {
  const Folder folder;
  { MetricsFiles(folder.path).write(7, {{"loss", 0.5}}); }
  const std::string bytes = events_in(folder.path);
  std::vector<std::string> records;
  for (std::size_t at = 0; at < bytes.size();) {
    std::uint64_t length = 0;
    ASSERT_LE(at + 12, bytes.size());
    std::memcpy(&length, bytes.data() + at, 8);
    ASSERT_LE(at + 16 + length, bytes.size());
    const std::string data = bytes.substr(at + 12, length);
    EXPECT_EQ(bytes.substr(at, 16 + length), event_record(data));
    records.push_back(data);
    at += 16 + length;
  }
  ASSERT_EQ(records.size(), 2u);
  EXPECT_THAT(records[0], ::testing::HasSubstr("brain.Event:2"));
  EXPECT_THAT(records[1], ::testing::HasSubstr(std::string("\x10\x07")));                     // step = 7
  EXPECT_THAT(records[1], ::testing::HasSubstr(std::string("\x0a\x04loss\x15\0\0\0?", 11)));  // tag, 0.5f
}

TEST(Metrics, ARecordIsWholeOrAbsent) {
  const Folder folder;
  const std::string path = folder.path + "/records", record(600, 'a');
  const StopSignals signals;  // a write beyond the limit fails instead of ending the process
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit few = before;
  few.rlim_cur = 1000;
  RecordFile file(path);
  file.append(record);
  setrlimit(RLIMIT_FSIZE, &few);
  EXPECT_RUN_ERROR(file.append(record), "cannot write metrics to '" + path + "': File too large", "run.out");
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(file_text(path), record);
  file.append(record);
  EXPECT_EQ(file_text(path), record + record);
}

TEST(Metrics, AFolderThatIsNotThereIsAnError) {
  EXPECT_RUN_ERROR(MetricsFiles("/nowhere/at/all"), "cannot write metrics to '/nowhere/at/all/metrics.jsonl'",
                   "run.out");
}

}  // namespace
}  // namespace weft::train::metrics_test
