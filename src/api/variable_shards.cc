// The shards of variables as the user's program sees them, and how processes agree on what went wrong.
#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "runtime/shards.h"
#include "api/state.h"
#include "weft/error.h"

namespace weft {

std::int64_t VariableShard::elements() const {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

std::vector<VariableShard> Session::shards() const {
  std::vector<VariableShard> all;
  for (const auto& [name, held] : state_->variables) {
    const Value& value = held.value;
    const Shape whole = global_shape(value.shape, value.sharding, state_->mesh());
    std::vector<std::int64_t> sizes;
    for (const Dim& dim : value.shape) sizes.push_back(dim.size);
    for (const int p : state_->processors->local())
      all.push_back({.variable = name,
                     .slot_of = held.slot_of,
                     .whole = whole,
                     .dtype = value.dtype,
                     .begin = shard_begin(value.shape, value.sharding, state_->mesh(), p),
                     .sizes = sizes,
                     .processor = p,
                     .is_primary = is_primary_shard(value, state_->mesh(), p)});
  }
  return all;
}

namespace {

// The memory of a shard that has so many bytes.
void* memory_of(SessionState& session, const VariableShard& shard, std::size_t bytes) {
  session.processors->make_ready();
  const SessionVariable& variable = session.variable(shard.variable);
  const std::vector<int>& local = session.processors->local();
  internal_check(std::find(local.begin(), local.end(), shard.processor) != local.end(),
                 "the shard of a processor of another process");
  internal_check(static_cast<std::int64_t>(bytes) == bytes_of(variable.value),
                 "a shard's bytes are not as many as it has");
  return variable.on(shard.processor);
}

// An error as numbers and back.
enum class Kind : std::int64_t { kNone, kUser, kRun, kInternal };

struct Told {
  Kind kind = Kind::kNone;
  ErrorText text;
};

Told told(const std::exception_ptr& error) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const UserError& e) {
    return {Kind::kUser, e.text()};
  } catch (const RunError& e) {
    return {Kind::kRun, e.text()};
  } catch (const InternalError& e) {
    return {Kind::kInternal, e.text()};
  } catch (const std::exception& e) {
    return {Kind::kInternal, {.what = e.what(), .where = "", .fix = ""}};
  }
}

[[noreturn]] void throw_told(const Told& error) {
  if (error.kind == Kind::kUser) throw UserError(error.text);
  if (error.kind == Kind::kRun) throw RunError(error.text);
  throw InternalError(error.text.what);
}

}  // namespace

void Session::read_shard(const VariableShard& shard, std::span<std::byte> out) const {
  const void* from = memory_of(*state_, shard, out.size());
  state_->processors->device(shard.processor).read(from, out);
}

void Session::write_shard(const VariableShard& shard, std::span<const std::byte> in) {
  void* to = memory_of(*state_, shard, in.size());
  state_->processors->device(shard.processor).write(in, to);
}

void Session::agree(const std::exception_ptr& error, const std::string& what) const {
  if (state_->processors->all_are_local()) {
    if (error) std::rethrow_exception(error);
    return;
  }
  state_->processors->make_ready();
  // First who failed and how long the report is, then, if anyone did, the reports.
  constexpr std::size_t kNumbers = 4;
  const Told mine = told(error);
  const std::string all_text = mine.text.what + mine.text.where.text + mine.text.fix;
  const std::vector<std::int64_t> none(kNumbers, 0),
      own{static_cast<std::int64_t>(mine.kind), static_cast<std::int64_t>(mine.text.what.size()),
          static_cast<std::int64_t>(mine.text.where.text.size()), static_cast<std::int64_t>(mine.text.fix.size())};
  const auto first = [&](const std::vector<std::int64_t>& numbers, const std::vector<std::int64_t>& others) {
    return [&](int p) { return p == state_->processors->first() ? numbers.data() : others.data(); };
  };
  const std::vector<std::int64_t> heads = state_->processors->gather_numbers(kNumbers, what, first(own, none));
  std::size_t failed = heads.size(), longest = 0;
  for (std::size_t i = heads.size(); i > 0; i -= kNumbers) {
    const std::size_t at = i - kNumbers;
    if (heads[at] != 0) failed = at;
    longest = std::max(longest, static_cast<std::size_t>(heads[at + 1] + heads[at + 2] + heads[at + 3]));
  }
  if (failed == heads.size()) return;
  const std::size_t words = longest / sizeof(std::int64_t) + 1;
  std::vector<std::int64_t> packed(words, 0);
  const std::vector<std::int64_t> empty(words, 0);
  std::memcpy(packed.data(), all_text.data(), all_text.size());
  const std::vector<std::int64_t> texts =
      state_->processors->gather_numbers(static_cast<std::int64_t>(words), what, first(packed, empty));
  const char* text = reinterpret_cast<const char*>(texts.data() + failed / kNumbers * words);
  const auto size = [&](std::size_t i) { return static_cast<std::size_t>(heads[failed + i]); };
  Told lowest{static_cast<Kind>(heads[failed]), {}};
  lowest.text.what = std::string(text, size(1));
  lowest.text.where = std::string(text + size(1), size(2));
  lowest.text.fix = std::string(text + size(1) + size(2), size(3));
  throw_told(lowest);
}

}  // namespace weft
