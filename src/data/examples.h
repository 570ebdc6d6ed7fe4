// Examples: the contents of a source's files, as numbered sequences of ids; batches are made of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weft/data.h"

namespace weft::data {

struct Example {
  std::vector<std::int32_t> inputs, targets;  // each ends with the end of sequence, except rows of a stream
};

struct ExampleSize {
  std::int64_t inputs = 0, targets = 0;
};
inline ExampleSize size_of(const Example& one) {
  return {static_cast<std::int64_t>(one.inputs.size()), static_cast<std::int64_t>(one.targets.size())};
}

class Examples {
 public:
  virtual ~Examples() = default;
  virtual std::int64_t count() const = 0;
  virtual void read(std::int64_t index, Example& to) const = 0;
  virtual ExampleSize size(std::int64_t index) const = 0;  // the sizes that read() gives, without reading if possible
  virtual bool is_stream() const { return false; }         // rows are full: nothing is packed
  virtual bool has_inputs() const { return false; }
  virtual std::string fingerprint() const = 0;  // of the files' contents
};

std::unique_ptr<Examples> open_text(const SourceOptions& options, const std::string& format,
                                    const Vocabulary& vocabulary);
std::unique_ptr<Examples> open_tokens(const SourceOptions& options);

}  // namespace weft::data
