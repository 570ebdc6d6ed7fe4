// Ids: a long sequence of token ids, in memory or in a file, and the stream of rows made from it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/examples.h"

namespace weft::data {

class Ids {
 public:
  virtual ~Ids() = default;
  virtual std::int64_t size() const = 0;
  // Appends the ids [begin, begin + count) to `to`.
  virtual void read(std::int64_t begin, std::int64_t count, std::vector<std::int32_t>& to) const = 0;
};

// In memory; two bytes each if the vocabulary is small enough.
class MemoryIds : public Ids {
 public:
  explicit MemoryIds(std::int64_t vocabulary_size) : is_narrow_(vocabulary_size <= 65536) {}

  void append(std::span<const std::int32_t> ids);
  std::span<const std::byte> bytes() const;  // two or four of each id
  std::int64_t size() const override { return static_cast<std::int64_t>(is_narrow_ ? narrow_.size() : wide_.size()); }
  void read(std::int64_t begin, std::int64_t count, std::vector<std::int32_t>& to) const override;

 private:
  bool is_narrow_;
  std::vector<std::uint16_t> narrow_;
  std::vector<std::int32_t> wide_;
};

// Rows of `length`, each beginning where the one before ends; the last one may be shorter.
std::unique_ptr<Examples> stream_of(std::shared_ptr<const Ids> ids, std::int64_t length, std::string fingerprint);

}  // namespace weft::data
