#include <sentencepiece_trainer.h>

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "data/text_file.h"
#include "weft/data.h"
#include "weft/detail/words.h"

namespace weft::data {

namespace {

constexpr std::int64_t kLeast = 3 + 256 + 1;  // the three ids, the bytes and one piece

class Lines : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const std::vector<std::string_view>& lines) : lines_(lines) { load(); }
  bool done() const override { return at_ == lines_.size(); }
  void Next() override {
    ++at_;
    load();
  }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  void load() {
    if (!done()) line_ = lines_[at_];
  }
  const std::vector<std::string_view>& lines_;
  std::size_t at_ = 0;
  std::string line_;
};

void check(const VocabularyTraining& training) {
  if (training.files.empty())
    throw UserError({.code = "vocabulary.no-files",
                     .what = "a vocabulary needs text to learn from",
                     .where = "vocabulary training",
                     .fix = "name one text file or more"});
  if (training.size < kLeast || training.size > 1'000'000)
    throw UserError({.code = "vocabulary.bad-size",
                     .what = sentence("a vocabulary of ", training.size, " ids cannot be made"),
                     .where = "vocabulary training",
                     .fix = "give a size from 260 to 1000000"});
  if (training.max_sentences < 1)
    throw UserError({.code = "vocabulary.bad-max-sentences",
                     .what = sentence("a vocabulary cannot be learnt from ", training.max_sentences, " lines"),
                     .where = "vocabulary training",
                     .fix = "let max_sentences be 1 or more"});
  if (training.type != "unigram" && training.type != "bpe") {
    const std::string near = nearest_word(training.type, {"unigram", "bpe"});
    throw UserError({.code = "vocabulary.unknown-type",
                     .what = sentence("unknown type of vocabulary '", training.type, "'"),
                     .where = "vocabulary training",
                     .fix = near.empty() ? "choose unigram or bpe" : sentence("did you mean '", near, "'?")});
  }
}

// The lines that are not empty; of .tsv files the columns.
std::vector<std::string_view> lines_of(const std::vector<std::unique_ptr<TextFile>>& files) {
  std::vector<std::string_view> lines;
  const auto add = [&](std::string_view line) {
    if (!is_blank(line)) lines.push_back(line);
  };
  for (const auto& file : files) {
    const bool is_tsv = std::filesystem::path(file->path()).extension() == ".tsv";
    for (std::string_view line : file->lines())
      for (std::size_t tab = 0; !line.empty(); line.remove_prefix(std::min(tab + 1, line.size()))) {
        tab = is_tsv ? std::min(line.find('\t'), line.size()) : line.size();
        add(line.substr(0, tab));
      }
  }
  return lines;
}

// At most `most` of the lines, evenly spaced.
std::vector<std::string_view> thinned(const std::vector<std::string_view>& lines, std::int64_t most) {
  const std::size_t count = std::min(lines.size(), static_cast<std::size_t>(most));
  std::vector<std::string_view> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = lines[i * lines.size() / count];
  return out;
}

// The message of the library without the place in its source: "…/trainer_interface.cc(660) [condition] Vocabulary size
// …".
std::string reason(const sentencepiece::util::Status& status) {
  const std::string text = status.message();
  const std::size_t end = text.rfind("] ");
  return end == std::string::npos || end + 2 == text.size() ? text : text.substr(end + 2);
}

}  // namespace

void train_vocabulary(const VocabularyTraining& training) {
  check(training);
  std::vector<std::unique_ptr<TextFile>> files;
  for (const std::string& path : training.files) files.push_back(std::make_unique<TextFile>(path));
  const std::vector<std::string_view> lines = thinned(lines_of(files), training.max_sentences);
  // Nothing is normalized, so that decoding restores the text. The result depends on the number of threads.
  const std::unordered_map<std::string, std::string> settings = {{"model_type", training.type},
                                                                 {"vocab_size", std::to_string(training.size)},
                                                                 {"pad_id", "0"},
                                                                 {"eos_id", "1"},
                                                                 {"unk_id", "2"},
                                                                 {"bos_id", "-1"},
                                                                 {"unk_surface", "\xef\xbf\xbd"},
                                                                 {"byte_fallback", "true"},
                                                                 {"normalization_rule_name", "identity"},
                                                                 {"remove_extra_whitespaces", "false"},
                                                                 {"max_sentence_length", "65536"},
                                                                 {"shuffle_input_sentence", "false"},
                                                                 {"num_threads", "4"},
                                                                 {"minloglevel", "3"}};
  Lines sentences(lines);
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &sentences, &model);
  if (!status.ok())
    throw UserError({.code = "vocabulary.training-failed",
                     .what = sentence("no vocabulary of ", training.size, " ids can be made of ", lines.size(),
                                      " lines: ", reason(status)),
                     .where = training.files[0],
                     .fix = "give more text, or a smaller size"});
  write_whole(training.path_out, {{model.data(), model.size()}});
}

}  // namespace weft::data
