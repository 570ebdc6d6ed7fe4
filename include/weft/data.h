// Data for training: text and token files as batches of ids. A stream of batches depends on its files, its options and its
// seed alone, never on the mesh, the number of processes or the time: who goes on from a position sees the same batches.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/array.h"

namespace weft::data {

// Text to ids and back. In every vocabulary 0 is padding, 1 ends a sequence, 2 is what the vocabulary cannot say.
// A copy shares the pieces; all of it may be used from many threads at once.
class Vocabulary {
 public:
  static constexpr std::int32_t kPadding = 0, kEnd = 1, kUnknown = 2;

  static Vocabulary bytes();                        // a byte b is the id 3 + b
  static Vocabulary open(const std::string& path);  // a SentencePiece model with those three ids; else UserError
  static Vocabulary of(const std::string& name);    // "bytes" or a path

  std::int64_t size() const;
  const std::string& fingerprint() const;  // "bytes", or a hash of the model
  const std::string& model() const;        // the bytes of its .model file; none if it is "bytes"
  // Without an end. The ids of a text are those of its lines with that of the line's end between them.
  std::vector<std::int32_t> encode(std::string_view text) const;
  // Up to the first kEnd; padding is left out, ids beyond the vocabulary are unknown.
  std::string decode(std::span<const std::int32_t> ids) const;

  struct Pieces;

 private:
  std::shared_ptr<const Pieces> pieces_;
};

// A SentencePiece model of the lines of text files; of pairs, TSV files, both sides. The same files and numbers give the
// same model. Every text goes there and back: what no piece has is said in bytes.
struct VocabularyTraining {
  std::vector<std::string> files = {};
  std::string path_out = {};
  std::int64_t size = 8192;
  std::string type = "unigram";            // or "bpe"
  std::int64_t max_sentences = 1'000'000;  // of more lines, as many are taken evenly
};
void train_vocabulary(const VocabularyTraining& training);

// i32 by name: "targets" [batch length] and, of pairs, "inputs" [batch inputs_length] (if masked: [batch length]);
// if packed, with each "_segments" (1, 2, … in a row; 0 is padding; inputs and targets of a pair have one number) and
// "_positions" (0, 1, … in each).
using Batch = std::map<std::string, Array>;

struct SourceOptions {
  std::vector<std::string> files = {};
  std::string targets_file = {};  // of "pairs": line i belongs to line i of files[0]
  // text       the whole text as one stream, cut into rows          documents  parts between blank lines
  // lines      each line that is not blank                          tsv        inputs, a tab, targets
  // pairs      two files, line by line                              tokens     .u16 .u32 .npy .safetensors
  // Tokens of one dim are a stream, those of two dims are examples, a row each. "": by the files' ending.
  std::string format = {};
  std::string vocabulary = "bytes";
  std::int64_t vocab_limit = 0;  // ids are below it, else UserError; 0: below the vocabulary's size (tokens: no check)
  std::int64_t batch = 8, length = 128;
  std::int64_t inputs_length = 0;  // of pairs; 0: as length
  bool pack = true;                // examples one after another in a row, else one in each
  bool trim = true;                // an example longer than a row is cut, else left out
  bool ensure_end = false;         // the last id of an example that is cut becomes 1
  bool join = false;               // a pair is one example: inputs, 1, targets, 1; for prefix language models
  bool shuffle = true, repeat = true;
  std::uint64_t seed = 0;
  // Above 0: "inputs" are the targets with this share of their tokens masked, "targets" the masked ones alone and 0 for
  // the others. Of the masked tokens 80 % become `mask_id`, 10 % a token at random, 10 % stay. Drawn by seed, epoch,
  // example and place. Ends are not masked. UserError for pairs that are not joined.
  double mask = 0;
  std::int32_t mask_id = Vocabulary::kUnknown;
  // A folder for encoded text, made if it is not there: text is encoded into a file of it, once for all processes that see
  // the folder, and read from there as batches need it. "": each process encodes all of it and keeps the ids.
  std::string cache = {};
};

// The options' format, or, if that is "", what the files' endings say. UserError for a format that is none.
std::string format_of(const SourceOptions& options);

class Batches {
 public:
  // Reads the text, unless it is in the cache; of token files only what a batch needs, then. `ahead`: so many batches are made before they are asked
  // for, on a thread of its own. All that is said of the stream is of the next batch handed out.
  explicit Batches(const SourceOptions& options, std::int64_t ahead = 0);
  ~Batches();

  // None at the end of the first epoch if it does not repeat; the last batch is then filled up with rows of padding.
  // Throws what making the batch threw.
  std::optional<Batch> next();
  std::string position() const;  // of the next batch: a line of JSON
  // UserError if it was the position of other files or options.
  void seek(const std::string& position);
  // From the next batch on the ids of rows [begin, end) alone are read; the other rows are padding. A position is that of
  // the whole batches. UserError for rows that there are not.
  void only_rows(std::int64_t begin, std::int64_t end);

  bool packed() const;            // are there segments and positions?
  bool has_inputs() const;        // pairs?
  std::int64_t examples() const;  // of an epoch: rows of a stream, or lines, documents, pairs
  std::int64_t tokens() const;    // targets in the batches so far, padding not counted
  std::int64_t epoch() const;     // of the next batch, if it has more examples

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::data
