// Text that is encoded once into a file of a cache gives the batches of text in memory.
#include <gmock/gmock.h>

#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>

#include "data/files.h"
#include "weft/data.h"

namespace weft::data::cache_test {
namespace {

namespace fs = std::filesystem;

class TokenCache : public ::testing::Test {
 protected:
  TokenCache() : folder_(test::scratch("token_cache")) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::string lines, targets, pairs;
    for (int i = 0; i < 40; ++i) {
      const std::string one = "line " + std::to_string(i * i), other = "zeile " + std::to_string(i);
      lines += one + (i % 5 == 0 ? "\n\n" : "\n");
      targets += other + (i % 5 == 0 ? "\n\n" : "\n");
      pairs += one + "\t" + other + "\n";
    }
    write("lines.txt", lines);
    write("targets.txt", targets);
    write("pairs.tsv", pairs);
  }
  ~TokenCache() override { fs::remove_all(folder_); }

  std::string in(const std::string& name) const { return folder_ + "/" + name; }
  void write(const std::string& name, const std::string& text) const { std::ofstream(in(name)) << text; }

  SourceOptions options(const std::string& format) const {
    SourceOptions o{.files = {in(format == "tsv" ? "pairs.tsv" : "lines.txt")}, .format = format};
    if (format == "pairs") o.targets_file = in("targets.txt");
    o.batch = 3;
    o.length = 24;
    o.repeat = false;
    return o;
  }

  // All batches of an epoch, by name and value, and the position after them.
  static std::string all_of(const SourceOptions& o) {
    Batches batches(o);
    std::string text;
    while (const std::optional<Batch> batch = batches.next())
      for (const auto& [name, array] : *batch) {
        text += name;
        for (const double value : array.values()) text += " " + std::to_string(static_cast<int>(value));
        text += "\n";
      }
    return text + batches.position();
  }

  std::vector<fs::path> files_in_cache() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(in("cache")))
      if (entry.path().extension() == ".tokens") found.push_back(entry.path());
    return found;
  }

  std::string folder_;
};

TEST_F(TokenCache, GivesTheBatchesOfMemory) {
  for (const std::string format : {"text", "documents", "lines", "tsv", "pairs"})
    for (const bool pack : {true, false}) {
      SCOPED_TRACE(format + (pack ? " packed" : ""));
      SourceOptions o = options(format);
      o.pack = pack;
      const std::string memory = all_of(o);
      o.cache = in("cache");
      EXPECT_EQ(all_of(o), memory) << "made";
      EXPECT_EQ(all_of(o), memory) << "found";
    }
  EXPECT_EQ(files_in_cache().size(), 5u);
}

TEST_F(TokenCache, IsReadInPlaceOfTheText) {
  SourceOptions o = options("lines");
  const std::string memory = all_of(o);
  o.cache = in("cache");
  EXPECT_EQ(all_of(o), memory);
  ASSERT_EQ(files_in_cache().size(), 1u);
  const fs::path path = files_in_cache()[0];
  std::string bytes = [&] {
    std::ifstream file(path, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  }();
  const auto last = static_cast<std::ptrdiff_t>(bytes.find_last_not_of('\0'));
  ASSERT_EQ(bytes[static_cast<std::size_t>(last)], Vocabulary::kEnd);
  bytes[static_cast<std::size_t>(last)] = 77;
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_THAT(all_of(o), ::testing::HasSubstr(" 77 "));
}

TEST_F(TokenCache, ATextThatHasChangedIsEncodedAgain) {
  SourceOptions o = options("lines");
  o.cache = in("cache");
  const std::string before = all_of(o);
  const auto time = fs::last_write_time(in("lines.txt"));
  std::string text;
  std::getline(std::ifstream(in("lines.txt")), text, '\0');
  text[0] = 'L';
  write("lines.txt", text);  // as long as before
  fs::last_write_time(in("lines.txt"), time);
  const std::string after = all_of(o);
  EXPECT_NE(after, before) << "found by its contents";
  o.cache = "";
  EXPECT_EQ(after, all_of(o));
  EXPECT_EQ(files_in_cache().size(), 1u);

  o.cache = in("cache");
  fs::resize_file(files_in_cache()[0], fs::file_size(files_in_cache()[0]) - 8);
  EXPECT_EQ(all_of(o), after) << "half a file is no cache";
}

TEST_F(TokenCache, WorksWhereNothingCanBeWritten) {
  SourceOptions o = options("tsv");
  const std::string memory = all_of(o);
  write("file", "");
  o.cache = in("file/cache");  // no folder, whoever asks
  EXPECT_EQ(all_of(o), memory);
}

// The first process makes the file; the others wait and read it.
TEST_F(TokenCache, ManyProcessesMakeOne) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += "a longer text, line " + std::to_string(i) + "\n";
  write("lines.txt", text);
  SourceOptions o = options("lines");
  o.batch = 500;
  const std::string memory = all_of(o);
  o.cache = in("cache");
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(all_of(o) == memory ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(files_in_cache().size(), 1u);
}

}  // namespace
}  // namespace weft::data::cache_test
