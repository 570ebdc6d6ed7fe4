// Decoding position by position gives the logits of whole sequences, for every kind of position, head and model.
#include <gtest/gtest.h>

#include "models/tiny.h"
#include "support/expect_error.h"
#include "weft/explain.h"

namespace weft::test::incremental_test {
namespace {

using models::Kind, models::Positions, models::TransformerOptions;

constexpr std::int64_t kBatch = 4, kLength = 6, kInputs = 4;

struct Variant {
  std::string name;
  std::function<void(TransformerOptions&)> change;
};
void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

const std::vector<Variant> kVariants = {
    {"Learned", [](auto&) {}},
    {"NoPositions", [](auto& o) { o.positions = Positions::kNone; }},
    {"Sinusoid", [](auto& o) { o.positions = Positions::kSinusoid; }},
    {"Rotary", [](auto& o) { o.positions = Positions::kRotary; }},
    {"Relative", [](auto& o) { o.positions = Positions::kRelative; }},
    {"RelativeShared", [](auto& o) { o.positions = Positions::kRelativeShared; }},
    {"RelativeContextual", [](auto& o) { o.positions = Positions::kRelativeContextual; }},
    {"MultiQuery", [](auto& o) { o.memory_heads = 1, o.positions = Positions::kRelativeContextual; }},
    {"Grouped", [](auto& o) { o.memory_heads = 2, o.positions = Positions::kRelative; }},
    {"SharedKv", [](auto& o) { o.shared_kv = true; }},
    {"SharedKvRotary", [](auto& o) { o.shared_kv = true, o.positions = Positions::kRotary; }},
    {"ExtraLogit", [](auto& o) { o.extra_logit = 0.3; }},
    {"FoldedTiedScaled", [](auto& o) { o.fold_scaling = o.tied = true, o.norm = models::Norm::kScale; }},
    {"AttentionBias", [](auto& o) { o.attention_bias = o.tied = true, o.tied_scale = false; }},
    {"EncoderDecoder", [](auto& o) { o.kind = Kind::kEncoderDecoder; }},
    {"EncoderDecoderGrouped",
     [](auto& o) { o.kind = Kind::kEncoderDecoder, o.memory_heads = 2, o.positions = Positions::kRelativeShared; }},
    {"EncoderDecoderBias", [](auto& o) { o.kind = Kind::kEncoderDecoder, o.attention_bias = true; }},
    {"EncoderDecoderMultiQuery",
     [](auto& o) {
       o.kind = Kind::kEncoderDecoder, o.memory_heads = 1, o.positions = Positions::kRotary;
       o.shared_embedding = false, o.decoder_layers = 1, o.extra_logit = 0;
     }},
    {"EncoderDecoderSharedKv", [](auto& o) { o.kind = Kind::kEncoderDecoder, o.shared_kv = true; }},
};

// One row of tokens for each row and beam; none is padding.
Array path(std::int64_t rows, const std::string& length) {
  Array x({{"batch", rows}, {length, kLength}}, DType::kI32);
  for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, 2 + static_cast<double>((5 * i + i / kLength * 3) % 9));
  return x;
}

// Row r of a batch in which each row occurs `times` times.
Array repeated(const Array& x, std::int64_t times) {
  const std::int64_t width = x.shape()[1].size, rows = x.shape()[0].size * times;
  Array y({{"batch", rows}, x.shape()[1]}, x.dtype());
  for (std::int64_t i = 0; i < y.elements(); ++i) y.set(i, x.at(i / width / times * width + i % width));
  return y;
}

class Decoding {
 public:
  Decoding(const TransformerOptions& o, const Where& where, std::int64_t beams, std::int64_t prompt_length,
           std::int64_t prompts = 0)
      : options_(o),
        sizes_{.batch = kBatch,
               .beams = beams,
               .length = kLength,
               .prompt_length = prompt_length,
               .inputs_length = both() ? kInputs : 0,
               .prompts = prompts},
        session_(Mesh::parse(where.mesh), wire::threads(), device::reference(), {.seed = 3}),
        layout_(Layout::parse(where.layout)) {
    if (!prefill_.updates.empty())
      read_ = session_.compile(prefill_.graph, layout_, {.update = prefill_.updates, .compute_as = DType::kF64});
  }

  bool both() const { return options_.kind == Kind::kEncoderDecoder; }
  Array inputs() const { return feature("inputs", {{"batch", kBatch}, {"inputs_length", kInputs}}); }

  void read(const Array* prompt) {
    Feeds feeds;
    if (both()) feeds.emplace_back(prefill_.inputs, inputs());
    if (prompt) feeds.emplace_back(prefill_.targets, *prompt);
    if (read_) read_->run(feeds);
  }

  // Of the given rows; a row out of range is padding. The prompts and inputs of all rows are given.
  void read_some(const Array* prompt, const std::vector<double>& slots) {
    const auto rows = [&](const Array& all, const Tensor& to) {
      const std::int64_t width = all.shape()[1].size, read = to.shape()[1].size;
      Array some(to.shape(), DType::kI32);
      for (std::int64_t i = 0; i < some.elements(); ++i) {
        const auto slot = static_cast<std::int64_t>(slots[static_cast<std::size_t>(i / read)]);
        if (slot >= 0 && slot < all.shape()[0].size) some.set(i, all.at(slot * width + i % read));
      }
      return some;
    };
    Feeds feeds = {{prefill_.slots, Array(prefill_.slots.shape(), slots, DType::kI32)}};
    if (both()) feeds.emplace_back(prefill_.inputs, rows(inputs(), prefill_.inputs));
    if (prompt) feeds.emplace_back(prefill_.targets, rows(*prompt, prefill_.targets));
    read_->run(feeds);
  }

  Array step(const std::vector<double>& tokens, const std::vector<double>& parents, std::int64_t position) {
    return step(tokens, parents, std::vector<double>(kBatch, static_cast<double>(position)));
  }
  Array step(const std::vector<double>& tokens, const std::vector<double>& parents,
             const std::vector<double>& positions) {
    Feeds feeds = {{step_.tokens, Array(step_.tokens.shape(), tokens, DType::kI32)},
                   {step_.position, Array(step_.position.shape(), positions, DType::kI32)}};
    if (step_.parents) feeds.emplace_back(step_.parents, Array(step_.parents.shape(), parents, DType::kI32));
    return next_.run(feeds)[step_.logits];
  }

  // Of whole sequences, [batch * beams, length, vocab].
  Array score(const Array& targets) {
    models::SequenceGraph whole = models::scoring_graph(
        options_, {.batch = targets.shape()[0].size, .length = kLength, .inputs_length = sizes_.inputs_length});
    Executable run = session_.compile(whole.graph, layout_, {.fetch = {whole.logits}, .compute_as = DType::kF64});
    Feeds feeds = {{whole.features.at("targets"), targets}};
    if (both()) feeds.emplace_back(whole.features.at("inputs"), repeated(inputs(), sizes_.beams));
    return run.run(feeds)[whole.logits];
  }

 private:
  TransformerOptions options_;
  models::DecodeSizes sizes_;
  Session session_;
  Layout layout_;
  models::PrefillGraph prefill_ = models::prefill_graph(options_, sizes_);
  models::StepGraph step_ = models::step_graph(options_, sizes_);
  std::optional<Executable> read_;
  Executable next_ = session_.compile(step_.graph, layout_,
                                      {.fetch = {step_.logits}, .update = step_.updates, .compute_as = DType::kF64});
};

// The rows of `whole` [rows, length, vocab] at one position.
std::vector<double> at_position(const Array& whole, std::int64_t position) {
  const std::int64_t vocab = whole.shape()[2].size;
  std::vector<double> values;
  for (std::int64_t row = 0; row < whole.shape()[0].size; ++row)
    for (std::int64_t v = 0; v < vocab; ++v) values.push_back(whole.at((row * kLength + position) * vocab + v));
  return values;
}

void expect_near(const Array& got, const std::vector<double>& want, std::int64_t position) {
  ASSERT_EQ(static_cast<std::size_t>(got.elements()), want.size());
  double most = 0;
  for (std::size_t i = 0; i < want.size(); ++i)
    most = std::max(most, std::abs(got.at(static_cast<std::int64_t>(i)) - want[i]));
  EXPECT_LE(most, 1e-9) << "position " << position;
}

std::vector<double> tokens_before(const Array& path, std::int64_t position) {
  std::vector<double> tokens;
  for (std::int64_t row = 0; row < path.shape()[0].size; ++row)
    tokens.push_back(position == 0 ? 0 : path.at(row * kLength + position - 1));
  return tokens;
}

class Incremental : public ::testing::TestWithParam<std::tuple<Variant, std::size_t>> {
 protected:
  TransformerOptions options() const {
    TransformerOptions o = tiny();
    std::get<0>(GetParam()).change(o);
    return o;
  }
  Where where() const { return places()[std::get<1>(GetParam())]; }
};

TEST_P(Incremental, PositionByPosition) {
  Decoding decoding(options(), where(), 1, 0);
  decoding.read(nullptr);
  const Array targets = path(kBatch, "length"), want = decoding.score(targets);
  for (std::int64_t p = 0; p < kLength; ++p)
    expect_near(decoding.step(tokens_before(targets, p), {}, p), at_position(want, p), p);
}

// All beams begin with what the prompt left.
TEST_P(Incremental, AfterAPrompt) {
  constexpr std::int64_t kBeams = 2, kPrompt = 4;
  Decoding decoding(options(), where(), kBeams, kPrompt);
  const Array targets = path(kBatch, "length"), all = repeated(targets, kBeams), want = decoding.score(all);
  Array prompt({{"batch", kBatch}, {"length", kPrompt}}, DType::kI32);
  for (std::int64_t i = 0; i < prompt.elements(); ++i) prompt.set(i, targets.at(i / kPrompt * kLength + i % kPrompt));
  decoding.read(&prompt);
  std::vector<double> parents;
  for (std::int64_t row = 0; row < kBatch * kBeams; ++row) parents.push_back(static_cast<double>(row % kBeams));
  for (std::int64_t p = kPrompt - 1; p < kLength; ++p)
    expect_near(decoding.step(tokens_before(all, p), parents, p), at_position(want, p), p);
}

// Rows are read into any slots, for all beams, even after other rows have left their caches and sources there.
TEST_P(Incremental, AfterAPromptInOtherSlots) {
  constexpr std::int64_t kBeams = 2, kPrompt = 4;
  if (kBatch % Mesh::parse(where().mesh).size() != 0) GTEST_SKIP() << "the rows cannot be split";
  Decoding decoding(options(), where(), kBeams, kPrompt, kBatch);
  const Array targets = path(kBatch, "length"), all = repeated(targets, kBeams), want = decoding.score(all);
  Array prompt({{"batch", kBatch}, {"length", kPrompt}}, DType::kI32), other = prompt;
  for (std::int64_t i = 0; i < prompt.elements(); ++i) {
    prompt.set(i, targets.at(i / kPrompt * kLength + i % kPrompt));
    other.set(i, 2 + static_cast<double>(i % 3));
  }
  std::vector<double> same, turned;
  for (std::int64_t row = 0; row < kBatch * kBeams; ++row) {
    same.push_back(static_cast<double>(row % kBeams));
    turned.push_back(static_cast<double>((row + 1) % kBeams));
  }
  decoding.read_some(&other, {0, 1, 2, 3});
  for (std::int64_t p = 0; p < kLength; ++p) decoding.step(tokens_before(all, p), turned, p);
  decoding.read_some(&prompt, {2, -1, 0, 4});
  decoding.read_some(&prompt, {3, 1, -1, -1});
  for (std::int64_t p = kPrompt - 1; p < kLength; ++p)
    expect_near(decoding.step(tokens_before(all, p), same, p), at_position(want, p), p);
}

// Rows begin one after another, in groups whose prompts are read while other rows are at later positions.
TEST_P(Incremental, RowsAtTheirOwnPositions) {
  constexpr std::int64_t kPrompt = 2, kGroup = 2;
  if (kGroup % Mesh::parse(where().mesh).size() != 0) GTEST_SKIP() << "a group cannot be split";
  Decoding decoding(options(), where(), 1, kPrompt, kGroup);
  const Array targets = path(kBatch, "length"), want = decoding.score(targets);
  Array prompt({{"batch", kBatch}, {"length", kPrompt}}, DType::kI32);
  for (std::int64_t i = 0; i < prompt.elements(); ++i) prompt.set(i, targets.at(i / kPrompt * kLength + i % kPrompt));
  std::vector<std::int64_t> at(kBatch, -1);  // the positions of rows that have begun
  for (std::int64_t time = 0; time < kLength; ++time) {
    if (time % 2 == 0 && time / 2 < kBatch / kGroup) {
      const std::int64_t first = time / 2;  // rows 0 and 2, then 1 and 3
      decoding.read_some(&prompt, {static_cast<double>(first + kGroup), static_cast<double>(first)});
      for (std::int64_t r = 0; r < kGroup; ++r)  // a row may begin before the end of its prompt
        at[static_cast<std::size_t>(first + kGroup * r)] = kPrompt - r;
    }
    std::vector<double> tokens, positions;
    for (std::int64_t row = 0; row < kBatch; ++row) {
      const std::int64_t position = std::max<std::int64_t>(at[static_cast<std::size_t>(row)], 0);
      positions.push_back(static_cast<double>(position));
      tokens.push_back(position == 0 ? 0 : targets.at(row * kLength + position - 1));
    }
    const Array got = decoding.step(tokens, {}, positions);
    const std::int64_t vocab = want.shape()[2].size;
    for (std::int64_t row = 0; row < kBatch; ++row) {
      std::int64_t& position = at[static_cast<std::size_t>(row)];
      if (position < 0 || position >= kLength) continue;
      double most = 0;
      for (std::int64_t v = 0; v < vocab; ++v)
        most = std::max(most, std::abs(got.at(row * vocab + v) - want.at((row * kLength + position) * vocab + v)));
      EXPECT_LE(most, 1e-9) << "row " << row << ", position " << position;
      ++position;
    }
  }
}

// Each beam goes on from another one's caches; what it has read in the end is what it is scored by.
TEST_P(Incremental, WithBeamsThatTurnIntoOthers) {
  constexpr std::int64_t kBeams = 2;
  Decoding decoding(options(), where(), kBeams, 0);
  decoding.read(nullptr);
  const Array fresh = path(kBatch * kBeams, "length");
  std::vector<std::vector<double>> read(kBatch * kBeams);  // per beam, the tokens so far
  std::vector<std::vector<double>> got;
  for (std::int64_t p = 0; p < kLength; ++p) {
    std::vector<double> parents, tokens;
    const auto before = read;
    for (std::int64_t row = 0; row < kBatch * kBeams; ++row) {
      const std::int64_t beam = row % kBeams, parent = p % 3 == 2 ? 1 - beam : p % 3 == 1 ? 1 : beam;
      parents.push_back(static_cast<double>(parent));
      read[static_cast<std::size_t>(row)] = before[static_cast<std::size_t>(row - beam + parent)];
      if (p > 0) read[static_cast<std::size_t>(row)].push_back(fresh.at(row * kLength + p - 1));
      tokens.push_back(p == 0 ? 0 : read[static_cast<std::size_t>(row)].back());
    }
    got.push_back(decoding.step(tokens, parents, p).values());
  }
  Array targets = fresh;
  for (std::int64_t i = 0; i < targets.elements(); ++i)
    if (i % kLength < kLength - 1)
      targets.set(i, read[static_cast<std::size_t>(i / kLength)][static_cast<std::size_t>(i % kLength)]);
  const std::vector<double> want = at_position(decoding.score(targets), kLength - 1);
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got.back()[i], want[i], 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Variants, Incremental,
                         ::testing::Combine(::testing::ValuesIn(kVariants),
                                            ::testing::Range(std::size_t{0}, places().size())),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + "_" + std::to_string(std::get<1>(info.param));
                         });

// Inputs of unlike lengths, each with its end; what comes after sees all of them, and they each other.
TEST(IncrementalPrefix, SeesTheInputsWhole) {
  for (const Positions positions : {Positions::kLearned, Positions::kRelativeShared})
    for (const Where& where : {places()[0], places()[2]}) {
      TransformerOptions o = tiny();
      o.prefix = true, o.positions = positions;
      constexpr std::int64_t kPrompt = 3;
      Decoding decoding(o, where, 1, kPrompt);
      Array targets = path(kBatch, "length"), prompt({{"batch", kBatch}, {"length", kPrompt}}, DType::kI32);
      for (std::int64_t b = 0; b < kBatch; ++b) {
        const std::int64_t inputs = 1 + b % 3;  // with their end
        targets.set(b * kLength + inputs - 1, 1);
        for (std::int64_t l = 0; l < inputs; ++l) prompt.set(b * kPrompt + l, targets.at(b * kLength + l));
      }
      const Array want = decoding.score(targets);
      decoding.read(&prompt);
      for (std::int64_t p = 1; p < kLength; ++p)
        expect_near(decoding.step(tokens_before(targets, p), {}, p), at_position(want, p), p);
    }
}

// One position is written, not the caches: what a step needs beside its variables is less than one of them.
TEST(IncrementalCaches, AreWrittenInPlace) {
  for (const std::int64_t beams : {1, 4})
    for (const Where& where : {Where{"", ""}, Where{"x:2", "batch:x"}, Where{"x:2", "heads,d_ff,vocab:x"}}) {
      TransformerOptions o = tiny();
      o.max_length = 40;
      const models::DecodeSizes sizes{.batch = 8, .beams = beams, .length = 40};
      const models::StepGraph step = models::step_graph(o, sizes);
      const Mesh mesh = Mesh::parse(where.mesh);
      const Explanation explained = explain(step.graph, mesh, Layout::parse(where.layout),
                                            {.fetch = {step.logits}, .update = step.updates}, Machine::uniform(1e9, 1e9));
      const std::int64_t cache = sizes.batch * beams * sizes.length * o.heads * o.d_kv * 4 / mesh.size();
      EXPECT_LT(explained.arena_bytes, cache) << where.layout << ", beams " << beams;
    }
}

TEST(IncrementalCaches, BeamsStayOnOneProcessor) {
  const models::StepGraph step = models::step_graph(tiny(), {.batch = 2, .beams = 4, .length = 6});
  EXPECT_USER_ERROR(explain(step.graph, Mesh::parse("x:2"), Layout::parse("beams:x"),
                            {.fetch = {step.logits}, .update = step.updates}, Machine::uniform(1e9, 1e9)),
                    "needs dim 'beams' whole, but it is split over axis 'x'");
}

}  // namespace
}  // namespace weft::test::incremental_test
