// Examples from text: a stream, documents, lines, pairs. The text is encoded once, on all cores, and then dropped; with a
// cache once for all processes, which then read the ids that they need.
#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <thread>

#include "data/encoded_text.h"
#include "data/hash.h"
#include "data/text_file.h"

namespace weft::data {

namespace {

constexpr std::size_t kJobBytes = 1 << 18;

using Texts = std::vector<std::string_view>;

// Runs job(0) … job(count - 1), each once; rethrows the error of the first failed job.
template <class Job>
void on_all_cores(std::size_t count, const Job& job) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::exception_ptr> failures(count);
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) try {
        job(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
  };
  {
    std::vector<std::jthread> helpers;
    const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
    for (std::size_t i = 1; i < std::min(cores, count); ++i) helpers.emplace_back(work);
    work();
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

// Each text is one sequence more, with an end behind it if asked for.
void append(EncodedSide& side, const Vocabulary& vocabulary, const Texts& texts, bool with_ends) {
  std::vector<std::size_t> jobs = {0};  // job j: texts[jobs[j], jobs[j + 1])
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    bytes += texts[i].size();
    if (bytes < kJobBytes && i + 1 < texts.size()) continue;
    jobs.push_back(i + 1);
    bytes = 0;
  }
  struct Done {
    std::vector<std::int32_t> ids;
    std::vector<std::int64_t> sizes;
  };
  std::vector<Done> done(jobs.size() - 1);
  on_all_cores(done.size(), [&](std::size_t job) {
    for (std::size_t i = jobs[job]; i < jobs[job + 1]; ++i) {
      const std::vector<std::int32_t> one = vocabulary.encode(texts[i]);
      done[job].ids.insert(done[job].ids.end(), one.begin(), one.end());
      if (with_ends) done[job].ids.push_back(Vocabulary::kEnd);
      done[job].sizes.push_back(static_cast<std::int64_t>(one.size()) + with_ends);
    }
  });
  for (Done& part : done) {
    side.ids.append(part.ids);
    for (std::int64_t size : part.sizes) side.begins.push_back(side.begins.back() + size);
    part = {};
  }
}

class TextExamples : public Examples {
 public:
  TextExamples(ReadableText text, bool join) : text_(std::move(text)), join_(join) {}

  std::int64_t count() const override { return targets().count; }
  void read(std::int64_t index, Example& to) const override {
    to.inputs.clear();
    to.targets.clear();
    if (is_pairs()) text_.sides[0].read(index, join_ ? to.targets : to.inputs);
    targets().read(index, to.targets);
  }
  ExampleSize size(std::int64_t index) const override {
    const std::int64_t inputs = is_pairs() ? text_.sides[0].size(index) : 0, count = targets().size(index);
    return join_ ? ExampleSize{.targets = inputs + count} : ExampleSize{inputs, count};
  }
  bool has_inputs() const override { return is_pairs() && !join_; }
  std::string fingerprint() const override { return text_.fingerprint; }

 private:
  bool is_pairs() const { return text_.sides.size() > 1; }
  const Sequences& targets() const { return text_.sides.back(); }

  ReadableText text_;
  bool join_ = false;
};

// The text in parts of a limited size, cut at line ends.
Texts parts_of(std::string_view text) {
  Texts parts;
  while (!text.empty()) {
    const std::size_t line_end = text.find('\n', std::min(kJobBytes, text.size()));
    const std::size_t size = std::min(line_end == std::string_view::npos ? text.size() : line_end + 1, text.size());
    parts.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return parts;
}

// The texts between blank lines, without the end of the last line.
Texts documents_of(const TextFile& file) {
  Texts documents;
  bool is_open = false;
  for (std::string_view line : file.lines()) {
    const bool goes_on = is_open && !is_blank(line);
    is_open = !is_blank(line);
    if (goes_on) documents.back() = {documents.back().data(), line.data() + line.size()};
    else if (is_open) documents.push_back(line);
  }
  return documents;
}

Texts lines_of(const TextFile& file) {
  Texts lines;
  for (std::string_view line : file.lines())
    if (!is_blank(line)) lines.push_back(line);
  return lines;
}

// Inputs and targets, line by line; pairs with an empty side are left out.
struct Pairs {
  Texts inputs, targets;
  void add(std::string_view input, std::string_view target) {
    if (is_blank(input) || is_blank(target)) return;
    inputs.push_back(input);
    targets.push_back(target);
  }
};

void check_examples(std::int64_t count, const SourceOptions& options, const std::string& format) {
  if (count == 0)
    throw UserError({.code = "data.no-example",
                     .what = sentence("the files have no example: every line is blank, or lacks a side"),
                     .where = options.files[0],
                     .fix = sentence("give files with text for the format '", format, "'")});
}

EncodedText encoded_stream(const SourceOptions& options, const Vocabulary& vocabulary) {
  Hash hash;
  EncodedSide all(vocabulary);
  for (const std::string& path : options.files) {
    const TextFile file(path);
    hash.add(file.text());
    append(all, vocabulary, parts_of(file.text()), false);
    all.ids.append(std::vector{Vocabulary::kEnd});
  }
  all.begins = {0};  // a stream has no sequences
  EncodedText text{hash.text(), {}};
  text.sides.push_back(std::move(all));
  return text;
}

EncodedText encoded_single(const SourceOptions& options, const std::string& format, const Vocabulary& vocabulary) {
  Hash hash;
  EncodedSide targets(vocabulary);
  for (const std::string& path : options.files) {
    const TextFile file(path);
    hash.add(file.text());
    append(targets, vocabulary, format == "documents" ? documents_of(file) : lines_of(file), true);
  }
  EncodedText text{hash.text(), {}};
  text.sides.push_back(std::move(targets));
  return text;
}

EncodedText encoded_pairs(const SourceOptions& options, const std::string& format, const Vocabulary& vocabulary) {
  Hash hash;
  EncodedSide inputs(vocabulary), targets(vocabulary);
  const auto add = [&](const Pairs& pairs) {
    append(inputs, vocabulary, pairs.inputs, true);
    append(targets, vocabulary, pairs.targets, true);
  };
  if (format == "tsv") {
    for (const std::string& path : options.files) {
      const TextFile file(path);
      hash.add(file.text());
      Pairs pairs;
      for (std::size_t i = 0; i < file.lines().size(); ++i)
        if (!file.lines()[i].empty()) std::apply([&](auto a, auto b) { pairs.add(a, b); }, sides(file, i));
      add(pairs);
    }
  } else {
    const TextFile from(options.files[0]), to(options.targets_file);
    if (from.lines().size() != to.lines().size())
      throw UserError(
          {.code = "data.line-counts-differ",
           .what = sentence("the two files have ", from.lines().size(), " and ", to.lines().size(), " lines"),
           .where = sentence(from.path(), ", ", to.path()),
           .fix = "give as many targets as inputs: line i of the targets translates line i of the inputs"});
    hash.add(from.text());
    hash.add(to.text());
    Pairs pairs;
    for (std::size_t i = 0; i < from.lines().size(); ++i) pairs.add(from.lines()[i], to.lines()[i]);
    add(pairs);
  }
  EncodedText text{hash.text(), {}};
  text.sides.push_back(std::move(inputs));
  text.sides.push_back(std::move(targets));
  return text;
}

}  // namespace

std::unique_ptr<Examples> open_text(const SourceOptions& options, const std::string& format,
                                    const Vocabulary& vocabulary) {
  if (options.vocab_limit > 0 && vocabulary.size() > options.vocab_limit)
    throw UserError({.code = "data.vocabulary-too-large",
                     .what = sentence("the vocabulary '", options.vocabulary, "' has ", vocabulary.size(),
                                      " ids, but the model has ", options.vocab_limit),
                     .where = "vocabulary",
                     .fix = sentence("set the model's vocab to ", vocabulary.size(), " or more")});
  const auto encode = [&] {
    if (format == "text") return encoded_stream(options, vocabulary);
    if (format == "tsv" || format == "pairs") return encoded_pairs(options, format, vocabulary);
    return encoded_single(options, format, vocabulary);
  };
  ReadableText text = options.cache.empty() ? in_memory(encode()) : from_cache(options, format, vocabulary, encode);
  if (format == "text") return stream_of(text.sides[0].ids, options.length, text.fingerprint);
  check_examples(text.sides.back().count, options, format);
  return std::make_unique<TextExamples>(std::move(text), options.join);
}

}  // namespace weft::data
