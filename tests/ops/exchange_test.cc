// assemble: slices, pads, shifts, concats and random jumbles of pieces along a dim that is split over processors. Every
// program is run by a small interpreter that knows nothing but the definitions in program/ir.h.
#include "ops/exchange.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <random>

#include "base/str.h"
#include "language/shape_math.h"
#include "program/text.h"
#include "program/verify.h"
#include "support/expect_error.h"
#include "weft/error.h"

namespace weft::exchange_test {
namespace {

using Index = std::map<std::string, std::int64_t>;

// One processor's contents of a value.
struct Held {
  std::shared_ptr<std::vector<double>> data;
  std::int64_t offset = 0;
  std::vector<std::int64_t> strides;
  Shape shape;

  double at(const Index& index) const {
    std::int64_t place = offset;
    for (std::size_t d = 0; d < shape.rank(); ++d) place += index.at(shape[d].name) * strides[d];
    return data->at(static_cast<std::size_t>(place));
  }
};

void each_index(const Shape& shape, const std::function<void(Index&)>& visit) {
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    Index index;
    std::int64_t rest = i;
    for (std::size_t d = shape.rank(); d-- > 0; rest /= shape[d].size) index[shape[d].name] = rest % shape[d].size;
    visit(index);
  }
}

Held computed(const Shape& shape, const std::function<double(Index&)>& element) {
  Held out{std::make_shared<std::vector<double>>(), 0, dense_strides(shape), shape};
  each_index(shape, [&](Index& index) { out.data->push_back(element(index)); });
  return out;
}

class Interpreter {
 public:
  explicit Interpreter(const Program& program)
      : program_(program),
        held_(static_cast<std::size_t>(program.mesh.size()), ByValue<Held>(program.values.size())),
        received(held_.size(), 0) {}

  Held& held(ProcessorId processor, ValueId id) { return held_[processor][id]; }

  void run() {
    for (const Instr& instr : program_.body)
      for (const ProcessorId p : program_.mesh.processors()) held(p, instr.outputs[0]) = result(instr, p);
  }

 private:
  const Value& value(ValueId id) const { return program_.values[id]; }

  // The first global index of a processor's shard of a dim.
  std::int64_t start(const Value& v, const std::string& dim, ProcessorId p) const {
    return shard_begin(v.shape, v.sharding, program_.mesh, p)[v.shape.position(dim)];
  }

  Held result(const Instr& instr, ProcessorId p) {
    const Value& out = value(instr.outputs[0]);
    const auto in = [&](std::size_t i) -> const Held& { return held(p, instr.inputs[i]); };
    if (const auto* w = instr.as<View>()) return {in(0).data, in(0).offset + w->offset, w->strides, out.shape};
    if (const auto* w = instr.as<Constant>()) {
      std::size_t next = 0;
      return computed(out.shape, [&](Index&) { return w->data.at(next++).real(); });
    }
    if (const auto* w = instr.as<AxisIndex>())
      return computed(out.shape, [&](Index&) { return program_.mesh.coordinate(p, w->axes); });
    if (const auto* w = instr.as<Concat>())
      return computed(out.shape, [&](Index& index) {
        std::size_t i = 0;
        for (; index[w->dim] >= in(i).shape.size_of(w->dim); ++i) index[w->dim] -= in(i).shape.size_of(w->dim);
        return in(i).at(index);
      });
    if (const auto* w = instr.as<DynamicSlice>()) {
      const std::int64_t last = in(0).shape.size_of(w->dim) - out.shape.size_of(w->dim);
      const auto begin = static_cast<std::int64_t>(in(1).at({}));
      EXPECT_TRUE(begin >= 0 && begin <= last) << "a take that must be clamped";
      return computed(out.shape, [&](Index& index) {
        index[w->dim] += begin;
        return in(0).at(index);
      });
    }
    if (const auto* w = instr.as<Gather>()) {
      const std::int64_t first = start(value(instr.inputs[0]), w->dim, p);
      return computed(out.shape, [&](Index& index) {
        const std::int64_t at = static_cast<std::int64_t>(in(1).at(index)) - first;
        index[w->dim] = at;
        return at < 0 || at >= in(0).shape.size_of(w->dim) ? 0.0 : in(0).at(index);
      });
    }
    if (const auto* w = instr.as<Map>()) return mapped(*w, instr, p);
    return permuted(std::get<Permute>(instr.operation), instr, p);
  }

  Held permuted(const Permute& w, const Instr& instr, ProcessorId p) {
    const std::vector<ProcessorId> group = program_.mesh.group(p, w.axes);
    EXPECT_EQ(w.to.size(), group.size());
    Held out = computed(value(instr.outputs[0]).shape, [](Index&) { return 0.0; });
    int senders = 0;
    for (std::size_t r = 0; r < group.size(); ++r)
      if (w.to[r] == program_.mesh.coordinate(p, w.axes)) {
        EXPECT_NE(group[r], p) << "sent to itself";
        out = computed(out.shape, [&](Index& index) { return held(group[r], instr.inputs[0]).at(index); });
        received[p] += out.shape.elements();
        ++senders;
      }
    EXPECT_LE(senders, 1);
    return out;
  }

  Held mapped(const Map& w, const Instr& instr, ProcessorId p) {
    const Value& out = value(instr.outputs[0]);
    return computed(out.shape, [&](Index& index) {
      std::vector<double> results;
      for (const MapNode& node : w.nodes) {
        const auto arg = [&](std::size_t i) { return results[static_cast<std::size_t>(node.args[i])]; };
        if (node.op == "input")
          results.push_back(held(p, instr.inputs[static_cast<std::size_t>(node.input)]).at(index));
        else if (node.op == "literal") results.push_back(node.literal.real());
        else if (node.op == "index") results.push_back(static_cast<double>(start(out, node.dim, p) + index[node.dim]));
        else if (node.op == "add") results.push_back(arg(0) + arg(1));
        else if (node.op == "subtract") results.push_back(arg(0) - arg(1));
        else if (node.op == "multiply") results.push_back(arg(0) * arg(1));
        else if (node.op == "less") results.push_back(arg(0) < arg(1));
        else if (node.op == "less_equal") results.push_back(arg(0) <= arg(1));
        else if (node.op == "logical_and") results.push_back(arg(0) != 0 && arg(1) != 0);
        else if (node.op == "select") results.push_back(arg(0) != 0 ? arg(1) : arg(2));
        else ADD_FAILURE() << "unknown function " << node.op;
      }
      return results.back();
    });
  }

  const Program& program_;
  Indexed<ProcessorId, ByValue<Held>> held_;

 public:
  Indexed<ProcessorId, std::int64_t> received;  // elements
};

// Sources [left=2 x=… right=2]: x is split over `axes`, right over the first axis that is left.
struct Case {
  Mesh mesh;
  Axes axes;
  std::vector<std::int64_t> sources;  // global sizes
  std::int64_t size = 0;
  std::vector<Piece> pieces;  // `source` counts `sources`
};

Shape shape_of(std::int64_t size) { return {{"left", 2}, {"x", size}, {"right", 2}}; }

Sharding sharding_of(const Case& c) {
  Sharding sharding{.dims = {{}, c.axes, {}}, .partial = {}};
  const Axes rest = replicated_axes(sharding, c.mesh);
  if (!rest.empty() && c.mesh.size({rest[0]}) == 2) sharding.dims[2] = {rest[0]};
  return sharding;
}

double element(std::size_t source, std::int64_t left, std::int64_t x, std::int64_t right) {
  return 1000.0 * static_cast<double>(source + 1) + static_cast<double>(x * 4 + left * 2 + right);
}

std::string text_of(const Case& c) {
  std::string text = str(c.mesh, " axes ", text_of(c.axes, c.mesh), " size ", c.size, ":");
  for (const Piece& p : c.pieces)
    text += str(" [", p.begin, ",", p.begin + p.size, ") of ", c.sources[at(p.source.number())], "#", p.source, " to ",
                p.to, ";");
  return text;
}

struct Outcome {
  Program program;
  Indexed<ProcessorId, std::int64_t> received;
  int permutes = 0, gathers = 0;
  bool untouched = false;  // the result is the source itself
};

// Builds and runs a case, and compares every processor's block of the result with the pieces written out.
Outcome expect_assembled(const Case& c) {
  SCOPED_TRACE(text_of(c));
  const Sharding sharding = sharding_of(c);
  Builder builder(c.mesh);
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < c.sources.size(); ++i)
    inputs.push_back(
        builder.input(str("s", i), {DType::kF32, local_shape(shape_of(c.sources[i]), sharding, c.mesh), sharding}));
  std::vector<Piece> pieces = c.pieces;
  for (Piece& piece : pieces) piece.source = inputs[at(piece.source.number())];
  const ValueId result = assemble(builder, "x", c.size, c.axes, pieces);
  Outcome outcome{std::move(builder).finish(), {}, 0, 0, result == inputs[0]};

  EXPECT_NO_THROW(verify(outcome.program, "assemble"));
  EXPECT_EQ(to_text(parse_program(to_text(outcome.program))), to_text(outcome.program));

  Interpreter interpreter(outcome.program);
  const auto global = [&](const Shape& local, ProcessorId p, Index index) {
    const std::vector<std::int64_t> begin = shard_begin(local, sharding, c.mesh, p);
    return std::array{begin[0] + index["left"], begin[1] + index["x"], begin[2] + index["right"]};
  };
  for (const ProcessorId p : c.mesh.processors())
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Shape local = local_shape(shape_of(c.sources[i]), sharding, c.mesh);
      interpreter.held(p, inputs[i]) = computed(local, [&](Index& index) {
        const auto [left, x, right] = global(local, p, index);
        return element(i, left, x, right);
      });
    }
  interpreter.run();

  const Shape local = local_shape(shape_of(c.size), sharding, c.mesh);
  const Value& value = outcome.program.values[result];
  EXPECT_EQ(value.shape, local);
  EXPECT_EQ(value.sharding, sharding);
  for (const ProcessorId p : c.mesh.processors())
    each_index(local, [&](Index& index) {
      const auto [left, x, right] = global(local, p, index);
      double want = 0;
      for (const Piece& piece : c.pieces)
        if (x >= piece.to && x < piece.to + piece.size)
          want = element(static_cast<std::size_t>(piece.source.number()), left, x - piece.to + piece.begin, right);
      EXPECT_EQ(interpreter.held(p, result).at(index), want) << "processor " << p << " x=" << x;
    });
  outcome.received = interpreter.received;
  for (const Instr& instr : outcome.program.body) {
    outcome.permutes += instr.is<Permute>();
    outcome.gathers += instr.is<Gather>();
  }
  return outcome;
}

// What each processor must get from others, and the most it may get: its pieces from each sender, rounded up to the
// longest.
void expect_few_bytes(const Case& c, const Outcome& outcome) {
  SCOPED_TRACE(text_of(c));
  const std::int64_t n = c.mesh.size(c.axes), want = c.size / n;
  std::map<std::tuple<std::size_t, std::int64_t, std::int64_t>, std::int64_t> debts;  // piece, sender, receiver
  for (std::size_t i = 0; i < c.pieces.size(); ++i)
    for (std::int64_t k = 0; k < c.pieces[i].size; ++k) {
      const std::int64_t have = c.sources[at(c.pieces[i].source.number())] / n;
      const std::int64_t from = (c.pieces[i].begin + k) / have, to = (c.pieces[i].to + k) / want;
      if (from != to) ++debts[{i, from, to}];
    }
  std::int64_t longest = 0;
  for (const auto& [who, size] : debts) longest = std::max(longest, size);
  const std::int64_t row = local_shape(shape_of(c.size), sharding_of(c), c.mesh).elements() / want;
  for (const ProcessorId p : c.mesh.processors()) {
    std::int64_t needed = 0, senders = 0;
    for (const auto& [who, size] : debts)
      if (std::get<2>(who) == c.mesh.coordinate(p, c.axes)) {
        needed += size;
        ++senders;
      }
    const std::int64_t got = outcome.received[p];
    EXPECT_GE(got, needed * row);
    EXPECT_LE(got, senders * longest * row);
    EXPECT_TRUE(got == needed * row || outcome.gathers > 0);
  }
  EXPECT_TRUE(!debts.empty() || outcome.permutes == 0);
}

Outcome check(const Case& c) {
  Outcome outcome = expect_assembled(c);
  expect_few_bytes(c, outcome);
  return outcome;
}

std::vector<std::pair<Mesh, Axes>> splits() {
  return {{Mesh::parse("a:2"), {}},      {Mesh::parse("a:2"), {0}},        {Mesh::parse("a:3"), {0}},
          {Mesh::parse("a:4"), {0}},     {Mesh::parse("a:2 b:2"), {0, 1}}, {Mesh::parse("a:2 b:2"), {1, 0}},
          {Mesh::parse("a:2 b:3"), {1}}, {Mesh::parse("a:1 b:2"), {0}}};
}

TEST(Exchange, Slices) {
  for (const auto& [mesh, axes] : splits())
    for (std::int64_t size = mesh.size(axes); size <= 12; size += mesh.size(axes))
      for (std::int64_t begin = 0; begin + size <= 12; ++begin) {
        const Outcome outcome = check({mesh, axes, {12}, size, {{ValueId(0), begin, size, 0}}});
        EXPECT_EQ(outcome.untouched, size == 12);
      }
}

TEST(Exchange, Pads) {
  for (const auto& [mesh, axes] : splits()) {
    const int n = mesh.size(axes);
    for (std::int64_t size = 2 * n; size <= 16; size += n)
      for (std::int64_t to = 0; to + 2 * n <= size; ++to)
        check({mesh, axes, {2 * n}, size, {{ValueId(0), 0, 2 * n, to}}});
  }
}

TEST(Exchange, ShiftsThatWrap) {
  for (const auto& [mesh, axes] : splits())
    for (std::int64_t k = 1; k < 12; ++k) {
      const Outcome outcome = check({mesh, axes, {12}, 12, {{ValueId(0), 0, 12 - k, k}, {ValueId(0), 12 - k, k, 0}}});
      EXPECT_EQ(outcome.gathers, 0) << "every processor does the same";
      const bool whole_blocks = mesh.size(axes) > 1 && k % (12 / mesh.size(axes)) == 0;
      EXPECT_LE(outcome.permutes, whole_blocks ? 1 : 2);
      EXPECT_EQ(outcome.program.body.size() == 1, whole_blocks) << "a rotation of blocks is one permute";
    }
}

TEST(Exchange, ShiftsThatFillWithZeros) {
  for (const auto& [mesh, axes] : splits())
    for (std::int64_t k = 1; k < 12; ++k)
      for (const Piece& piece : {Piece{ValueId(0), 0, 12 - k, k}, Piece{ValueId(0), k, 12 - k, 0}})
        EXPECT_EQ(check({mesh, axes, {12}, 12, {piece}}).gathers, 0) << "every processor does the same";
}

TEST(Exchange, Concats) {
  for (const auto& [mesh, axes] : splits()) {
    const int n = mesh.size(axes);
    for (std::int64_t first = n; first <= 12; first += n)
      for (std::int64_t second = n; second <= 12; second += n)
        check(
            {mesh, axes, {first, second}, first + second, {{ValueId(0), 0, first, 0}, {ValueId(1), 0, second, first}}});
  }
  const Mesh mesh = Mesh::parse("a:4");
  check({mesh, {0}, {4, 8, 4}, 16, {{ValueId(0), 0, 4, 0}, {ValueId(1), 0, 8, 4}, {ValueId(2), 0, 4, 12}}});
}

TEST(Exchange, NothingIsZeros) {
  const Outcome outcome = check({Mesh::parse("a:2"), {0}, {4}, 8, {{ValueId(0), 1, 0, 3}}});
  EXPECT_EQ(outcome.program.body.size(), 1u);
}

TEST(Exchange, RandomPieces) {
  std::mt19937 random(7);
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 300; ++round)
    for (const auto& [mesh, axes] : splits()) {
      const std::int64_t n = mesh.size(axes);
      Case c{mesh, axes, {n * (1 + below(4)), n * (1 + below(4))}, n * (1 + below(5)), {}};
      for (std::int64_t to = below(3); to < c.size;) {
        const std::int64_t source = below(2), whole = c.sources[static_cast<std::size_t>(source)], begin = below(whole);
        const std::int64_t size = std::min(1 + below(whole - begin), c.size - to);
        c.pieces.push_back({ValueId(source), begin, size, to});
        to += size + below(3);
      }
      if (c.pieces.empty()) continue;
      check(c);
      ASSERT_FALSE(HasFailure());
    }
}

TEST(Exchange, RefusesWhatItsCallersMustNotAsk) {
  const Mesh mesh = Mesh::parse("a:2");
  Builder builder(mesh);
  const Sharding split{.dims = {{0}}, .partial = {}};
  const ValueId x = builder.input("x", {DType::kF32, {{"x", 2}}, split});
  EXPECT_INTERNAL_ERROR(assemble(builder, "x", 4, {0}, {}), "nothing to assemble");
  EXPECT_INTERNAL_ERROR(assemble(builder, "x", 3, {0}, {{x, 0, 3, 0}}), "an assembled dim that does not divide");
  EXPECT_INTERNAL_ERROR(assemble(builder, "x", 4, {}, {{x, 0, 4, 0}}), "a piece that lies otherwise than the result");
  EXPECT_INTERNAL_ERROR(assemble(builder, "x", 4, {0}, {{x, 1, 4, 0}}), "a piece outside its source or the result");
}

}  // namespace
}  // namespace weft::exchange_test
