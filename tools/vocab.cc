// weft vocab: trains vocabularies, and turns text into ids and ids into text.
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>

#include "options.h"
#include "weft/data.h"
#include "weft/detail/written_file.h"
#include "weft/tensor_file.h"

namespace weft::tools {

namespace {

using data::Vocabulary;

struct CodeOptions {
  std::string vocabulary;
  std::optional<std::string> out;
};

std::string all_input() { return {std::istreambuf_iterator<char>(std::cin), {}}; }

std::string little(std::span<const std::int32_t> ids, int bytes) {
  std::string out;
  out.reserve(ids.size() * static_cast<std::size_t>(bytes));
  for (const std::int32_t id : ids)
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(id >> (8 * i) & 255);
  return out;
}

// Writes a token file of the kind that the path's extension names. If it cannot be written, an existing file stays.
void write_tokens(const std::string& path, const std::vector<std::int32_t>& ids, std::int64_t vocabulary_size) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (ending != ".u16" && ending != ".u32" && ending != ".npy")
    throw UserError({.code = "vocab.bad-file-name",
                     .what = "'" + path + "' is no name for a token file",
                     .where = "--out",
                     .fix = "let it end with .u16, .u32 or .npy"});
  if (ending == ".u16" && vocabulary_size > 65536)
    throw UserError({.code = "vocab.ids-too-large",
                     .what = "ids up to " + std::to_string(vocabulary_size - 1) + " do not fit into 16 bits",
                     .where = "--out " + path,
                     .fix = "let its name end with .u32"});
  if (ids.empty())
    throw UserError({.code = "vocab.no-text",
                     .what = "there is no text to encode",
                     .where = "standard input",
                     .fix = "send text to it"});
  if (ending == ".npy") return write_npy(path, Array({{"tokens", static_cast<std::int64_t>(ids.size())}}, ids));
  detail::WrittenFile file(path);
  file.stream() << little(ids, ending == ".u16" ? 2 : 4);
  if (!file.finish())
    throw RunError({.code = "vocab.cannot-write",
                    .what = "cannot write the file '" + path + "'",
                    .where = "--out " + path,
                    .fix = "see that its folder exists, that you may write there and that the disk has room"});
}

void encode(const CodeOptions& o) {
  const Vocabulary vocabulary = Vocabulary::of(o.vocabulary);
  const std::string text = all_input();
  if (o.out) {
    std::vector<std::int32_t> ids = vocabulary.encode(text);
    if (!ids.empty()) ids.push_back(Vocabulary::kEnd);
    return write_tokens(*o.out, ids, vocabulary.size());
  }
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const char* space = "";
    for (const std::int32_t id : vocabulary.encode(rest.substr(0, end))) {
      std::cout << space << id;
      space = " ";
    }
    std::cout << "\n";
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

std::vector<std::int32_t> ids_of(const std::string& line, int number) {
  std::vector<std::int32_t> ids;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    std::int32_t id = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size() || id < 0)
      throw UserError({.code = "vocab.not-an-id",
                       .what = "'" + word + "' is no id",
                       .where = "standard input, line " + std::to_string(number),
                       .fix = "give whole numbers with spaces between them, as weft vocab encode prints them"});
    ids.push_back(id);
  }
  return ids;
}

void decode(const CodeOptions& o) {
  const Vocabulary vocabulary = Vocabulary::of(o.vocabulary);
  int number = 0;
  for (std::string line; std::getline(std::cin, line);) std::cout << vocabulary.decode(ids_of(line, ++number)) << "\n";
}

void add_vocab_train(CLI::App& vocab, Action& action) {
  CLI::App* sub = vocab.add_subcommand("train", "Learn a SentencePiece vocabulary from the lines of text files");
  const auto o = std::make_shared<data::VocabularyTraining>();
  sub->add_option("FILES", o->files, "Text files, or .tsv files (all columns are used)")->required();
  sub->add_option("--out", o->path_out, "The .model to write")->required();
  sub->add_option("--size", o->size, "How many ids")->capture_default_str();
  sub->add_option("--type", o->type, "unigram or bpe")->capture_default_str();
  sub->add_option("--max-sentences", o->max_sentences, "Use at most this many lines, evenly spaced")
      ->capture_default_str();
  sub->callback([o, &action] {
    action = [o] {
      data::train_vocabulary(*o);
      std::cout << o->path_out << ": " << Vocabulary::open(o->path_out).size() << " ids\n";
    };
  });
}

}  // namespace

void add_vocab(CLI::App& app, Action& action) {
  CLI::App* vocab = app.add_subcommand("vocab", "Vocabularies: train one, turn text into ids and back");
  vocab->require_subcommand(1);
  add_vocab_train(*vocab, action);
  const auto add_coder = [&](const char* name, const char* help, void (*run)(const CodeOptions&), bool writes_file) {
    CLI::App* sub = vocab->add_subcommand(name, help);
    const auto o = std::make_shared<CodeOptions>();
    sub->add_option("--vocab", o->vocabulary, "A SentencePiece .model, or 'bytes'")->required();
    if (writes_file)
      sub->add_option("--out", o->out, "Write all ids, and an end, to this token file: .u16, .u32 or .npy");
    sub->callback([o, run, &action] { action = [o, run] { run(*o); }; });
  };
  add_coder("encode", "Text from standard input as ids, a line for each line", encode, true);
  add_coder("decode", "Lines of ids from standard input as text", decode, false);
}

}  // namespace weft::tools
