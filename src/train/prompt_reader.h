// PromptReader: reads prompts and inputs of rows into free slots of a decoder's batch. Rows of about the same length are
// read in one pass. A pass is an executable for a number of rows and a length, which is compiled when it is first needed.
#pragma once

#include <array>
#include <map>
#include <span>
#include <vector>

#include "train/decode_checks.h"
#include "train/decode_weights.h"
#include "weft/session.h"

namespace weft::decode {

// A row to be read. The lengths are at most the decoder's.
struct ReadRow {
  std::int64_t slot;
  std::span<const std::int32_t> prompt, inputs;
};

// The rows and lengths of a pass, padded.
struct PassSizes {
  std::int64_t rows = 0, prompt = 0, inputs = 0;

  auto operator<=>(const PassSizes&) const = default;
  std::int64_t tokens() const { return rows * (prompt + inputs); }
};

// What a pass must divide, and its limits.
struct PassLimits {
  std::int64_t rows = 1, prompt = 0, inputs = 0;                 // the most
  std::int64_t rows_unit = 1, prompt_unit = 1, inputs_unit = 1;  // the parts that a layout makes
  std::int64_t tokens = 2048;                                    // of a pass of several rows
};

PassLimits limits_of(const models::DecodeSizes& sizes, const Layout& layout, const Mesh& mesh);
// The passes that need the most memory: of the longest rows, and of the most rows.
std::vector<PassSizes> largest_passes(const PassLimits& limits);
// The graph of a pass has these sizes.
models::DecodeSizes sizes_of_pass(models::DecodeSizes sizes, const PassSizes& pass);

// How many consecutive rows go into each pass, so that as little as possible is read: padding, and a price for each pass.
// `lengths`: of the prompts and the inputs.
std::vector<std::size_t> rows_of_passes(const std::vector<std::array<std::int64_t, 2>>& lengths,
                                        const PassLimits& limits);
// The smallest sizes of executables that so many rows of such lengths fit in.
PassSizes padded_sizes(const PassSizes& least, const PassLimits& limits);

class PromptReader {
 public:
  PromptReader(const Session& session, const models::TransformerOptions& model, const Layout& layout,
               const models::DecodeSizes& sizes, Site site);

  // The copies of kernels that reading takes.
  GraphCopies copies() const;
  // Whether rows have anything to be read.
  bool reads() const { return limits_.prompt > 0 || limits_.inputs > 0; }
  // The most of a prompt that is read, after the prefix.
  std::int64_t prompt_length() const { return limits_.prompt; }
  // Reads the tokens that all prompts begin with from now on. Rows are given without them.
  void set_prefix(std::span<const std::int32_t> ids);
  // Reads the rows in one pass or several.
  void read(std::vector<ReadRow> rows);

 private:
  struct Pass {
    models::PrefillGraph graph;
    Executable run;
  };
  Pass& pass_of(const PassSizes& sizes);
  void read_pass(std::span<const ReadRow> rows);

  Session session_;
  models::TransformerOptions model_;
  Layout layout_;
  models::DecodeSizes sizes_;
  std::int64_t prompt_length_;  // without a prefix
  PassLimits limits_;
  Site site_;
  std::map<PassSizes, Pass> passes_;
};

}  // namespace weft::decode
