// Random programs: after every pass the verifier holds, the text round-trips and every output has the same numbers.
#include <gtest/gtest.h>

#include <set>

#include "program/cost.h"
#include "program/evaluate.h"
#include "program/partial.h"
#include "program/memory_plan.h"
#include "program/passes/passes.h"
#include "program/pipeline.h"
#include "program/text.h"
#include "program/verify.h"
#include "support/soak.h"
#include "weft/error.h"

namespace weft::random_program_test {
namespace {

// Programs as the partitioner makes them: reductions mostly right where a partial arises, values laid out alike, with
// views, shards and gathers in between.
class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed) : random_(seed), b_(Mesh::parse("data:2 model:2 one:1")) {
    axes_["a"] = pick({Axes{}, Axes{0}});
    axes_["b"] = pick({Axes{}, Axes{1}, Axes{1, 2}});
    for (int i = 0; i < 5; ++i) add_input(i);
    for (int i = 0, n = 4 + below(14); i < n; ++i) step();
  }

  Program finish() {
    int outputs = 0;
    for (std::size_t i = pool_.size(); i-- > 0 && outputs < 4;)
      if (!type(pool_[i]).sharding.is_partial() && (unused_.count(pool_[i]) || below(6) == 0)) {
        b_.begin("out", {});
        const ValueId dense = b_.dense(pool_[i], type(pool_[i]).shape);
        b_.output("o" + std::to_string(outputs++), dense);
      }
    return std::move(b_).finish();
  }

 private:
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  template <class T>
  T pick(std::initializer_list<T> from) {
    return from.begin()[below(static_cast<int>(from.size()))];
  }
  ValueType type(ValueId id) const { return b_.type(id); }

  ValueType laid_out(const Shape& shape) {
    ValueType t{DType::kF32, shape, unsplit(shape)};
    for (std::size_t i = 0; i < shape.rank(); ++i) t.sharding.dims[i] = axes_[shape[i].name];
    return t;
  }

  void add_input(int i) {
    std::vector<Dim> dims;
    for (const Dim& dim : {Dim{"a", 4}, Dim{"b", 2}, Dim{"c", 4}})
      if (below(3) > 0) dims.push_back(dim);
    if (below(3) == 0) std::reverse(dims.begin(), dims.end());
    ValueType t = laid_out(dims);
    if (below(2) == 0) {
      for (int axis : {0, 1, 2})
        if (!t.sharding.uses(axis) && below(2) == 0) t.sharding.partial.push_back(axis);
      if (!t.sharding.partial.empty()) t.sharding.pending = pick({Reduce::kSum, Reduce::kSum, Reduce::kMax});
    }
    add(b_.input("i" + std::to_string(i), t));
  }

  // Reduces what is pending, mostly; later values may then be used anywhere.
  void add(ValueId id) {
    if (type(id).sharding.is_partial() && below(8) > 0) id = b_.all_reduce(id, type(id).sharding.partial);
    pool_.push_back(id);
    unused_.insert(id);
  }

  ValueId any() {
    const ValueId id =
        below(2) == 0 ? pool_.back() : pool_[static_cast<std::size_t>(below(static_cast<int>(pool_.size())))];
    unused_.erase(id);
    return id;
  }

  void step() {
    b_.begin("v", {pick({Phase::kForward, Phase::kBackward, Phase::kUpdate}), {"t:" + std::to_string(below(9))}});
    const ValueId x = any();
    switch (below(13)) {
      case 0:
      case 1:
      case 2: return binary(x, any(), pick<std::string>({"add", "add", "subtract", "multiply", "maximum"}));
      case 3: return unary(x, pick<std::string>({"negative", "relu", "identity"}));
      case 4: return scaled(x);
      case 5: return reduce(x, pick({Reduce::kSum, Reduce::kSum, Reduce::kMax}));
      case 6: return contract(x, any());
      case 7: return transposed(x);
      case 8: return sliced(x);
      case 9: return sharded(x);
      case 10: return gathered(x);
      case 11: return siblings(x, any());
      default: return masked(x);
    }
  }

  // Appends if what is pending in the operands may pass.
  void append(Operation operation, std::vector<ValueId> inputs, ValueType out) {
    Axes pending;
    std::optional<Reduce> how;
    for (ValueId id : inputs)
      for (int axis : type(id).sharding.partial) {
        if (std::find(pending.begin(), pending.end(), axis) == pending.end()) pending.push_back(axis);
        if (how && *how != type(id).sharding.pending) return;
        how = type(id).sharding.pending;
      }
    if (out.sharding.is_partial() && how && *how != out.sharding.pending) return;
    for (int axis : pending) {
      if (out.sharding.uses(axis)) return;
      std::vector<bool> marked;
      for (ValueId id : inputs) {
        const Axes& partial = type(id).sharding.partial;
        marked.push_back(std::find(partial.begin(), partial.end(), axis) != partial.end());
        if (!marked.back() && type(id).sharding.uses(axis)) return;
      }
      if (!lets_pass({operation, {}, {}, {}}, *how, marked)) return;
    }
    out.sharding.partial.insert(out.sharding.partial.end(), pending.begin(), pending.end());
    std::sort(out.sharding.partial.begin(), out.sharding.partial.end());
    if (how) out.sharding.pending = *how;
    add(b_.emit_one(std::move(operation), std::move(inputs), std::move(out)));
  }

  bool is_regular(ValueId id) {  // lies as all values of its dims do
    ValueType t = type(id);
    for (std::size_t i = 0; i < t.shape.rank(); ++i) {
      const Dim& dim = t.shape[i];
      if (!axes_.count(dim.name) && dim.name != "c") return false;
      if (t.sharding.dims[i] != axes_[dim.name] || dim.size != (dim.name == "b" ? 2 : 4)) return false;
    }
    return true;
  }

  void binary(ValueId x, ValueId y, const std::string& function) {
    if (!is_regular(x) || !is_regular(y)) return;
    append(Map{one_function(function, {DType::kF32, DType::kF32}, DType::kF32)}, {x, y},
           laid_out(type(x).shape.plus(type(y).shape)));
  }
  void unary(ValueId x, const std::string& function) {
    ValueType out = type(x);
    out.sharding.partial = {};
    out.sharding.pending = Reduce::kSum;
    append(Map{one_function(function, {DType::kF32}, DType::kF32)}, {x}, out);
  }
  void scaled(ValueId x) {
    ValueType out = type(x);
    out.sharding.partial = {};
    out.sharding.pending = Reduce::kSum;
    const ValueId two = b_.fill(pick({2.0, 1.0, -1.0, 0.0}), {DType::kF32, {}, {}});
    append(Map{one_function(pick<std::string>({"multiply", "add"}), {DType::kF32, DType::kF32}, DType::kF32)}, {x, two},
           out);
  }
  // By a condition that differs from processor to processor: a partial, or a value that differs though it is not split.
  void masked(ValueId x) {
    const Axes axes = pick({Axes{0}, Axes{1}});
    if (type(x).sharding.is_partial() || type(x).sharding.uses(axes[0])) return;
    const ValueId rank = b_.cast(b_.axis_index(axes), DType::kF32);
    std::vector<MapNode> nodes = one_function("less", {DType::kF32, DType::kF32}, DType::kBool);
    nodes.push_back({.op = "literal", .args = {}, .literal = 0, .dim = {}});
    nodes.push_back({.op = "select", .args = {2, 0, 3}, .dim = {}});
    ValueType out = type(x);
    if (below(2) == 0) out.sharding.partial = axes;
    add(b_.emit_one(Map{nodes}, {x, rank}, out));
  }
  void reduce(ValueId x, Reduce how) {
    const ValueType t = type(x);
    std::vector<Dim> kept;
    ValueType out = t;
    out.sharding = {};
    for (std::size_t i = 0; i < t.shape.rank(); ++i) {
      if (below(2) == 0) {
        kept.push_back(t.shape[i]);
        out.sharding.dims.push_back(t.sharding.dims[i]);
      } else {
        for (int axis : t.sharding.dims[i]) out.sharding.partial.push_back(axis);
      }
    }
    if (out.sharding.is_partial()) out.sharding.pending = how;
    out.shape = kept;
    append(ReduceDims{how}, {x}, out);
  }
  void contract(ValueId x, ValueId y) {
    if (!is_regular(x) || !is_regular(y)) return;
    std::vector<Dim> kept;
    Axes pending;
    const Shape all = type(x).shape.plus(type(y).shape);
    for (const Dim& dim : all) {
      const bool shared = type(x).shape.has(dim.name) && type(y).shape.has(dim.name);
      if (!shared || below(2) == 0) kept.push_back(dim);
      else pending.insert(pending.end(), axes_[dim.name].begin(), axes_[dim.name].end());
    }
    ValueType out = laid_out(kept);
    out.sharding.partial = pending;
    append(Contract{}, {x, y}, out);
  }
  // Contractions with the two halves of y.
  void siblings(ValueId x, ValueId y) {
    if (!is_regular(x) || !is_regular(y) || type(x).shape.has("c") || !type(y).shape.has("c")) return;
    const Shape summed = type(x).shape.minus(type(x).shape.minus(type(y).shape));
    ValueType out = laid_out(type(x).shape.plus(type(y).shape).minus(summed));
    out.shape = out.shape.resized("c", 2);
    for (const Dim& dim : summed)
      out.sharding.partial.insert(out.sharding.partial.end(), axes_[dim.name].begin(), axes_[dim.name].end());
    const std::size_t before = pool_.size();
    for (int half : {0, 2}) append(Contract{}, {x, b_.slice(y, "c", half, 2)}, out);
    if (pool_.size() < before + 2) return;
    const std::vector<ValueId> halves{pool_[before], pool_.back()};
    for (ValueId half : halves) unused_.erase(half);
    out.sharding.partial = {};
    append(Map{one_function("add", {DType::kF32, DType::kF32}, DType::kF32)}, halves, out);
  }
  void transposed(ValueId x) {
    std::vector<Dim> dims = type(x).shape.dims();
    std::reverse(dims.begin(), dims.end());
    add(b_.dense(x, dims));
  }
  void sliced(ValueId x) {
    const Shape shape = type(x).shape;
    if (shape.empty()) return;
    const Dim dim = shape[static_cast<std::size_t>(below(static_cast<int>(shape.rank())))];
    if (dim.size > 1) add(b_.slice(x, dim.name, below(2), dim.size / 2));
  }
  void sharded(ValueId x) {
    const ValueType t = type(x);
    for (std::size_t i = 0; i < t.shape.rank(); ++i) {
      const Axes axes = pick({Axes{0}, Axes{1}, Axes{0, 1}, Axes{1, 0}, Axes{2}});
      const bool used = std::any_of(axes.begin(), axes.end(), [&](int axis) { return t.sharding.uses(axis); });
      if (!used && t.shape[i].size % b_.mesh().size(axes) == 0) return add(b_.shard(x, t.shape[i].name, axes));
    }
  }
  void gathered(ValueId x) {
    const ValueType t = type(x);
    for (std::size_t i = 0; i < t.shape.rank(); ++i)
      if (!t.sharding.dims[i].empty()) return add(b_.all_gather(x, t.shape[i].name, {t.sharding.dims[i].back()}));
  }

  std::mt19937 random_;
  Builder b_;
  std::map<std::string, Axes> axes_;
  std::vector<ValueId> pool_;
  std::set<ValueId> unused_;
};

// What a ring sends for what enters: an all_reduce is a reduce_scatter and an all_gather.
double bytes_sent(const Program& p) {
  double bytes = 0;
  for (const Instr& instr : p.body) {
    if (!is_collective(instr)) continue;
    const double n = p.mesh.size(axes_of(instr)), entering = cost_of(p, instr).bytes;
    if (instr.is<AllReduce>()) bytes += 2 * entering * (n - 1) / n;
    else if (instr.is<ReduceScatter>()) bytes += entering * (n - 1) / n;
    else bytes += entering * (n - 1);
  }
  return bytes;
}

std::vector<std::vector<double>> outputs_of(const Program& p) {
  const test::Evaluation evaluation(p);
  std::vector<std::vector<double>> all;
  for (const ProgramOutput& output : p.outputs)
    for (const ProcessorId processor : p.mesh.processors()) all.push_back(evaluation.numbers(processor, output.value));
  return all;
}

void check(unsigned seed, std::map<std::string, int>& fired) {
  Program p = RandomProgram(seed).finish();
  ASSERT_NO_THROW(verify(p, "random")) << to_text(p);
  const auto want = outputs_of(p);
  for (const Pass& pass : pipeline()) {
    const std::string before = to_text(p);
    const double bytes = bytes_sent(p);
    PassOptions options{.target = {.fusing = {.maps = seed % 2 == 0, .reductions = seed % 3 != 0}}};
    if (seed % 5 == 0) options.target.fusing.most_inputs = 2;
    if (seed % 2 == 1) options.target.recomputed_bytes = 1;
    if (pass.run == recompute_for_memory) options.arena_limit = plan_memory(p).arena_bytes * 9 / 10;
    try {
      p = pass.run(p, options);
      verify(p, pass.name);
    } catch (const UserError&) {
      ASSERT_EQ(pass.run, recompute_for_memory);  // not every program can do with less
    } catch (const std::exception& error) {
      FAIL() << "seed " << seed << ": " << error.what() << "\nbefore:\n" << before << "after:\n" << to_text(p);
    }
    const std::string after = to_text(p);
    ASSERT_EQ(to_text(parse_program(after)), after);
    ASSERT_EQ(outputs_of(p), want) << "seed " << seed << ", " << pass.name << "\nbefore:\n"
                                   << before << "after:\n"
                                   << after;
    ASSERT_LE(bytes_sent(p), bytes) << "seed " << seed << ", " << pass.name << "\nbefore:\n"
                                    << before << "after:\n"
                                    << after;
    if (before != after) ++fired[pass.name];
  }
}

void check_seeds(unsigned from, unsigned to) {
  std::map<std::string, int> fired;
  for (unsigned seed = from; seed < to; ++seed) ASSERT_NO_FATAL_FAILURE(check(seed, fired));
  // These programs have no updates, no narrow floats and no attention.
  fired["join_attend"] += 1;
  fired["hoist_updates"] += 1;
  fired["widen_products"] += 1;
  for (const Pass& pass : pipeline()) EXPECT_GT(fired[pass.name], 0) << pass.name << " found nothing to do";
}

TEST(RandomPrograms, KeepTheirNumbers) { check_seeds(0, 300); }
TEST(FullRandomPrograms, KeepTheirNumbers) { check_seeds(300, 3000); }
TEST(SoakRandomPrograms, KeepTheirNumbers) { check_seeds(3000, 3000 + test::soak_count(57000)); }

}  // namespace
}  // namespace weft::random_program_test
