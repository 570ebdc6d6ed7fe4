// Encoded text: the ids of a source's texts, in memory or in a file of a cache.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/ids.h"

namespace weft::data {

// As it is made: ids one after another; sequence i is [begins[i], begins[i + 1]).
struct EncodedSide {
  explicit EncodedSide(const Vocabulary& vocabulary) : ids(vocabulary.size()) {}
  MemoryIds ids;
  std::vector<std::int64_t> begins = {0};
};
struct EncodedText {
  std::string fingerprint;         // of the files' contents
  std::vector<EncodedSide> sides;  // targets, or inputs and targets
};

// As it is read: from any thread, without a change to it.
struct Sequences {
  std::shared_ptr<const Ids> ids;
  std::int64_t count = 0;
  std::function<std::pair<std::int64_t, std::int64_t>(std::int64_t index)> range;  // begin and end of a sequence

  std::int64_t size(std::int64_t index) const {
    const auto [begin, end] = range(index);
    return end - begin;
  }
  void read(std::int64_t index, std::vector<std::int32_t>& to) const {
    const auto [begin, end] = range(index);
    ids->read(begin, end - begin, to);
  }
};
struct ReadableText {
  std::string fingerprint;
  std::vector<Sequences> sides;
};

ReadableText in_memory(EncodedText text);

// The text that encode() makes of the options' files, from a file in the folder options.cache. If it has none that fits
// the files, the vocabulary and the format, one process makes it and others wait for that. A file of text that has
// another size, time or contents (64 blocks of it are looked at) makes a new one. Where the folder cannot be written the
// text stays in memory.
ReadableText from_cache(const SourceOptions& options, const std::string& format, const Vocabulary& vocabulary,
                        const std::function<EncodedText()>& encode);

}  // namespace weft::data
