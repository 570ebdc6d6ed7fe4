// Drives a fuzz target where libFuzzer is absent: weft_fuzz_x SECONDS CORPUS DICT FOUND [SEED]
// Replays every file of the corpus, then feeds mutations of them for so many seconds. The input at hand is written to FOUND when
// the process dies of it or is stuck in it. The same seed (default: 1) gives the same inputs.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz/target.h"

// Under asan: what is too much for a reader of small inputs is a finding, as is a stray abort.
extern "C" const char* __asan_default_options() {
  return "handle_abort=1:max_allocation_size_mb=1024:allocator_may_return_null=0:detect_leaks=1";
}
// Null without a sanitizer.
extern "C" [[gnu::weak]] void __sanitizer_set_death_callback(void (*callback)());

namespace {

constexpr unsigned kMostSeconds = 60;  // for one input
constexpr std::size_t kLongest = 1 << 16;

std::string current, found;  // the input at hand, and where it goes if it kills us

void keep_current() {
  std::ofstream(found, std::ios::binary).write(current.data(), static_cast<std::streamsize>(current.size()));
  std::cerr << "fuzz: the input is in " << found << "\n";
}

void died(int signal) {
  keep_current();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void stuck(int) {
  std::cerr << "fuzz: one input took more than " << kMostSeconds << " s\n";
  keep_current();
  _exit(1);
}

void feed(const std::string& input) {
  current = input;
  alarm(kMostSeconds);
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(current.data()), current.size());
  alarm(0);
}

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The quoted words of a libFuzzer dictionary.
std::vector<std::string> words_of(const std::string& path) {
  std::vector<std::string> words;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t begin = line.find('"'), end = line.rfind('"');
    if (!line.starts_with('#') && begin < end) words.push_back(line.substr(begin + 1, end - begin - 1));
  }
  return words;
}

class Mutator {
 public:
  Mutator(std::vector<std::string> seeds, std::vector<std::string> words, unsigned seed)
      : seeds_(std::move(seeds)), words_(std::move(words)), random_(seed) {
    for (const char* number : {"0", "1", "-1", "2", "3", "255", "65536", "2147483648", "17592186044416",
                               "9223372036854775807", "18446744073709551615", "1e308", "nan"})
      words_.emplace_back(number);
  }

  std::string next() {
    std::string input = one_of(seeds_);
    for (std::size_t i = 0, times = 1 + below(6); i < times; ++i) mutate(input);
    if (input.size() > kLongest) input.resize(kLongest);
    return input;
  }

 private:
  std::size_t below(std::size_t end) { return end == 0 ? 0 : random_() % end; }
  const std::string& one_of(const std::vector<std::string>& all) { return all[below(all.size())]; }

  // Where a line begins, and where the next one does.
  std::pair<std::size_t, std::size_t> line_of(const std::string& text) {
    const std::size_t at = below(text.size() + 1), before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    return {begin, std::min(text.find('\n', begin), text.size() - 1) + 1};
  }

  void mutate(std::string& text) {
    const std::size_t at = below(text.size()), length = std::min(1 + below(16), text.size() - at);
    switch (below(10)) {
      case 0:
        if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1: text.insert(at, 1, static_cast<char>(below(256))); break;
      case 2: text.erase(at, length); break;
      case 3: text.insert(at, text.substr(at, length)); break;
      case 4: text.insert(at, one_of(words_)); break;
      case 5: text.replace(at, length, one_of(words_)); break;
      case 6: replace_word(text, at); break;
      case 7: splice(text); break;
      case 8: move_line(text); break;
      default:
        if (!text.empty()) text[at] = static_cast<char>(below(256));
    }
  }

  // The whole word or number at a place becomes another.
  void replace_word(std::string& text, std::size_t at) {
    const auto is_inside = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    std::size_t begin = at, end = at;
    while (begin > 0 && is_inside(text[begin - 1])) --begin;
    while (end < text.size() && is_inside(text[end])) ++end;
    text.replace(begin, end - begin, one_of(words_));
  }

  void splice(std::string& text) {
    const std::string& other = one_of(seeds_);
    const std::size_t from = below(other.size());
    text.insert(below(text.size() + 1), other.substr(from, below(256)));
  }

  // A line of this or another seed is copied here, or one of ours is dropped.
  void move_line(std::string& text) {
    if (text.empty()) return;
    const auto [begin, end] = line_of(text);
    if (below(3) == 0) {
      text.erase(begin, end - begin);
      return;
    }
    const std::string other = below(2) ? text : one_of(seeds_);
    if (other.empty()) return;
    const auto [from, to] = line_of(other);
    text.insert(begin, other.substr(from, to - from));
  }

  std::vector<std::string> seeds_, words_;
  std::mt19937 random_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::cerr << "usage: " << argv[0] << " SECONDS CORPUS DICT FOUND [SEED]\n";
    return 2;
  }
  found = argv[4];
  std::signal(SIGALRM, stuck);
  if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(keep_current);
  else
    for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) std::signal(signal, died);
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[2])) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> seeds;
  for (const std::filesystem::path& file : files) {
    seeds.push_back(content(file));
    feed(seeds.back());
  }
  if (seeds.empty()) {
    std::cerr << "fuzz: the corpus " << argv[2] << " is empty\n";
    return 1;
  }
  const unsigned seed = argc > 5 ? static_cast<unsigned>(std::stoul(argv[5])) : 1;
  Mutator mutator(seeds, words_of(argv[3]), seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::stod(argv[1]));
  std::size_t count = 0;
  for (; std::chrono::steady_clock::now() < end; ++count) feed(mutator.next());
  std::cout << files.size() << " files and " << count << " mutations of them, seed " << seed << "\n";
}
