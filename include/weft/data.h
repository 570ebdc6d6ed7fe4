// Data for training: text and token files as batches of ids. A stream of batches depends only on its files, its options
// and its seed, not on the mesh, the number of processes or the time. A stream that resumes from a position gives the
// same batches again.
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

// Text to ids and back. In every vocabulary 0 is padding, 1 ends a sequence, 2 is an unknown piece of text. Copies share
// the pieces. Threads: several threads may use a vocabulary at once.
class Vocabulary {
 public:
  static constexpr std::int32_t kPadding = 0, kEnd = 1, kUnknown = 2;

  static Vocabulary bytes();  // byte b has the id 3 + b
  // A SentencePiece model. UserError if it has other ids for padding, end and unknown.
  static Vocabulary open(const std::string& path);
  static Vocabulary of(const std::string& name);  // "bytes" or a path

  std::int64_t size() const;
  const std::string& fingerprint() const;  // "bytes", or a hash of the model
  const std::string& model() const;        // the contents of the .model file; empty for "bytes"
  // Adds no end of sequence. Lines are encoded one by one, with the id of the line end between them.
  std::vector<std::int32_t> encode(std::string_view text) const;
  // Decodes up to the first kEnd. Padding is left out; ids beyond the vocabulary are read as kUnknown.
  std::string decode(std::span<const std::int32_t> ids) const;

  struct Pieces;

 private:
  std::shared_ptr<const Pieces> pieces_;
};

// Trains a SentencePiece model on the lines of text files; of TSV files, on both columns. The same files and options give
// the same model. Encoding loses nothing: characters without a piece are encoded as bytes.
struct VocabularyTraining {
  std::vector<std::string> files = {};
  std::string path_out = {};
  std::int64_t size = 8192;
  std::string type = "unigram";            // or "bpe"
  std::int64_t max_sentences = 1'000'000;  // if there are more lines, uses this many, evenly spaced
};
void train_vocabulary(const VocabularyTraining& training);

// i32 arrays by name: "targets" [batch length]; for pairs also "inputs" [batch inputs_length], for masked data "inputs"
// [batch length]. If packed, each feature has "<feature>_segments" (1, 2, … in a row, the same number for the inputs and
// targets of a pair; 0 is padding) and "<feature>_positions" (0, 1, … in each segment).
using Batch = std::map<std::string, Array>;

struct SourceOptions {
  std::vector<std::string> files = {};
  std::string targets_file = {};  // for "pairs": line i belongs to line i of files[0]
  // "text": one stream, cut into rows. "documents": an example is the text between blank lines. "lines": an example is a
  // line that is not blank. "tsv": a line has inputs, a tab and targets. "pairs": two files, line by line. "tokens":
  // .u16, .u32, .npy or .safetensors; one dim is a stream, two dims have an example in each row. "": by the file name
  // extension.
  std::string format = {};
  std::string vocabulary = "bytes";
  // UserError for an id that is not below it. 0: the size of the vocabulary; for "tokens" no check.
  std::int64_t vocab_limit = 0;
  std::int64_t batch = 8, length = 128;
  std::int64_t inputs_length = 0;  // for pairs; 0: the same as length
  bool pack = true;                // several examples in a row; false: one example in a row
  bool trim = true;                // cuts an example that is longer than a row; false: leaves it out
  bool ensure_end = false;         // the last id of an example that is cut becomes 1
  bool join = false;               // a pair becomes one example: inputs, 1, targets, 1; for prefix language models
  bool shuffle = true, repeat = true;
  std::uint64_t seed = 0;
  // Above 0: "inputs" has this share of its tokens masked; "targets" has the original ids of the masked tokens and 0
  // elsewhere. Of the masked tokens 80 % become `mask_id`, 10 % a random token, 10 % stay. The draws depend on seed,
  // epoch, example and position. Ends are not masked. UserError for pairs that are not joined.
  double mask = 0;
  std::int32_t mask_id = Vocabulary::kUnknown;
  // A folder for encoded text, created if absent. Text is encoded into a file of this folder, once for all processes
  // that see it; batches are read from the file. "": each process encodes all text and keeps the ids in memory.
  std::string cache = {};
};

// The format of the options or, if that is "", of the file name extensions. UserError for an unknown format.
std::string format_of(const SourceOptions& options);

class Batches {
 public:
  // Reads and encodes the text unless the cache has it. Token files are read batch by batch. `ahead`: a thread prepares
  // this many batches in advance. position() and the counts below refer to the next batch that next() returns.
  explicit Batches(const SourceOptions& options, std::int64_t ahead = 0);
  ~Batches();

  // The next batch; none at the end of the first epoch if `repeat` is false. The last batch then ends with rows of
  // padding. Throws the error that occurred while the batch was made.
  std::optional<Batch> next();
  std::string position() const;  // of the next batch: a line of JSON
  // Continues at a position. UserError if the position is from other files or options.
  void seek(const std::string& position);
  // From the next batch on reads only the ids of rows [begin, end); the remaining rows are padding. Positions do not
  // depend on it. UserError for rows outside the batch.
  void only_rows(std::int64_t begin, std::int64_t end);

  bool packed() const;            // whether batches have segments and positions
  bool has_inputs() const;        // whether batches have inputs
  std::int64_t examples() const;  // in an epoch: rows of a stream, or lines, documents, pairs
  std::int64_t tokens() const;    // targets in the batches so far, without padding
  std::int64_t epoch() const;     // of the next batch, if it has more examples

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::data
