// How a dim is assembled from pieces of split sources.
//
// Every processor of a group along `axes` (a rank) holds one block of each source. The compiler determines what rank p
// sends to rank q. Sends over the same distance q - p (modulo the group size) are one permute. Then either
//   - every rank does the same (shift, halo, everything unsplit): slices, permutes and one concat, or
//   - ranks differ: each takes its share at an offset from a table, and one gather puts the received elements in place.
// A permute moves as many elements as its longest share: a processor receives nothing else beyond what it needs.
#include "ops/exchange.h"

#include <algorithm>

#include "weft/error.h"

namespace weft {

namespace {

// One send of one rank: `size` elements from `from` in its block to `to` in the block of the receiver.
struct Share {
  std::int64_t from = 0, size = 0, to = 0;
  bool operator==(const Share&) const = default;
};

// Shares of one source over one distance: rank r sends shares[r] to rank r + distance (mod n). Size 0 sends nothing.
struct Transfer {
  ValueId source;
  std::size_t distance = 0;
  std::vector<Share> shares;

  // The first share that is not empty.
  const Share& first() const {
    return *std::find_if(shares.begin(), shares.end(), [](const Share& s) { return s.size > 0; });
  }
  std::int64_t length() const {
    std::int64_t longest = 0;
    for (const Share& share : shares) longest = std::max(longest, share.size);
    return longest;
  }
  bool all_alike() const {
    return std::all_of(shares.begin(), shares.end(), [&](const Share& s) { return s.size == 0 || s == first(); });
  }
  bool all_send() const {
    return std::all_of(shares.begin(), shares.end(), [](const Share& s) { return s.size > 0; });
  }
};

// Adds a share to a transfer in which its sender has no share yet; prefers a transfer of the same form.
void add_share(std::vector<Transfer>& transfers, ValueId source, std::size_t sender, std::size_t distance,
               std::size_t ranks, const Share& share) {
  Transfer* chosen = nullptr;
  for (Transfer& t : transfers) {
    if (t.source != source || t.distance != distance || t.shares[sender].size > 0) continue;
    if (!chosen || (t.first() == share && !(chosen->first() == share))) chosen = &t;
  }
  if (!chosen) chosen = &transfers.emplace_back(Transfer{source, distance, std::vector<Share>(ranks)});
  chosen->shares[sender] = share;
}

// All shares of a piece. `have` and `want` are the block sizes of source and result.
void add_piece(std::vector<Transfer>& transfers, const Piece& piece, std::int64_t have, std::int64_t want,
               std::size_t ranks) {
  const std::int64_t moved = piece.to - piece.begin;
  for (std::size_t p = 0; p < ranks; ++p) {
    const std::int64_t block = static_cast<std::int64_t>(p) * have;
    std::int64_t at = std::max(piece.begin, block);
    const std::int64_t end = std::min(piece.begin + piece.size, block + have);
    while (at < end) {
      const std::int64_t q = (at + moved) / want;
      const std::int64_t size = std::min(end, (q + 1) * want - moved) - at;
      const std::size_t distance = (static_cast<std::size_t>(q) + ranks - p) % ranks;
      add_share(transfers, piece.source, p, distance, ranks, {at - block, size, at + moved - q * want});
      at += size;
    }
  }
}

class Assembly {
 public:
  Assembly(Builder& builder, const std::string& dim, std::int64_t size, const Axes& axes,
           const std::vector<Piece>& pieces)
      : builder_(builder), dim_(dim), axes_(axes), ranks_(static_cast<std::size_t>(builder.mesh().size(axes))) {
    internal_check(!pieces.empty(), "nothing to assemble");
    block_ = size / static_cast<std::int64_t>(ranks_);
    internal_check(block_ * static_cast<std::int64_t>(ranks_) == size, "an assembled dim that does not divide");
    type_ = builder.type(pieces[0].source);
    for (const Piece& piece : pieces) {
      const Value& source = builder.value(piece.source);
      const std::size_t position = source.shape.position(dim);
      const std::int64_t have = source.shape[position].size;
      internal_check(source.sharding.dims[position] == axes && !source.sharding.is_partial(),
                     "a piece that lies otherwise than the result");
      internal_check(piece.begin >= 0 && piece.begin + piece.size <= have * static_cast<std::int64_t>(ranks_) &&
                         piece.to >= 0 && piece.to + piece.size <= size,
                     "a piece outside its source or the result");
      add_piece(transfers_, piece, have, block_, ranks_);
    }
    std::stable_sort(transfers_.begin(), transfers_.end(),
                     [](const Transfer& a, const Transfer& b) { return a.first().to < b.first().to; });
  }

  ValueId build() { return is_uniform() ? joined_in_order() : gathered(); }

 private:
  // Every rank does the same: each transfer fills one fixed interval, with zeros (from the permute) if no rank sends.
  bool is_uniform() const {
    std::int64_t filled = 0;
    for (const Transfer& t : transfers_) {
      if (!t.all_alike() || (t.distance == 0 && !t.all_send()) || t.first().to < filled) return false;
      filled = t.first().to + t.first().size;
    }
    return true;
  }

  ValueId joined_in_order() {
    std::vector<ValueId> parts;
    std::int64_t filled = 0;
    const auto fill_to = [&](std::int64_t at) {
      if (at > filled) parts.push_back(builder_.fill(0, sized(at - filled)));
      filled = at;
    };
    for (const Transfer& t : transfers_) {
      fill_to(t.first().to);
      parts.push_back(sent(t, builder_.slice(t.source, dim_, t.first().from, t.first().size)));
      filled += t.first().size;
    }
    fill_to(block_);
    return parts.size() == 1 ? parts[0] : builder_.concat(dim_, parts);
  }

  // The parts concatenated and read through an index: zeros where the index points outside.
  ValueId gathered() {
    std::vector<ValueId> parts;
    std::vector<Window> windows;
    std::int64_t length = 0;
    for (const Transfer& t : transfers_) {
      const std::vector<std::int64_t> offsets = offsets_of(t);
      parts.push_back(sent(t, taken(t, offsets)));
      windows.push_back(window(t, offsets, length));
      length += t.length();
    }
    ValueId x = parts.size() == 1 ? parts[0] : builder_.concat(dim_, parts);
    // Each processor reads only its parts, so for the gather the dim is unsplit.
    Sharding own = builder_.value(x).sharding;
    own.dims[builder_.value(x).shape.position(dim_)].clear();
    x = builder_.relabel(builder_.rename(x, dim_, "#from"), own);
    return builder_.emit_one(Gather{"#from"}, {x, index(windows)}, sized(block_));
  }

  // The position of a part in the result, per receiving rank, and the shift from there into the concatenated parts.
  struct Window {
    std::vector<std::int64_t> begin, end, shift;
  };

  // The offset from which each rank takes length() elements: its share is within that range, not always at the start.
  std::vector<std::int64_t> offsets_of(const Transfer& t) const {
    const std::int64_t last = builder_.value(t.source).shape.size_of(dim_) - t.length();
    std::vector<std::int64_t> offsets;
    for (const Share& share : t.shares) offsets.push_back(std::min(last, share.size > 0 ? share.from : t.first().from));
    return offsets;
  }

  Window window(const Transfer& t, const std::vector<std::int64_t>& offsets, std::int64_t base) const {
    Window w;
    for (std::size_t q = 0; q < ranks_; ++q) {
      const std::size_t p = (q + ranks_ - t.distance) % ranks_;
      const Share& share = t.shares[p];
      w.begin.push_back(share.to);
      w.end.push_back(share.to + share.size);
      w.shift.push_back(base + share.from - offsets[p] - share.to);
    }
    return w;
  }

  ValueId taken(const Transfer& t, const std::vector<std::int64_t>& offsets) {
    const bool same = std::count(offsets.begin(), offsets.end(), offsets[0]) == static_cast<std::ptrdiff_t>(ranks_);
    if (same) return builder_.slice(t.source, dim_, offsets[0], t.length());
    return builder_.emit_one(DynamicSlice{dim_}, {t.source, looked_up(offsets)}, sized(t.length()));
  }

  ValueId sent(const Transfer& t, ValueId part) {
    if (t.distance == 0) return part;
    std::vector<std::int64_t> to(ranks_, -1);
    for (std::size_t p = 0; p < ranks_; ++p)
      if (t.shares[p].size > 0) to[p] = static_cast<std::int64_t>((p + t.distance) % ranks_);
    return builder_.permute(part, axes_, std::move(to));
  }

  // index = the shift of the window that contains this position + the position, counted within this processor's block;
  // -1 if no window contains it. The nodes are made in the order of the program text.
  ValueId index(const std::vector<Window>& windows) {
    nodes_.clear();
    inputs_.clear();
    choose(windows, 0);
    const Sharding sharding{.dims = {axes_}, .partial = {}};
    return builder_.map(std::move(nodes_), inputs_, {DType::kI64, Shape{{dim_, block_}}, sharding});
  }

  int choose(const std::vector<Window>& windows, std::size_t at) {
    if (at == windows.size()) return literal(-1);
    const Window& w = windows[at];
    const int begin = number(w.begin);
    const int after = function("less_equal", {begin, place()}, DType::kBool);
    const int end = number(w.end);
    const int before = function("less", {place(), end}, DType::kBool);
    const int inside = function("logical_and", {after, before}, DType::kBool);
    const int shift = number(w.shift);
    const int found = function("add", {place(), shift}, DType::kI64);
    const int other = choose(windows, at + 1);
    return function("select", {inside, found, other}, DType::kI64);
  }

  // The index along the dim within this processor's block.
  int place() {
    if (place_ >= 0) return place_;
    const int global = leaf({.op = "index", .dtype = DType::kI64, .dim = dim_});
    const int block = function("multiply", {operand(rank()), literal(block_)}, DType::kI64);
    return place_ = function("subtract", {global, block}, DType::kI64);
  }

  // A number that may differ from rank to rank.
  int number(const std::vector<std::int64_t>& per_rank) {
    const bool same = std::count(per_rank.begin(), per_rank.end(), per_rank[0]) == static_cast<std::ptrdiff_t>(ranks_);
    return same ? literal(per_rank[0]) : operand(looked_up(per_rank));
  }

  ValueId looked_up(const std::vector<std::int64_t>& per_rank) {
    const Shape shape{{"#table", static_cast<std::int64_t>(ranks_)}};
    const ValueId table = builder_.emit_one(Constant{std::vector<Number>(per_rank.begin(), per_rank.end())}, {},
                                            {DType::kI64, shape, unsplit(shape)});
    return builder_.emit_one(Gather{"#table"}, {table, rank()}, {.dtype = DType::kI64, .shape = {}, .sharding = {}});
  }

  ValueId rank() {
    if (!rank_) rank_ = builder_.axis_index(axes_);
    return rank_;
  }

  int operand(ValueId id) {
    const auto found = std::find(inputs_.begin(), inputs_.end(), id);
    const int input = static_cast<int>(found - inputs_.begin());
    if (found == inputs_.end()) inputs_.push_back(id);
    return leaf({.op = "input", .dtype = DType::kI64, .input = input});
  }

  int literal(std::int64_t value) { return leaf({.op = "literal", .dtype = DType::kI64, .literal = value}); }

  int leaf(MapNode node) {
    const auto found = std::find(nodes_.begin(), nodes_.end(), node);
    if (found != nodes_.end()) return static_cast<int>(found - nodes_.begin());
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size()) - 1;
  }

  int function(const char* op, std::vector<int> args, DType dtype) {
    nodes_.push_back({.op = op, .args = std::move(args), .dtype = dtype});
    return static_cast<int>(nodes_.size()) - 1;
  }

  // A value like the sources with another local size of the dim.
  ValueType sized(std::int64_t size) const { return {type_.dtype, type_.shape.resized(dim_, size), type_.sharding}; }

  Builder& builder_;
  const std::string& dim_;
  const Axes& axes_;
  std::size_t ranks_;
  std::int64_t block_ = 0;           // local size of the result
  ValueType type_;                   // of a source
  std::vector<Transfer> transfers_;  // by their first place in the result
  ValueId rank_;
  std::vector<MapNode> nodes_;
  std::vector<ValueId> inputs_;
  int place_ = -1;
};

}  // namespace

ValueId assemble(Builder& builder, const std::string& dim, std::int64_t size, const Axes& axes,
                 const std::vector<Piece>& pieces) {
  return Assembly(builder, dim, size, axes, pieces).build();
}

}  // namespace weft
