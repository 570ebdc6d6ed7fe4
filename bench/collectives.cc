// weft_bench_collectives: the time of every collective on the threads wire.
// Roof of all_reduce in place with two processors: the hand-written loop (each sums its half of both buffers into both).
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "comm/measure.h"
#include "weft/error.h"

namespace {

using weft::comm::Collective;

constexpr const char* kUsage =
    "usage: weft_bench_collectives [--kinds all_reduce,…] [--processors 2,8] [--bytes 8,1048576] [--repeats 11] "
    "[--json]\n";

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) out.push_back(word);
  return out;
}

Collective kind_of(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(Collective::kBarrier); ++i)
    if (name_of(static_cast<Collective>(i)) == name) return static_cast<Collective>(i);
  throw weft::UserError({.what = "there is no collective '" + name + "'", .where = "--kinds", .fix = kUsage});
}

struct Options {
  std::vector<Collective> kinds = {Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather,
                                   Collective::kAllToAll, Collective::kPermute};
  std::vector<int> processors = {2};
  std::vector<std::size_t> bytes = {8, 1024, 65536, 1 << 20, 16 << 20, 64 << 20};
  int repeats = 11;
  bool json = false;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--json") {
      options.json = true;
      continue;
    }
    const std::string value = i + 1 < argc ? argv[++i] : "";
    if (flag == "--kinds") {
      options.kinds.clear();
      for (const std::string& word : words(value)) options.kinds.push_back(kind_of(word));
    } else if (flag == "--processors") {
      options.processors.clear();
      for (const std::string& word : words(value)) options.processors.push_back(std::stoi(word));
    } else if (flag == "--bytes") {
      options.bytes.clear();
      for (const std::string& word : words(value)) options.bytes.push_back(std::stoull(word));
    } else if (flag == "--repeats") {
      options.repeats = std::stoi(value);
    } else {
      throw weft::UserError(
          {.what = "there is no option '" + std::string(flag) + "'", .where = "command line", .fix = kUsage});
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse(argc, argv);
    const auto timings =
        weft::comm::measure_collectives(options.kinds, options.processors, options.bytes, options.repeats);
    std::cout << weft::comm::table_of(timings);
    if (options.json)
      for (const auto& timing : timings) std::cout << weft::comm::json_of(timing) << '\n';
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
  }
}
