// Stream: puts examples in a shuffled order into rows, and makes batches on request. A row depends only on the epoch
// and its first example, so a position needs only these two.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/examples.h"
#include "data/mask.h"

namespace weft::data {

class Feature;

class Stream {
 public:
  explicit Stream(const SourceOptions& options);

  // Like the functions of Batches.
  std::optional<Batch> next();
  std::string position() const;
  void seek(const std::string& position);
  void only_rows(std::int64_t begin, std::int64_t end);

  bool packed() const { return is_packed_; }
  std::int64_t tokens() const { return cursor_.tokens; }
  std::int64_t epoch() const { return cursor_.epoch; }
  const Examples& examples() const { return *examples_; }

 private:
  // Where a batch begins.
  struct Cursor {
    std::int64_t epoch = 0, example = 0;   // the example's position in the order of its epoch
    std::int64_t batches = 0, tokens = 0;  // made so far
  };

  std::int64_t index(const Cursor& at) const;
  ExampleSize fitted(const ExampleSize& size) const;
  void check_that_one_fits() const;
  void read(const Cursor& at, Example& to) const;
  nlohmann::ordered_json identity() const;
  bool fill_row(std::int64_t row, std::vector<Feature>& features, Cursor& at) const;

  SourceOptions options_;
  std::string format_;
  Vocabulary vocabulary_;
  std::unique_ptr<Examples> examples_;
  std::optional<Masking> masking_;
  bool is_packed_ = false;
  std::int64_t rows_begin_ = 0, rows_end_;  // the rows whose ids are read
  Cursor cursor_;                           // of the next batch
};

}  // namespace weft::data
