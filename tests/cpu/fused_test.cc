// fused: every body gives what the reference's kernels give when they run its instructions one after another.
#include "cpu/bodies.h"

namespace weft::test::fused_test {
namespace {

std::vector<Held> filled_inputs(const Program& body, std::mt19937& random, double least = -4, double most = 4,
                                bool whole = false) {
  std::vector<Held> inputs;
  std::uniform_real_distribution<double> real(least, most);
  for (const ProgramInput& input : body.inputs) {
    inputs.push_back(held(body.values[input.value]));
    const TensorView& view = inputs.back().view;
    for (std::int64_t i = 0; i < view.shape.elements(); ++i) {
      const double x = real(random);
      set_number(view, i, whole ? std::nearbyint(x) : x);
    }
  }
  return inputs;
}

void expect_same(const BodyMaker& maker, const std::vector<Held>& inputs, double tolerance,
                 const std::vector<int>& over = {}) {
  ASSERT_TRUE(row_plan(maker.program));
  const ByValue<Held> want = run_reference(maker.program, inputs);
  for (int workers : {1, 2, 3}) {
    std::vector<Held> fresh;
    for (const Held& input : inputs) {  // in place destroys them
      fresh.push_back({std::make_shared<Memory>(*input.memory), input.view});
      fresh.back().view.data = fresh.back().memory->data();
    }
    const std::vector<Held> got = run_fused(maker.program, fresh, workers, over);
    for (std::size_t k = 0; k < got.size(); ++k) {
      const ValueId id = maker.program.outputs[k].value;
      EXPECT_TRUE(same(got[k].view, want[id].view, tolerance)) << "output " << k << ", workers " << workers;
      EXPECT_TRUE(got[k].memory->untouched_around());
    }
  }
}

const std::vector<std::pair<std::int64_t, std::int64_t>> kSizes = {
    {1, 1}, {3, 1}, {1, 17}, {17, 3}, {5, 1000}, {9, 1023}, {64, 512}, {2, 10000}, {300, 7}, {1, 20000}};

MapNode literal(double x, DType dtype = DType::kF32) { return {.op = "literal", .dtype = dtype, .literal = x}; }
MapNode node(const std::string& op, std::vector<int> args, DType dtype = DType::kF32) {
  return {.op = op, .args = std::move(args), .dtype = dtype};
}

TEST(Fused, LayerNormForward) {
  std::mt19937 random(1);
  for (const auto& [rows, cols] : kSizes) {
    const Shape full{{"r", rows}, {"c", cols}}, row{{"r", rows}}, col{{"c", cols}};
    BodyMaker m;
    const ValueId x = m.input(full), y = m.input(full), scale = m.input(col), bias = m.input(col);
    const ValueId sum = m.apply("add", {x, y}, full);
    const ValueId total = m.reduce(sum, row);
    const ValueId mean = m.map({total}, {literal(1.0 / double(cols)), node("multiply", {0, 1})}, row);
    const ValueId centered = m.apply("subtract", {sum, mean}, full);
    const ValueId squares = m.reduce(m.apply("square", {centered}, full), row);
    const ValueId factor = m.map(
        {squares},
        {literal(1.0 / double(cols)), node("multiply", {0, 1}), literal(1e-3), node("add", {2, 3}), node("rsqrt", {4})},
        row);
    const ValueId out = m.map({centered, factor, scale, bias},
                              {node("multiply", {0, 1}), node("multiply", {4, 2}), node("add", {5, 3})}, full);
    for (ValueId id : {out, sum, mean, factor}) m.output(id);
    expect_same(m, filled_inputs(m.program, random), 3e-5);
    expect_same(m, filled_inputs(m.program, random), 3e-5, {0, 1, -1, -1});
  }
}

TEST(Fused, LayerNormBackwardWithSumsOverRows) {
  std::mt19937 random(2);
  for (const auto& [rows, cols] : kSizes) {
    const Shape full{{"a", 2}, {"r", rows}, {"c", cols}}, row{{"a", 2}, {"r", rows}}, col{{"c", cols}};
    BodyMaker m;
    const ValueId dy = m.input(full), normed = m.input(full), scale = m.input(col), factor = m.input(row);
    const ValueId g = m.apply("multiply", {dy, scale}, full);
    const ValueId s1 = m.reduce(g, row), s2 = m.reduce(m.apply("multiply", {g, normed}, full), row);
    const ValueId dx =
        m.map({g, normed, s1, s2, factor},
              {literal(1.0 / double(cols)), node("multiply", {2, 5}), node("multiply", {3, 5}),
               node("multiply", {1, 7}), node("subtract", {0, 6}), node("subtract", {9, 8}), node("multiply", {10, 4})},
              full);
    const ValueId d_scale = m.reduce(m.apply("multiply", {dy, normed}, full), col);
    const ValueId d_bias = m.reduce(dy, col);
    const ValueId halved = m.map({d_bias}, {literal(0.5), node("multiply", {0, 1})}, col);
    const ValueId all = m.reduce(dy, {});
    for (ValueId id : {dx, d_scale, d_bias, halved, all}) m.output(id);
    expect_same(m, filled_inputs(m.program, random, 0.5, 2), 3e-5, {0, -1, -1, -1, -1});
  }
}

TEST(Fused, SoftmaxAndCrossEntropyOverTheLogits) {
  std::mt19937 random(3);
  for (const auto& [rows, cols] : kSizes) {
    const Shape full{{"r", rows}, {"c", cols}}, row{{"r", rows}};
    BodyMaker m;
    const ValueId logits = m.input(full), target = m.input(row, DType::kI32), weight = m.input({});
    const ValueId most = m.reduce(logits, row, Reduce::kMax);
    const ValueId e = m.map({logits, most}, {node("subtract", {0, 1}), node("exp", {2})}, full);
    const ValueId sum = m.reduce(e, row);
    const ValueId loss = m.map({sum, most}, {node("log", {0}), node("add", {2, 1})}, row);
    const ValueId mean = m.reduce(loss, {});
    const ValueId d = m.map({e, sum, target, weight},
                            {{.op = "index", .dtype = DType::kI32, .dim = "c"},
                             node("equal", {4, 2}, DType::kBool),
                             node("cast", {5}),
                             node("divide", {0, 1}),
                             node("subtract", {7, 6}),
                             node("multiply", {8, 3})},
                            full);
    for (ValueId id : {d, loss, mean}) m.output(id);
    expect_same(m, filled_inputs(m.program, random, 0, 5), 1e-5, {0, -1, -1});
  }
}

TEST(Fused, AdamInPlace) {
  std::mt19937 random(4);
  for (std::int64_t n : {1, 100, 5000, 40000}) {
    const Shape full{{"a", n}, {"b", 3}};
    BodyMaker m;
    const ValueId w = m.input(full), g = m.input(full), m1 = m.input(full), v = m.input(full), rate = m.input({});
    const auto mixed = [&](ValueId old, ValueId now, double beta) {
      return m.map(
          {old, now},
          {literal(beta), literal(1 - beta), node("multiply", {0, 2}), node("multiply", {1, 3}), node("add", {4, 5})},
          full);
    };
    const ValueId m2 = mixed(m1, g, 0.9), v2 = mixed(v, m.apply("square", {g}, full), 0.999);
    const ValueId w2 = m.map({w, m2, v2, rate},
                             {node("sqrt", {2}), literal(1e-6), node("add", {4, 5}), node("divide", {1, 6}),
                              node("multiply", {7, 3}), node("subtract", {0, 8})},
                             full);
    for (ValueId id : {m2, v2, w2}) m.output(id);
    expect_same(m, filled_inputs(m.program, random, 0.1, 2), 0, {2, 3, 0});  // no sums: the same bits
  }
}

TEST(Fused, TwoFunctionsInOneLoopAreRoundedAsTwo) {
  std::mt19937 random(10);
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {"multiply", "add"}, {"multiply", "subtract"}, {"multiply", "multiply"}, {"subtract", "multiply"}};
  const Shape full{{"r", 11}, {"c", 301}}, row{{"r", 11}}, col{{"c", 301}};
  for (const auto& [first, second] : pairs)
    for (const Shape& b : {full, row, col, Shape{}})
      for (const Shape& c : {full, row, col, Shape{}})
        for (bool turned : {false, true}) {
          BodyMaker m;
          const ValueId x = m.input(full), y = m.input(b), z = m.input(c);
          const ValueId t = m.apply(first, turned ? std::vector{y, x} : std::vector{x, y}, full);
          m.output(m.apply(second, turned ? std::vector{z, t} : std::vector{t, z}, full));
          expect_same(m, filled_inputs(m.program, random), 0);
        }
}

TEST(Fused, NarrowDtypesAreRoundedAtEveryNode) {
  std::mt19937 random(5);
  for (DType dtype : {DType::kBF16, DType::kF16}) {
    const Shape full{{"r", 13}, {"c", 1001}}, row{{"r", 13}};
    BodyMaker m;
    const ValueId x = m.input(full, dtype), y = m.input(full, DType::kF32);
    const ValueId narrow = m.map({y}, {{.op = "cast", .args = {0}, .dtype = dtype}}, full);
    const ValueId z =
        m.map({x, narrow},
              {node("multiply", {0, 1}, dtype), node("add", {2, 0}, dtype), node("subtract", {3, 1}, dtype)}, full);
    const ValueId most = m.reduce(z, row, Reduce::kMax);
    const ValueId wide = m.map({z}, {{.op = "cast", .args = {0}, .dtype = DType::kF32}}, full);
    for (ValueId id : {z, most, wide}) m.output(id);
    expect_same(m, filled_inputs(m.program, random), 0);
  }
}

TEST(Fused, IntegersBoolsAndDoubles) {
  std::mt19937 random(6);
  for (DType dtype : {DType::kI32, DType::kI64, DType::kU32, DType::kU8, DType::kF64}) {
    const Shape full{{"r", 7}, {"c", 130}}, row{{"r", 7}}, col{{"c", 130}};
    BodyMaker m;
    const ValueId x = m.input(full, dtype), y = m.input(row, dtype), flags = m.input(col, DType::kBool);
    const ValueId z = m.map({x, y},
                            {node("multiply", {0, 1}, dtype), node("add", {2, 1}, dtype),
                             node("maximum", {3, 0}, dtype), node("floordiv", {4, 1}, dtype)},
                            full);
    const ValueId less = m.apply("less", {x, z}, full, DType::kBool);
    const ValueId both = m.apply("logical_and", {less, flags}, full, DType::kBool);
    const ValueId chosen = m.map({both, x, z}, {{.op = "select", .args = {0, 1, 2}, .dtype = dtype}}, full);
    const ValueId per_row = m.reduce(chosen, row), per_col = m.reduce(chosen, col, Reduce::kMax);
    const ValueId product = m.reduce(x, row, Reduce::kProduct);
    const ValueId any = m.reduce(both, row, Reduce::kMax), all = m.reduce(both, col, Reduce::kMin);
    const ValueId as_float = m.map({chosen}, {{.op = "cast", .args = {0}, .dtype = DType::kF32}}, full);
    for (ValueId id : {chosen, per_row, per_col, product, any, all, as_float, less}) m.output(id);
    expect_same(m, filled_inputs(m.program, random, 1, 9, true), dtype == DType::kF64 ? 1e-14 : 0);
  }
}

// Random trees over whole numbers, which sums keep exact: all bits must agree.
class RandomBody {
 public:
  explicit RandomBody(unsigned seed) : random_(seed) {
    static constexpr std::int64_t kOdd[] = {1, 2, 3, 5, 17, 20};
    const auto size = [&] { return kOdd[random_() % std::size(kOdd)]; };
    full_ = {{"a", size()}, {"b", size()}, {"c", size()}, {"d", random_() % 5 == 0 ? 600 : size()}};
    border_ = 1 + random_() % 3;
    const std::vector<Dim>& dims = full_.dims();
    rows_ = Shape(std::vector<Dim>(dims.begin(), dims.begin() + border_));
    cols_ = Shape(std::vector<Dim>(dims.begin() + border_, dims.end()));
    for (int i = 0; i < 4; ++i) fulls_.push_back(maker.input(some_of(full_)));
    early_rows_.push_back(maker.input(some_of(rows_)));
    early_cols_.push_back(maker.input(some_of(cols_)));
    fulls_.push_back(map(full_, {fulls_[0], fulls_[1]}));
    for (int i = 0; i < 8; ++i) grow();
    maker.output(fulls_.back());
    for (std::size_t v = 0; v < maker.program.values.size(); ++v)
      if (is_result(static_cast<ValueId>(v)) && random_() % 3 == 0) maker.output(static_cast<ValueId>(v));
  }

  // Strided: dims in a random order in memory, with gaps.
  std::vector<Held> inputs() {
    std::vector<Held> out;
    for (const ProgramInput& input : maker.program.inputs) {
      const Value& value = maker.of(input.value);
      std::vector<Dim> order = value.shape.dims();
      if (random_() % 2) std::shuffle(order.begin(), order.end(), random_);
      out.push_back(held(value.shape, value.dtype, Shape(order), static_cast<std::int64_t>(random_() % 3)));
      for (std::int64_t i = 0; i < value.shape.elements(); ++i)
        set_number(out.back().view, i, static_cast<double>(random_() % 7) - 3);
    }
    return out;
  }

  BodyMaker maker;

 private:
  Shape some_of(const Shape& shape) {
    std::vector<Dim> dims;
    for (const Dim& dim : shape)
      if (random_() % 4 != 0) dims.push_back(dim);
    return Shape(dims);
  }

  bool is_result(ValueId id) const {
    for (const Instr& instr : maker.program.body)
      if (instr.outputs[0] == id) return true;
    return false;
  }

  ValueId pick(const std::vector<ValueId>& from) { return from[random_() % from.size()]; }

  // ((x op y) select z) mod 7: small and whole.
  ValueId map(const Shape& shape, const std::vector<ValueId>& from) {
    static const std::vector<std::string> kOps = {"add", "subtract", "multiply", "minimum", "maximum"};
    std::vector<ValueId> in = {pick(from), pick(from), pick(from)};
    std::vector<MapNode> nodes = {
        node(kOps[random_() % kOps.size()], {0, 1}),
        node("less", {3, 2}, DType::kBool),
        {.op = "index", .dtype = DType::kF32, .dim = shape.empty() ? "" : shape[random_() % shape.rank()].name},
        {.op = "select", .args = {4, 3, 5}, .dtype = DType::kF32},
        literal(7),
        node("mod", {6, 7})};
    if (shape.empty()) nodes[2] = literal(3);
    return maker.map(in, nodes, shape);
  }

  void grow() {
    const Reduce how = std::array{Reduce::kSum, Reduce::kMax, Reduce::kMin}[random_() % 3];
    std::vector<ValueId> any = fulls_;
    any.insert(any.end(), early_rows_.begin(), early_rows_.end());
    any.insert(any.end(), early_cols_.begin(), early_cols_.end());
    const ValueId full = *std::find_if(fulls_.rbegin(), fulls_.rend(), [&](ValueId id) { return is_result(id); });
    switch (random_() % 8) {
      case 0: early_rows_.push_back(maker.reduce(full, rows_, how)); break;
      case 1: late_cols_.push_back(maker.reduce(full, cols_, how)); break;
      case 2: scalars_.push_back(maker.reduce(full, {}, how)); break;
      case 3: early_rows_.push_back(map(rows_, early_rows_)); break;
      case 4: early_cols_.push_back(map(cols_, early_cols_)); break;
      case 5:
        if (!late_cols_.empty()) {
          std::vector<ValueId> late = late_cols_;
          late.insert(late.end(), scalars_.begin(), scalars_.end());
          late_cols_.push_back(map(cols_, late));
        }
        break;
      default: fulls_.push_back(map(full_, any)); break;
    }
    if (random_() % 4 == 0 && is_result(early_rows_.back()))
      scalars_.push_back(maker.reduce(early_rows_.back(), {}, how));
  }

  std::mt19937 random_;
  Shape full_, rows_, cols_;
  std::ptrdiff_t border_;
  std::vector<ValueId> fulls_, early_rows_, early_cols_, late_cols_, scalars_;
};

TEST(Fused, RandomBodiesGiveTheBitsOfTheReference) {
  int planned = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    RandomBody body(seed);
    if (!row_plan(body.maker.program)) continue;
    ++planned;
    expect_same(body.maker, body.inputs(), 0);
    if (HasFailure()) return;
  }
  EXPECT_GT(planned, 40);
}

TEST(Fused, SumsStayCloseToTheExactOnes) {
  std::mt19937 random(8);
  const Shape full{{"r", 2048}, {"c", 8192}};
  BodyMaker m;
  const ValueId x = m.input(full);
  m.output(m.reduce(x, {{"r", 2048}}));
  m.output(m.reduce(x, {{"c", 8192}}));
  m.output(m.reduce(x, {}));
  const std::vector<Held> inputs = filled_inputs(m.program, random, 0, 1);
  const ByValue<Held> want = run_reference(m.program, inputs);
  for (int workers : {1, 2}) {
    const std::vector<Held> got = run_fused(m.program, inputs, workers);
    for (std::size_t k = 0; k < 3; ++k) EXPECT_TRUE(same(got[k].view, want[ValueId(k + 1)].view, 5e-7));
  }
}

TEST(Fused, TheBitsAreThoseOfTheWorkerCountEveryTime) {
  std::mt19937 random(9);
  const Shape full{{"r", 999}, {"c", 257}};
  BodyMaker m;
  const ValueId x = m.input(full);
  m.output(m.reduce(m.apply("tanh", {x}, full), {{"c", 257}}));
  const std::vector<Held> inputs = filled_inputs(m.program, random);
  for (int workers : {1, 2, 3}) {
    const std::vector<Held> first = run_fused(m.program, inputs, workers);
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(same(run_fused(m.program, inputs, workers)[0].view, first[0].view));
  }
}

}  // namespace
}  // namespace weft::test::fused_test
