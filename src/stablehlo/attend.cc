// attend and attend_back: a loop over blocks of queries, which are some indices of one dim. A block has all scores of its
// queries, computes what follows from them and forgets them, so that no more scores than a block's ever exist.
#include <algorithm>
#include <limits>
#include <optional>

#include "base/index.h"
#include "base/str.h"
#include "program/attend.h"
#include "stablehlo/block.h"

namespace weft::stablehlo {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// The instruction's operands and dims.
class Attention {
 public:
  Attention(Block& block, const Instr& instr)
      : block_(block),
        w_(block.w),
        instr_(instr),
        rules_(*attend_rules(instr)),
        roles_(attend_operands(instr)),
        q_shape_(block.value(instr.inputs[0]).shape),
        memory_(block.value(instr.inputs[1]).shape.dim(rules_.memory)),
        value_(block.value(instr.inputs[2]).shape.dim(rules_.value)),
        element_(element_of(block.value(instr.inputs[0]).dtype)),
        wide_(wide_of(element_)) {
    rows_ = q_shape_.minus({q_shape_.dim(rules_.key)});
    choose_blocks();
    for (const ValueId id : instr.inputs) operands_.push_back(block.term(id));
    // Backward: XLA would merge the scores with those of the forward pass and keep them.
    if (roles_.dy >= 0) operands_ = w_.barrier(operands_);
    gather_sources();
    mask_ended();
    // v's own dim gets a name that q lacks.
    operands_[2] = w_.rename(operands_[2], rules_.value, kValue);
    for (const int i : {roles_.y, roles_.dy})
      if (i >= 0) operands_[at(i)] = w_.rename(operands_[at(i)], rules_.value, kValue);
    if (rules_.causal) length_begin_ = block.shard_begin(instr.inputs[0], rules_.length);
  }

  static inline const std::string kValue = "#value";

 protected:
  // The dims of a block's rows.
  Shape rows_of(std::int64_t size) const { return along_.empty() ? rows_ : rows_.resized(along_, size); }
  Shape scores_of(std::int64_t size) const { return rows_of(size).plus({memory_}); }

  // All operands, with those that have the dim of blocks cut to the block.
  Terms cut(const Terms& all, const Term& begin, std::int64_t size) const {
    Terms parts;
    for (const Term& x : all) parts.push_back(has_blocks(x) ? w_.dynamic_slice(x, along_, begin, size) : x);
    return parts;
  }
  bool has_blocks(const Term& x) const { return !along_.empty() && x.shape.has(along_); }

  // Calls work(operands of the block, carried, begin, size) for every block: a loop over full blocks, then the rest.
  template <class Work>
  Terms each_block(const Terms& first, const Work& work) {
    const Element index = index_element(queries_);
    if (block_size_ == queries_) return work(operands_, first, w_.number(0, index), queries_);
    const std::int64_t full = queries_ / block_size_, rest = queries_ % block_size_;
    Terms carried = {w_.number(0, index)}, outside = operands_;
    carried.insert(carried.end(), first.begin(), first.end());
    if (length_begin_) outside.push_back(*length_begin_);
    const std::optional<Term> outer_begin = length_begin_;
    Terms last = w_.loop(
        carried, outside, [&](const Terms& now) { return w_.compare("LT", now[0], w_.number(full, index)); },
        [&](const Terms& now, const Terms& around) {
          if (length_begin_) length_begin_ = around.back();
          const Term begin = w_.apply("multiply", {now[0], w_.number(block_size_, index)});
          const Terms parts =
              cut({around.begin(), around.begin() + static_cast<std::ptrdiff_t>(operands_.size())}, begin, block_size_);
          Terms next = {w_.apply("add", {now[0], w_.number(1, index)})};
          const Terms made = work(parts, Terms(now.begin() + 1, now.end()), begin, block_size_);
          next.insert(next.end(), made.begin(), made.end());
          return next;
        });
    length_begin_ = outer_begin;
    last.erase(last.begin());
    if (rest == 0) return last;
    const Term begin = w_.number(full * block_size_, index);
    return work(cut(operands_, begin, rest), last, begin, rest);
  }

  // x written into `whole` at the block, or x itself if there is one block.
  Term put(const Term& whole, const Term& x, const Term& begin) const {
    if (!has_blocks(whole) || x.shape == whole.shape) return x;
    return w_.dynamic_update(whole, x, along_, begin);
  }

  // Scores of a block, -infinity where a query sees nothing.
  Term scores(const Terms& parts, const Term& begin, std::int64_t size) const {
    const Shape shape = scores_of(size);
    Term s = w_.contract(parts[0], parts[1], shape, wide_);
    if (rules_.scale != 1) s = w_.apply("multiply", {s, w_.number(rules_.scale, wide_, shape)});
    if (roles_.bias >= 0) s = w_.apply("add", {s, w_.broadcast(w_.convert(parts[at(roles_.bias)], wide_), shape)});
    if (const auto seen = visible(parts, begin, shape)) s = w_.select(*seen, s, w_.number(-kInf, wide_, shape));
    return s;
  }

  // The largest score of every query; 0 if it sees nothing.
  Term largest(const Term& scores) const {
    const Shape rows = scores.shape.minus({memory_});
    const Term most = w_.reduce(scores, Reduce::kMax, rows);
    const Term none = w_.compare("EQ", most, w_.number(-kInf, wide_, rows));
    return w_.select(none, w_.number(0, wide_, rows), most);
  }

  Term exp_from(const Term& scores, const Term& most) const {
    return w_.apply("exponential", {w_.apply("subtract", {scores, w_.broadcast(most, scores.shape)})});
  }

  // A product whose operands are rounded to the dtype of q, k and v.
  Term product(const Term& x, const Term& y, const Shape& out) const {
    return w_.contract(w_.convert(x, element_), w_.convert(y, element_), out, wide_);
  }

  Block& block_;
  Writer& w_;
  const Instr& instr_;
  const AttendRules& rules_;
  AttendOperands roles_;
  Shape q_shape_, rows_;
  Dim memory_, value_;
  Element element_, wide_;
  Terms operands_;

 private:
  // Along a dim that k and v have too, where one index has few enough scores: then no block adds to what another made.
  // Else along one of q's own.
  void choose_blocks() {
    const AttendDims dims = attend_dims(rules_, q_shape_, block_.value(instr_.inputs[1]).shape);
    const std::int64_t limit = block_.state.options.attend_block_bytes;
    const std::int64_t bytes = std::max<std::int64_t>(1, rows_.elements() * memory_.size * (wide_ == "f64" ? 8 : 4));
    const auto choose = [&](const Dim& dim) {
      if (dim.size <= queries_) return;
      along_ = dim.name;
      queries_ = dim.size;
    };
    for (const Dim& dim : dims.shared)
      if (bytes / dim.size <= limit) choose(dim);
    std::int64_t least = 1;
    if (along_.empty()) {
      for (const Dim& dim : dims.rows) choose(dim);
      least = 32;
    }
    block_size_ = std::min(queries_, std::max(least, limit / std::max<std::int64_t>(1, bytes / queries_)));
    // Equal blocks, if there is a size not much smaller.
    for (std::int64_t size = block_size_; size > block_size_ / 2 && queries_ % block_size_ != 0; --size)
      if (queries_ % size == 0) block_size_ = size;
  }

  // Keys and values of other indices of a dim, position by position.
  void gather_sources() {
    if (roles_.sources < 0) return;
    const Term given = w_.convert(operands_[at(roles_.sources)], "i64");
    const std::int64_t last = operands_[1].shape.size_of(rules_.sources) - 1;
    const Term sources =
        w_.apply("clamp", {w_.number(0, "i64", given.shape), given, w_.number(last, "i64", given.shape)});
    for (const std::size_t i : {1, 2})
      operands_[i] = gathered(w_, operands_[i], rules_.sources, sources, operands_[i].shape);
  }

  // Keys and values behind the end may be anything: they become zeros.
  void mask_ended() {
    if (roles_.memory_end < 0) return;
    for (const std::size_t i : {1, 2}) {
      const Shape& shape = operands_[i].shape;
      operands_[i] = w_.select(w_.broadcast(before_end(operands_[at(roles_.memory_end)]), shape), operands_[i],
                               w_.number(0, element_, shape));
    }
  }

  Term before_end(const Term& end) const {
    const Shape shape = end.shape.plus({memory_});
    const Element index = end.element == "i32" ? index_element(memory_.size) : "i64";
    return w_.compare("LT", w_.iota(shape, memory_.name, index), w_.broadcast(w_.convert(end, index), shape));
  }

  // Which scores count; nothing if all do.
  std::optional<Term> visible(const Terms& parts, const Term& begin, const Shape& shape) const {
    std::optional<Term> seen;
    const auto add = [&](const Term& more) {
      const Term all = w_.broadcast(more, shape);
      seen = seen ? w_.apply("and", {*seen, all}) : all;
    };
    if (roles_.query_ids >= 0) {
      const Term &query = parts[at(roles_.query_ids)], &memory = parts[at(roles_.memory_ids)];
      const Element ids = query.element == memory.element ? query.element : "i64";
      const auto all = [&](const Term& x) { return w_.broadcast(w_.convert(x, ids), shape); };
      add(w_.compare("EQ", all(query), all(memory)));
    }
    if (roles_.memory_end >= 0) add(before_end(parts[at(roles_.memory_end)]));
    if (rules_.causal) {
      const Shape pairs = {shape.dim(rules_.length), memory_};
      const std::int64_t queries = q_shape_.size_of(rules_.length) * block_.program.mesh.size();
      const Element index = index_element(std::max(queries, memory_.size));
      Term position = w_.iota(pairs, rules_.length, index);
      const auto from = [&](const Term& first) {
        position = w_.apply("add", {position, w_.broadcast(w_.convert(first, index), pairs)});
      };
      if (along_ == rules_.length) from(begin);
      if (length_begin_) from(*length_begin_);
      add(w_.compare("LE", w_.iota(pairs, memory_.name, index), position));
    }
    return seen;
  }

  std::string along_;  // the dim of blocks; "" if q has no dim of its own
  std::int64_t queries_ = 1, block_size_ = 1;
  std::optional<Term> length_begin_;
};

class Forward : Attention {
 public:
  using Attention::Attention;

  void write() {
    const Value &y = block_.value(instr_.outputs[0]), &total = block_.value(instr_.outputs[1]);
    const Shape y_shape = y.shape.renamed(rules_.value, kValue);
    const Terms first = {w_.number(0, element_, y_shape), w_.number(0, element_of(total.dtype), total.shape)};
    const Terms all =
        each_block(first, [&](const Terms& parts, const Terms& whole, const Term& begin, std::int64_t size) {
          const Term s = scores(parts, begin, size);
          const Term p = exp_from(s, largest(s));
          const Shape rows = rows_of(size);
          const Term sum = w_.reduce(p, Reduce::kSum, rows);
          const Term nothing = w_.compare("EQ", sum, w_.number(0, wide_, rows));
          const Term divisor = w_.select(nothing, w_.number(1, wide_, rows), sum);
          const Shape out = rows.plus({{kValue, value_.size}});
          const Term made = w_.apply("divide", {product(p, parts[2], out), w_.broadcast(divisor, out)});
          const auto laid = [&](const Term& x, const Term& into) {
            Shape order;
            for (const Dim& dim : into.shape) order = order.plus({x.shape.dim(dim.name)});
            return put(into, w_.transpose(w_.convert(x, into.element), order), begin);
          };
          return Terms{laid(made, whole[0]), laid(sum, whole[1])};
        });
    for (std::size_t i = 0; i < 2; ++i) block_.define(instr_.outputs[i], all[i]);
  }
};

class Backward : Attention {
 public:
  using Attention::Attention;

  // p = exp(score - largest) / total, ds = p (dy . v - dy . y).
  void write(const AttendBack& operation) {
    const int of_bias = bias_derivative(instr_);
    Terms first = {w_.number(0, element_, q_shape_)};
    for (const int i : {1, 2})  // that blocks add to, or that each writes a part of
      first.push_back(w_.number(0, has_blocks(operands_[at(i)]) ? element_ : wide_, operands_[at(i)].shape));
    if (of_bias >= 0) first.push_back(w_.number(0, wide_, operands_[at(roles_.bias)].shape));
    Terms all = each_block(first, [&](const Terms& parts, const Terms& whole, const Term& begin, std::int64_t size) {
      return of_block(parts, whole, begin, size);
    });
    for (std::size_t i = 1; i < 3; ++i) all[i] = w_.convert(all[i], element_);
    all[2] = w_.rename(all[2], kValue, rules_.value);
    if (of_bias >= 0) {
      const Value& out = block_.value(instr_.outputs[at(of_bias)]);
      block_.define(instr_.outputs[at(of_bias)], w_.transpose(w_.convert(all[3], element_of(out.dtype)), out.shape));
    }
    define_derivatives(block_, instr_, operation, all);
  }

 private:
  Terms of_block(const Terms& parts, const Terms& whole, const Term& begin, std::int64_t size) {
    const Shape rows = rows_of(size), shape = scores_of(size), out = rows.plus({{kValue, value_.size}});
    const auto mul = [&](const Term& x, const Term& y) { return w_.apply("multiply", {x, y}); };
    const auto wide = [&](int i) { return w_.convert(parts[at(i)], wide_); };
    const Term s = scores(parts, begin, size), total = w_.transpose(wide(roles_.total), rows);
    const Term nothing = w_.compare("EQ", total, w_.number(0, wide_, rows));
    const Term divisor = w_.select(nothing, w_.number(1, wide_, rows), total);
    const Term p = w_.apply("divide", {exp_from(s, largest(s)), w_.broadcast(divisor, shape)});
    const Term dy = w_.transpose(parts[at(roles_.dy)], out);
    const Term mean = w_.reduce(mul(w_.convert(dy, wide_), w_.transpose(wide(roles_.y), out)), Reduce::kSum, rows);
    const Term dp = product(dy, parts[2], shape);
    const Term by_score = mul(p, w_.apply("subtract", {dp, w_.broadcast(mean, shape)}));
    const Term ds = rules_.scale == 1 ? by_score : mul(by_score, w_.number(rules_.scale, wide_, shape));
    const auto join = [&](const Term& all, const Term& x) {
      return has_blocks(all) ? put(all, w_.convert(x, element_), begin) : w_.apply("add", {all, x});
    };
    Terms next = {put(whole[0], w_.convert(product(ds, parts[1], parts[0].shape), element_), begin),
                  join(whole[1], product(ds, parts[0], parts[1].shape)),
                  join(whole[2], product(p, dy, parts[2].shape))};
    if (whole.size() > 3) next.push_back(bias_sum(whole[3], parts[at(roles_.bias)], by_score, begin));
    return next;
  }

  // The block's part of the bias's derivative, added where it lies.
  Term bias_sum(const Term& whole, const Term& bias, const Term& by_score, const Term& begin) {
    const Term sum = w_.reduce(by_score, Reduce::kSum, bias.shape);
    if (!has_blocks(whole)) return w_.apply("add", {whole, sum});
    return put(whole, sum, begin);  // a block's rows occur in no other block
  }
};

}  // namespace

void write_attend(Block& block, const Instr& instr, const Attend&) {
  if (!write_cudnn_attend(block, instr)) Forward(block, instr).write();
}

void write_attend_back(Block& block, const Instr& instr, const AttendBack& operation) {
  if (!write_cudnn_attend_back(block, instr, operation)) Backward(block, instr).write(operation);
}

// Joined: one after another along the joined dim, each with q's dims.
void define_derivatives(Block& block, const Instr& instr, const AttendBack& operation, const Terms& all) {
  const Shape& first = block.value(instr.outputs[0]).shape;
  Terms parts;
  for (int i = 0; i < 3; ++i) {
    if (operation.joined.empty()) {
      const ValueId id = instr.outputs[at(i)];
      block.define(id, block.w.transpose(all[at(i)], block.value(id).shape));
      continue;
    }
    const Term ordered = block.w.transpose(all[at(i)], joined_part(operation, first, i));
    parts.push_back(block.w.reshape(ordered, first.resized(operation.joined, 1)));
  }
  if (!parts.empty()) block.define(instr.outputs[0], block.w.concatenate(parts, operation.joined));
}

}  // namespace weft::stablehlo
