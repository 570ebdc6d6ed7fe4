// The decoder against the plain searches, on one processor and on meshes; MpiDecoder… also as ranks.
#include "weft/decode.h"

#include <gtest/gtest.h>

#include <fstream>

#include "decode/plain_search.h"
#include "errors/lines.h"
#include "support/processes.h"
#include "weft/detail/session_access.h"

namespace weft::test::decode_test {
namespace {

using decode::Decoder;
using decode::Hypothesis;
using models::Kind;
using models::Positions;
using models::TransformerOptions;

using Results = std::vector<std::vector<Hypothesis>>;

struct Deployment {
  std::string mesh, layout;
};
const std::vector<Deployment> kDeployments = {{"", ""},
                                              {"a:2", "batch:a"},
                                              {"a:2", "vocab:a heads:a d_ff:a"},
                                              {"a:2 b:2", "batch:a vocab:b d_ff:b heads:b"},
                                              {"a:4", "vocab:a heads:a"},
                                              {"a:2 b:2", "vocab:a d_ff:a heads:b"}};

TransformerOptions small(Kind kind, Positions positions = Positions::kLearned) {
  TransformerOptions o;
  o.kind = kind;
  o.vocab = 11;
  o.vocab_divisor = 4;
  o.d_model = 16;
  o.heads = 4;
  o.d_kv = 4;
  o.d_ff = 24;
  o.layers = 2;
  o.max_length = 16;
  o.positions = positions;
  o.buckets = 8;
  o.init = init::normal(0.6);  // far from even
  return o;
}

const std::vector<Ids> kPrompts = {{3, 4, 5}, {7}, {2, 9, 8, 6, 5}, {}, {10, 3}};
const std::vector<Ids> kInputs = {{3, 4, 5, 6, 7, 1}, {9, 1}, {2, 2, 8, 1}, {10, 9, 8, 7, 6, 1}, {5, 1}};

Session open(const Deployment& at) { return weft::test::open_session(Mesh::parse(at.mesh), {.seed = 7}); }

void expect_equal(const Hypothesis& got, const Hypothesis& want, const std::string& where) {
  EXPECT_EQ(got.ids, want.ids) << where;
  EXPECT_EQ(got.ended, want.ended) << where;
  EXPECT_EQ(got.end_token, want.end_token) << where;
  EXPECT_NEAR(got.score, want.score, 2e-5 * std::max(1.0, std::abs(want.score))) << where;
  ASSERT_EQ(got.log_probabilities.size(), want.log_probabilities.size()) << where;
  for (std::size_t i = 0; i < want.log_probabilities.size(); ++i)
    EXPECT_NEAR(got.log_probabilities[i], want.log_probabilities[i], 1e-4) << where << " token " << i;
}

// A decoder's results for the prompts and, of an encoder-decoder, the inputs.
Results decoded(Session& session, const TransformerOptions& model, const Deployment& at, std::int64_t prompt_length,
                const decode::Options& options, const std::vector<Ids>& prompts = kPrompts) {
  const bool two = model.kind == Kind::kEncoderDecoder;
  Decoder decoder(session, model, Layout::parse(at.layout), /*batch=*/4, two ? 6 : 0, prompt_length, options);
  return decoder.run(prompts, two ? kInputs : std::vector<Ids>{});
}

class DecoderModels : public ::testing::TestWithParam<TransformerOptions> {};

TEST_P(DecoderModels, GreedyEqualsThePlainChoice) {
  const TransformerOptions model = GetParam();
  Session session = open({});
  const bool two = model.kind == Kind::kEncoderDecoder;
  for (const auto& [never_end, ahead] : {std::pair{false, 1}, {true, 1}, {false, 3}, {true, 20}}) {
    const decode::Options options{.max_length = 12, .never_end = never_end, .ahead = ahead};
    NextToken next(session, model, {}, options.max_length, two ? 6 : 0);
    for (std::int64_t prompt_length : {0, 2, 5}) {
      const Results got = decoded(session, model, {}, prompt_length, options);
      ASSERT_EQ(got.size(), kPrompts.size());
      for (std::size_t r = 0; r < got.size(); ++r) {
        if (two) next.set_inputs(kInputs[r]);
        ASSERT_EQ(got[r].size(), 1u);
        expect_equal(got[r][0], plain_greedy(next, kPrompts[r], options), str("row ", r, " prompt ", prompt_length, " ahead ", ahead));
      }
    }
  }
}

// Every row has the list that it has alone, whatever its neighbours are.
TEST_P(DecoderModels, BeamsEqualThePlainSearch) {
  const TransformerOptions model = GetParam();
  Session session = open({});
  const bool two = model.kind == Kind::kEncoderDecoder;
  for (const bool early : {true, false}) {
    const decode::Options options{.max_length = 9, .beams = 3, .early_stop = early, .n_best = 3};
    NextToken next(session, model, {}, options.max_length, two ? 6 : 0);
    const Results all = decoded(session, model, {}, 2, options);
    for (std::size_t r = 0; r < kPrompts.size(); ++r) {
      if (two) next.set_inputs(kInputs[r]);
      const std::vector<Hypothesis>& got = all[r];
      const std::vector<Hypothesis> want = plain_beams(next, kPrompts[r], options);
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < got.size(); ++i) expect_equal(got[i], want[i], str("row ", r, " rank ", i));
    }
  }
}

const std::vector<decode::Options> kRules = {{.max_length = 12, .stop_tokens = {5, 9}},
                                             {.max_length = 12, .stop_tokens = {5}, .min_tokens = 4},
                                             {.max_length = 12, .repetition_penalty = 1.7},
                                             {.max_length = 12, .repetition_penalty = 0.6, .no_repeat_ngram = 3},
                                             {.max_length = 12, .no_repeat_ngram = 2},
                                             {.max_length = 12,
                                              .never_end = true,
                                              .stop_tokens = {4, 1, 4},
                                              .min_tokens = 3,
                                              .repetition_penalty = 1.2,
                                              .no_repeat_ngram = 2}};

TEST_P(DecoderModels, RulesEqualThePlainRules) {
  const TransformerOptions model = GetParam();
  const bool two = model.kind == Kind::kEncoderDecoder;
  bool any_differs = false;
  for (const std::int64_t beams : {1, 3}) {
    Session session = open({});
    NextToken next(session, model, {}, 12, two ? 6 : 0);
    for (std::size_t rule = 0; rule < kRules.size(); ++rule) {
      decode::Options options = kRules[rule];
      options.beams = options.n_best = beams;
      Decoder decoder(session, model, {}, 1, two ? 6 : 0, 2, options);
      for (std::size_t r = 0; r < kPrompts.size(); ++r) {
        if (two) next.set_inputs(kInputs[r]);
        const auto got = decoder.run({kPrompts[r]}, two ? std::vector<Ids>{kInputs[r]} : std::vector<Ids>{})[0];
        const auto want = beams == 1 ? std::vector{plain_greedy(next, kPrompts[r], options)}
                                     : plain_beams(next, kPrompts[r], options);
        const std::string where = str("rule ", rule, " row ", r, " beams ", beams);
        ASSERT_EQ(got.size(), want.size()) << where;
        for (std::size_t i = 0; i < got.size(); ++i) expect_equal(got[i], want[i], str(where, " rank ", i));
        any_differs = any_differs || got[0].ids != plain_greedy(next, kPrompts[r], {.max_length = 12}).ids;
      }
    }
  }
  EXPECT_TRUE(any_differs);
}

// More rows than slots: rows take the slots of rows that are done, and no row changes.
TEST_P(DecoderModels, RowsTakeTheSlotsOfOthers) {
  const TransformerOptions model = GetParam();
  const bool two = model.kind == Kind::kEncoderDecoder;
  std::vector<Ids> prompts, inputs;
  for (int i = 0; i < 3; ++i) {
    prompts.insert(prompts.end(), kPrompts.begin(), kPrompts.end());
    if (two) inputs.insert(inputs.end(), kInputs.begin(), kInputs.end());
  }
  for (const std::int64_t beams : {1, 3})
    for (const std::int64_t prompt_length : {0, 3}) {
      const decode::Options options{.max_length = 9, .beams = beams};
      Session alone = open({}), full = open({});
      Decoder one(alone, model, {}, 1, two ? 6 : 0, prompt_length, options),
          four(full, model, {}, 4, two ? 6 : 0, prompt_length, options);
      const Results want = one.run(prompts, inputs), got = four.run(prompts, inputs);
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t r = 0; r < want.size(); ++r) {
        ASSERT_EQ(got[r].size(), want[r].size());
        for (std::size_t i = 0; i < want[r].size(); ++i)
          expect_equal(got[r][i], want[r][i], str("row ", r, " beams ", beams, " prompt ", prompt_length));
      }
      EXPECT_EQ(four.speed().tokens, one.speed().tokens);
      EXPECT_EQ(four.speed().rows, 15);
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, DecoderModels,
                         ::testing::Values(small(Kind::kLanguageModel), small(Kind::kLanguageModel, Positions::kRotary),
                                           small(Kind::kLanguageModel, Positions::kRelativeShared),
                                           small(Kind::kEncoderDecoder, Positions::kSinusoid)));

void expect_equal(const Results& got, const Results& want, const std::string& where) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t r = 0; r < want.size(); ++r) {
    ASSERT_EQ(got[r].size(), want[r].size()) << where;
    for (std::size_t i = 0; i < want[r].size(); ++i) expect_equal(got[r][i], want[r][i], str(where, " row ", r));
  }
}

TEST(MpiDecoder, IsTheSameOnEveryLayout) {
  for (Kind kind : {Kind::kLanguageModel, Kind::kEncoderDecoder})
    for (const decode::Options& options :
         {decode::Options{.max_length = 10}, decode::Options{.max_length = 10, .beams = 4, .n_best = 2},
          decode::Options{.max_length = 10, .temperature = 1, .seed = 4},
          decode::Options{.max_length = 10, .temperature = 0.8, .top_k = 5, .top_p = 0.8},
          decode::Options{
              .max_length = 10, .stop_tokens = {6}, .min_tokens = 2, .repetition_penalty = 1.3, .no_repeat_ngram = 2},
          decode::Options{.max_length = 10, .temperature = 0.8, .min_tokens = 3, .repetition_penalty = 1.3},
          decode::Options{.max_length = 10,
          .beams = 4,
          .n_best = 2,
          .stop_tokens = {6},
          .min_tokens = 3,
          .repetition_penalty = 1.3,
          .no_repeat_ngram = 2}}) {
      Session alone = open({});
      const Results want = decoded(alone, small(kind), {}, 2, options);
      for (const Deployment& at : kDeployments) {
        if (!weft::test::can_have(Mesh::parse(at.mesh))) continue;
        Session session = open(at);
        expect_equal(decoded(session, small(kind), at, 2, options), want, at.mesh + " | " + at.layout);
      }
    }
}

// Rows with prefixes of one length go together; each sees all of its prefix.
TEST(Decoder, ReadsAPrefixWhole) {
  TransformerOptions model = small(Kind::kLanguageModel, Positions::kRelativeShared);
  model.prefix = true;
  const std::vector<Ids> prompts = {{3, 4, 1}, {8, 2, 1}, {5, 6, 7, 9, 1}, {10, 1}};
  const decode::Options options{.max_length = 12};
  Session session = open({});
  NextToken next(session, model, {}, options.max_length, 0);
  Decoder decoder(session, model, {}, 4, 0, 6, options);
  const Results got = decoder.run(prompts);
  for (std::size_t r = 0; r < prompts.size(); ++r)
    expect_equal(got.at(r).at(0), plain_greedy(next, prompts[r], options), str("row ", r));
  EXPECT_USER_ERROR(decoder.run({{2, 3, 4, 5, 6, 7, 1}}), "prompt 0 has 7 tokens; there is room for 6");
}

TEST(Decoder, SamplesDifferFromSeedToSeedAndRunToRun) {
  Session session = open({});
  const TransformerOptions model = small(Kind::kLanguageModel);
  const auto ids = [](const Results& results) {
    std::vector<Ids> all;
    for (const auto& row : results) all.push_back(row[0].ids);
    return all;
  };
  const decode::Options one{.max_length = 12, .temperature = 1.5, .seed = 1},
      two{.max_length = 12, .temperature = 1.5, .seed = 2};
  EXPECT_EQ(ids(decoded(session, model, {}, 0, one)), ids(decoded(session, model, {}, 0, one)));
  EXPECT_NE(ids(decoded(session, model, {}, 0, one)), ids(decoded(session, model, {}, 0, two)));
  Decoder decoder(session, model, {}, 4, 0, 0, one);
  EXPECT_NE(ids(decoder.run(kPrompts)), ids(decoder.run(kPrompts)));
}

TEST(Decoder, GivesEachRowItsNumberOfTokens) {
  Session session = open({});
  const std::vector<std::int64_t> tokens = {3, 0, 1, 5};
  Decoder decoder(session, small(Kind::kLanguageModel), {}, 2, 0, 3,
                  {.max_length = 9, .max_tokens = 4, .row_tokens = tokens, .never_end = true});
  const Results got = decoder.run({{2, 3}, {4}, {5, 6, 7}, {8}});
  const std::vector<std::size_t> expected = {3, 8, 1, 5};  // 0: up to max_length
  for (std::size_t r = 0; r < expected.size(); ++r) EXPECT_EQ(got.at(r).at(0).ids.size(), expected[r]) << r;
}

TEST(Decoder, TellsItsSpeed) {
  Session session = open({});
  Decoder decoder(session, small(Kind::kLanguageModel), {}, 2, 0, 3, {.max_length = 8, .never_end = true});
  EXPECT_EQ(decoder.speed().rows, 0);
  decoder.run({{2, 3, 4}, {5, 6, 7}, {8, 9, 10}});
  EXPECT_EQ(decoder.speed().rows, 3);
  EXPECT_EQ(decoder.speed().tokens, 3 * 5);
  EXPECT_EQ(decoder.speed().steps, 2 * 5);
  EXPECT_GT(decoder.speed().prefill_seconds, 0);
  EXPECT_GT(decoder.speed().decode_seconds, 0);
  EXPECT_EQ(decoder.speed().cache_bytes,
            2 * 2 * 8 * 16 * 2 * 4);  // layers, rows, positions, heads x d_kv, k and v, f32
  EXPECT_TRUE(decoder.run({}).empty());
}

// A slot is filled again as soon as its row is done. Listeners hear of a row by its number, whatever its slot is.
TEST(Decoder, KeepsItsSlotsFull) {
  Session session = open({});
  Decoder decoder(session, small(Kind::kLanguageModel), {}, 4, 0, 0,
                  {.max_length = 10, .max_tokens = 2, .never_end = true});
  std::vector<Ids> mixed;
  for (std::size_t i = 0; i < 30; ++i) mixed.push_back(Ids(i % 5 + 1, static_cast<std::int32_t>(2 + i % 7)));
  decoder.run(mixed);
  EXPECT_EQ(decoder.speed().steps, 39);  // 150 positions of all rows; batches that end together need 42
  std::vector<std::pair<std::size_t, std::int32_t>> heard;
  decoder.on_token([&](std::size_t row, std::int32_t id) { heard.emplace_back(row, id); });
  const Results got = decoder.run(mixed);
  for (std::size_t r = 0; r < mixed.size(); ++r) {
    Ids ids;
    for (const auto& [row, id] : heard)
      if (row == r) ids.push_back(id);
    EXPECT_EQ(ids, got[r][0].ids) << "row " << r;
  }
}

// The rule sees the generated tokens of its row. Its last token stays, and listeners hear it.
TEST(Decoder, StopsWhereTheRuleSays) {
  const TransformerOptions model = small(Kind::kLanguageModel);
  for (const std::int64_t beams : {1, 3}) {
    Session session = open({});
    Decoder decoder(session, model, {}, 2, 0, 1, {.max_length = 12, .beams = beams, .never_end = true, .ahead = 4});
    std::vector<Ids> heard(kPrompts.size());
    decoder.on_token([&](std::size_t row, std::int32_t id) { heard[row].push_back(id); });
    decoder.stop_when([](std::size_t row, std::span<const std::int32_t> ids) { return ids.size() == row + 1; });
    const Results got = decoder.run(kPrompts);
    std::int64_t tokens = 0;
    for (std::size_t r = 0; r < got.size(); ++r) {
      EXPECT_EQ(got[r][0].ids.size(), r + 1);
      EXPECT_EQ(got[r][0].log_probabilities.size(), r + 1);
      EXPECT_TRUE(got[r][0].ended);
      EXPECT_EQ(got[r][0].end_token, -1);
      tokens += static_cast<std::int64_t>(r) + 1;
      if (beams == 1) {
        EXPECT_EQ(heard[r], got[r][0].ids);
      }
    }
    EXPECT_EQ(decoder.speed().tokens, tokens);
  }
}

// Rows come as they are done, by their numbers; rows may be added while others are decoded.
TEST(Decoder, ReturnsRowsAsTheyAreDone) {
  const TransformerOptions model = small(Kind::kEncoderDecoder);
  Session session = open({});
  const decode::Options options{.max_length = 10};
  Decoder decoder(session, model, {}, 2, 6, 3, options);
  const Results want = decoder.run(kPrompts, kInputs);
  Results got(kPrompts.size());
  std::set<std::int64_t> steps;
  for (const decode::Finished& row : decoder.rows(kPrompts, kInputs)) {
    got[row.row] = row.hypotheses;
    steps.insert(decoder.speed().steps);
  }
  expect_equal(got, want, "rows()");
  EXPECT_GT(steps.size(), 2u);  // not all at the end
  EXPECT_FALSE(decoder.next());

  got.assign(kPrompts.size(), {});
  EXPECT_EQ(decoder.add(kPrompts[0], kInputs[0]), 0u);
  EXPECT_EQ(decoder.add(kPrompts[1], kInputs[1]), 1u);
  std::size_t added = 2;
  while (const std::optional<decode::Finished> row = decoder.next()) {
    got[row->row] = row->hypotheses;
    if (added < kPrompts.size()) {
      EXPECT_EQ(decoder.add(kPrompts[added], kInputs[added]), added);
      ++added;
    }
  }
  expect_equal(got, want, "add()");
  EXPECT_USER_ERROR(decoder.add({2}, {2, 2, 2, 2, 2, 2, 1}), "input 0 has 7 tokens; there is room for 6");

  decoder.add(kPrompts[0], kInputs[0]);
  for (const decode::Finished& row : decoder.rows(kPrompts, kInputs))
    if (row.row < kPrompts.size()) break;
  decoder.clear();  // after a loop that ended early
  EXPECT_FALSE(decoder.next());
  EXPECT_EQ(decoder.add(kPrompts[3], kInputs[3]), 0u);
  expect_equal(decoder.next()->hypotheses[0], want[3][0], "after clear()");
}

// Rows that begin alike are decoded as if each had read the beginning itself.
TEST(Decoder, ReadsASharedPrefixOnce) {
  const Ids prefix = {4, 9, 2, 7};
  std::vector<Ids> whole = kPrompts;
  for (Ids& prompt : whole) prompt.insert(prompt.begin(), prefix.begin(), prefix.end());
  for (const Positions positions : {Positions::kLearned, Positions::kRotary, Positions::kRelativeShared})
    for (const std::int64_t beams : {1, 3})
      for (const std::int64_t prompt_length : {0, 3, 9})
        for (const Deployment& at : {kDeployments[0], kDeployments[1], kDeployments[3]}) {
          const TransformerOptions model = small(Kind::kLanguageModel, positions);
          const decode::Options options{.max_length = 14, .beams = beams, .n_best = beams};
          Session session(Mesh::parse(at.mesh), wire::threads(), device::cpu(), {.seed = 7});
          Decoder decoder(session, model, Layout::parse(at.layout), 4, 0, prompt_length, options);
          const Results want = decoder.run(whole);
          decoder.set_prefix(prefix);
          expect_equal(decoder.run(kPrompts), want, str(at.layout, " prompt ", prompt_length));
          decoder.set_prefix({});
          expect_equal(decoder.run(whole), want, "without a prefix again");
        }
}

TEST(DecoderPrefix, IsRefusedIfItCannotBeShared) {
  Session session = open({});
  Decoder lm(session, small(Kind::kLanguageModel), {}, 2, 0, 2, {.max_length = 6}),
      both(session, small(Kind::kEncoderDecoder), {}, 2, 6, 2, {.max_length = 6});
  EXPECT_USER_ERROR(lm.set_prefix({2, 3, 4, 5, 6, 7}), "prompt 0 has 6 tokens; there is room for 5");
  EXPECT_USER_ERROR(both.set_prefix({2, 3}), "a prefix of 2 positions for all rows",
                    "give a length from 0 on, to a language model without inputs");
  lm.set_prefix({2, 3, 4});
  EXPECT_USER_ERROR(lm.run({{2, 3, 4}}), "prompt 0 has 6 tokens; there is room for 5");
}

// What is planned is what the session's executables have, on every mesh.
TEST(Decoder, PlansItsMemory) {
  for (const Deployment& at : {kDeployments[0], kDeployments[1], kDeployments[2]}) {
    const TransformerOptions model = small(Kind::kEncoderDecoder);
    const decode::Options options{.max_length = 10, .beams = 2};
    Session session(Mesh::parse(at.mesh), wire::threads());
    Decoder decoder(session, model, Layout::parse(at.layout), 4, 6, 3, options);
    const decode::DecoderMemory few = decode::planned_memory(model, session.mesh(), Layout::parse(at.layout), 4, 6, 3,
                                                             options),
                                many = decode::planned_memory(model, session.mesh(), Layout::parse(at.layout), 8, 6, 3,
                                                              options);
    EXPECT_EQ(2 * few.caches, many.caches);
    std::int64_t caches = 0, weights = 0;
    for (const std::string& name : session.variables())
      for (const detail::VariableShard& shard : detail::shards(session))
        if (shard.variable == name && shard.processor == ProcessorId(0))
          (name.starts_with("cache/") ? caches : weights) +=
              shard.elements() * static_cast<std::int64_t>(size_of(shard.dtype));
    EXPECT_EQ(few.caches, caches) << at.layout;
    EXPECT_EQ(few.weights, weights) << at.layout;
    EXPECT_GT(few.step_arena, 0);
    EXPECT_GT(few.prompt_arena, 0);
  }
}

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * 4096;
}

// Neither rows that have been returned nor passes over prompts leave anything behind.
TEST(Decoder, DoesNotGrowOverManyRows) {
  Session session = open({});
  Decoder decoder(session, small(Kind::kLanguageModel), {}, 32, 0, 8, {.max_length = 12, .max_tokens = 2});
  const auto prompt = [](std::size_t i) { return Ids(i * 7 % 9, static_cast<std::int32_t>(2 + i % 8)); };
  std::size_t added = 0, returned = 0;
  std::int64_t after_warmup = 0;
  for (; added < 64; ++added) decoder.add(prompt(added));
  while (decoder.next()) {
    ++returned;
    if (added < 10000) decoder.add(prompt(added++));
    if (returned == 2000) after_warmup = resident_bytes();
  }
  EXPECT_EQ(returned, 10000u);
  EXPECT_LT(resident_bytes() - after_warmup, 1 << 20);
}

// A row that has its tokens is done, whatever its neighbours still need; beams count the room in their penalty.
TEST(Decoder, EndsARowAtItsNumberOfTokens) {
  const TransformerOptions model = small(Kind::kLanguageModel);
  for (const std::int64_t beams : {1, 3}) {
    Session session = open({});
    const decode::Options few{.max_length = 12, .max_tokens = 4, .beams = beams, .never_end = beams == 1};
    NextToken next(session, model, {}, few.max_length, 0);
    Decoder decoder(session, model, {}, 2, 0, 1, few);
    const std::vector<Ids> prompts = {{3, 4, 5}, {7}};
    const Results got = decoder.run(prompts);
    for (std::size_t r = 0; r < prompts.size(); ++r) {
      decode::Options room = few;
      room.max_length = static_cast<std::int64_t>(prompts[r].size()) + 4;
      const Hypothesis want =
          beams == 1 ? plain_greedy(next, prompts[r], room) : plain_beams(next, prompts[r], room)[0];
      expect_equal(got[r][0], want, str("row ", r, " beams ", beams));
    }
    if (beams == 1) {
      EXPECT_EQ(decoder.speed().tokens, 8);
    }
  }
}

class DecodeErrors : public ::testing::Test {
 protected:
  const TransformerOptions model = small(Kind::kLanguageModel);
  Session session{Mesh()};

  Decoder make(const decode::Options& options, std::int64_t prompt_length = 0, std::int64_t inputs_length = 0) {
    return Decoder(session, model, {}, 2, inputs_length, prompt_length, options);
  }
};

TEST_F(DecodeErrors, OptionsOutOfRange) {
  EXPECT_USER_ERROR(Decoder(session, model, {}, 0, 0, 0),
                    lines("the option batch of decoding cannot be 0", here(), "give a whole number from 1 on"));
  EXPECT_USER_ERROR(make({.max_length = 0}), "the option max_length of decoding cannot be 0", "from 1 on");
  EXPECT_USER_ERROR(make({.max_tokens = -1}), "the option max_tokens of decoding cannot be -1", "from 0 on");
  EXPECT_USER_ERROR(make({.row_tokens = {3, -1}}), "the option row_tokens of decoding cannot be -1", "from 0 on");
  EXPECT_USER_ERROR(make({.max_length = 4}, 5), "the option prompt_length of decoding cannot be 5",
                    "give a whole number from 0 to max_length, which is 4");
  EXPECT_USER_ERROR(make({.temperature = -1}), "the option temperature of decoding cannot be -1");
  EXPECT_USER_ERROR(make({.ahead = -1}), "the option ahead of decoding cannot be -1", "from 0 on");
  EXPECT_USER_ERROR(make({.top_k = -1}), "the option top_k of decoding cannot be -1");
  EXPECT_USER_ERROR(make({.top_p = 0}), "the option top_p of decoding cannot be 0");
  EXPECT_USER_ERROR(make({.beams = 0}), "the option beams of decoding cannot be 0");
  EXPECT_USER_ERROR(make({.beams = 2, .alpha = -1}), "the option alpha of decoding cannot be -1");
  EXPECT_USER_ERROR(make({.n_best = 0}), "the option n_best of decoding cannot be 0", "give a whole number from 1 on");
  EXPECT_USER_ERROR(make({.beams = 2, .n_best = 3}), "the option n_best of decoding cannot be 3",
                    "search with as many beams: 3 (--beams 3); there are 2");
}

TEST_F(DecodeErrors, RulesOutOfRange) {
  EXPECT_USER_ERROR(make({.stop_tokens = {3, 12}}), "the stop token 12 is not in the vocabulary of 12 tokens",
                    "give ids from 0 to 11");
  EXPECT_USER_ERROR(make({.stop_tokens = {-1}}), "the stop token -1 is not in the vocabulary");
  EXPECT_USER_ERROR(make({.stop_tokens = Ids(65, 3)}), "decoding is given 65 stop tokens",
                    "give at most 64, or end rows by Decoder::stop_when");
  EXPECT_USER_ERROR(make({.min_tokens = -1}), "the option min_tokens of decoding cannot be -1", "from 0 on");
  EXPECT_USER_ERROR(make({.max_length = 9, .min_tokens = 10}), "the option min_tokens of decoding cannot be 10",
                    "give a whole number from 0 to max_length, which is 9");
  EXPECT_USER_ERROR(make({.max_length = 9, .max_tokens = 5, .min_tokens = 6}),
                    "give a whole number from 0 to max_tokens, which is 5");
  for (const double penalty : {0.0, -2.0, std::numeric_limits<double>::infinity()})
    EXPECT_USER_ERROR(make({.repetition_penalty = penalty}), "the option repetition_penalty of decoding cannot be",
                      "give a finite number above 0, such as 1.2; 1 changes nothing");
  EXPECT_USER_ERROR(make({.no_repeat_ngram = -1}), "the option no_repeat_ngram of decoding cannot be -1");
}

TEST_F(DecodeErrors, OptionsThatContradict) {
  EXPECT_USER_ERROR(make({.temperature = 1, .beams = 4}), "decoding is asked for 4 beams and for sampling",
                    "search with temperature 0 (--temperature 0), or sample with one beam (--beams 1)");
  EXPECT_USER_ERROR(make({}, 0, 6), "the decoder is made for inputs of length 6",
                    "give 0: only an encoder-decoder has inputs");
  EXPECT_USER_ERROR(Decoder(session, small(Kind::kEncoderDecoder), {}, 2, 0, 0),
                    lines("the decoder is made for inputs of length 0", here(),
                          "an encoder-decoder needs room for its inputs: give their most length"));
}

TEST_F(DecodeErrors, RowsThatDoNotFit) {
  Decoder decoder = make({.max_length = 4});
  EXPECT_USER_ERROR(decoder.run({{2}, {2, 3, 4, 5}}), lines("prompt 1 has 4 tokens; there is room for 3", here(),
                                                            "shorten it, or make the decoder for longer prompts"));
  EXPECT_USER_ERROR(decoder.run({{2, 12}}),
                    lines("prompt 0 holds the token 12, and the vocabulary has 12", here(),
                          "write the text with the vocabulary that the model was trained with"));
  EXPECT_USER_ERROR(decoder.run({{-1}}), "prompt 0 holds the token -1");
  Decoder limited = make({.max_length = 4, .row_tokens = {1, 2}});
  EXPECT_USER_ERROR(limited.run({{2}}), lines("decoding is given 1 rows and row_tokens of 2", here(),
                                              "give row_tokens a number for every row, or leave it empty"));
  EXPECT_USER_ERROR(decoder.run({{2}}, {{3}}), "decoding is given 1 prompts and 1 inputs",
                    "leave the inputs out: only an encoder-decoder has them");
}

TEST_F(DecodeErrors, InputsThatDoNotFit) {
  Decoder decoder(session, small(Kind::kEncoderDecoder), {}, 2, 3, 0, {.max_length = 4});
  EXPECT_USER_ERROR(decoder.run({{2}, {3}}, {{2, 1}}), "decoding is given 2 prompts and 1 inputs",
                    "give a row of inputs for every prompt");
  EXPECT_USER_ERROR(decoder.run({}, {{2, 3, 4, 1}}), "input 0 has 4 tokens; there is room for 3");
}

}  // namespace
}  // namespace weft::test::decode_test
