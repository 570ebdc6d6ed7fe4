// The 1,797 handwritten digits of examples/data, shuffled by a fixed seed: 1,437 to train on, 360 to test.
#pragma once

#include <algorithm>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "weft/weft.h"

class Digits {
 public:
  static constexpr std::size_t kTrain = 1437, kTest = 360;

  // One row per line: 64 pixels from 0 to 16, then the digit.
  explicit Digits(const std::string& path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      std::vector<double> row;
      std::istringstream words(line);
      for (std::string word; std::getline(words, word, ',');) row.push_back(std::stod(word));
      rows_.push_back(std::move(row));
    }
    if (rows_.size() != kTrain + kTest)
      throw weft::UserError({.code = "digits.wrong-row-count",
                             .what = "digits.csv has " + std::to_string(rows_.size()) + " rows, not 1797",
                             .where = path,
                             .fix = "restore the file as examples/data/README.md describes"});
    std::shuffle(rows_.begin(), rows_.end(), std::mt19937(1));
  }

  // The images [batch, pixel], from 0 to 1, and labels [batch] of the rows from `first` on.
  weft::Array images(const weft::Dim& batch, const weft::Dim& pixel, std::size_t first) const {
    weft::Array array({batch, pixel}, weft::DType::kF32);
    for (std::int64_t i = 0; i < array.elements(); ++i)
      array.set(i, row(first, i / pixel.size)[static_cast<std::size_t>(i % pixel.size)] / 16);
    return array;
  }
  weft::Array labels(const weft::Dim& batch, std::size_t first) const {
    weft::Array array({batch}, weft::DType::kI32);
    for (std::int64_t i = 0; i < batch.size; ++i) array.set(i, row(first, i).back());
    return array;
  }

 private:
  const std::vector<double>& row(std::size_t first, std::int64_t i) const {
    return rows_[first + static_cast<std::size_t>(i)];
  }
  std::vector<std::vector<double>> rows_;
};
