#include "train/token_rules.h"

#include <algorithm>
#include <functional>

namespace weft::decode {

namespace {

constexpr std::int32_t kNoId = -1;

// Calls visit(line, ids so far) for each beam that chooses a token; lines are [batch, beams].
void each_beam(std::span<const RowSoFar> rows, std::size_t beams,
               const std::function<void(std::size_t line, const std::vector<std::int32_t>& ids)>& visit) {
  std::vector<std::int32_t> ids;
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t b = 0; rows[r].search && b < beams; ++b) {
      ids = *rows[r].prompt;
      rows[r].search->append_ids(b, ids);
      visit(r * beams + b, ids);
    }
}

// A tensor of lists, filled up with kNoId.
class Lists {
 public:
  explicit Lists(const Tensor& to)
      : to_(to), values_(to ? static_cast<std::size_t>(to.shape().elements()) : 0, kNoId) {}

  void set(std::size_t line, const std::vector<std::int32_t>& ids) {
    const auto most = static_cast<std::size_t>(to_.shape().dims().back().size);
    std::copy_n(ids.begin(), std::min(ids.size(), most), values_.begin() + static_cast<std::ptrdiff_t>(line * most));
  }
  void feed(Feeds& feeds) const {
    if (to_) feeds.emplace_back(to_, Array(to_.shape(), values_));
  }

 private:
  Tensor to_;
  std::vector<std::int32_t> values_;
};

}  // namespace

std::vector<std::int32_t> repeating(std::span<const std::int32_t> ids, std::size_t size) {
  std::vector<std::int32_t> found;
  if (size == 0 || ids.size() < size) return found;
  const auto last = ids.last(size - 1);
  for (std::size_t i = 0; i + size <= ids.size(); ++i)
    if (std::ranges::equal(ids.subspan(i, size - 1), last)) found.push_back(ids[i + size - 1]);
  return found;
}

void add_rule_feeds(const CandidateTensors& offered, const Options& options, std::span<const RowSoFar> rows,
                    Feeds& feeds) {
  const auto beams = static_cast<std::size_t>(options.beams);
  if (offered.seen || offered.banned) {
    Lists seen(offered.seen), banned(offered.banned);
    each_beam(rows, beams, [&](std::size_t line, const std::vector<std::int32_t>& ids) {
      if (offered.seen) seen.set(line, ids);
      if (offered.banned) banned.set(line, repeating(ids, static_cast<std::size_t>(options.no_repeat_ngram)));
    });
    seen.feed(feeds);
    banned.feed(feeds);
  }
  if (!offered.goes_on) return;
  std::vector<std::int32_t> goes_on(rows.size() * beams, 0);
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (rows[r].search && rows[r].search->length() < options.min_tokens)
      std::fill_n(goes_on.begin() + static_cast<std::ptrdiff_t>(r * beams), beams, 1);
  feeds.emplace_back(offered.goes_on, Array(offered.goes_on.shape(), goes_on));
}

}  // namespace weft::decode
