#include "data/ids.h"

#include <algorithm>

namespace weft::data {

namespace {

class StreamRows : public Examples {
 public:
  StreamRows(std::shared_ptr<const Ids> ids, std::int64_t length, std::string fingerprint)
      : ids_(std::move(ids)), length_(length), fingerprint_(std::move(fingerprint)) {}

  std::int64_t count() const override { return (ids_->size() + length_ - 1) / length_; }
  void read(std::int64_t index, Example& to) const override {
    to.targets.clear();
    ids_->read(index * length_, size(index).targets, to.targets);
  }
  ExampleSize size(std::int64_t index) const override {
    return {.targets = std::min(length_, ids_->size() - index * length_)};
  }
  bool is_stream() const override { return true; }
  std::string fingerprint() const override { return fingerprint_; }

 private:
  std::shared_ptr<const Ids> ids_;
  std::int64_t length_;
  std::string fingerprint_;
};

}  // namespace

void MemoryIds::append(std::span<const std::int32_t> ids) {
  if (is_narrow_) narrow_.insert(narrow_.end(), ids.begin(), ids.end());
  else wide_.insert(wide_.end(), ids.begin(), ids.end());
}

std::span<const std::byte> MemoryIds::bytes() const {
  return is_narrow_ ? std::as_bytes(std::span(narrow_)) : std::as_bytes(std::span(wide_));
}

void MemoryIds::read(std::int64_t begin, std::int64_t count, std::vector<std::int32_t>& to) const {
  const auto append_from = [&](const auto& ids) {
    to.insert(to.end(), ids.begin() + begin, ids.begin() + begin + count);
  };
  if (is_narrow_) append_from(narrow_);
  else append_from(wide_);
}

std::unique_ptr<Examples> stream_of(std::shared_ptr<const Ids> ids, std::int64_t length, std::string fingerprint) {
  return std::make_unique<StreamRows>(std::move(ids), length, std::move(fingerprint));
}

}  // namespace weft::data
