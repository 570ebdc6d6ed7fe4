// The golden decoders, position by position: logits of a given path, and the likeliest tokens after a prompt.
#include <gtest/gtest.h>

#include "golden/transformers.h"

namespace weft::test::incremental_test {
namespace {

constexpr double kLogits = 3e-5;
constexpr int kEnd = 1;

const GoldenFolder& folder() {
  static const GoldenFolder kFolder("decode");
  return kFolder;
}

const std::vector<Where> kPlaces = {
    {"OneProcessor", "", ""},
    {"Data2", "data:2", "batch:data"},
    {"Data4", "data:4", "batch:data"},
    {"Model2", "model:2", "heads,d_ff,vocab:model"},
    {"Hidden2", "m:2", "d_model:m"},
    {"Data2Model2", "data:2 model:2", "batch:data heads,d_ff,vocab:model"},
    {"Rows2Cols2", "rows:2 cols:2", "batch:rows vocab,d_ff:cols"},
};

// One session with both graphs and the golden weights.
class GoldenDecoders : public GoldenCaseTest {
 protected:
  struct PendingRun {
    models::PrefillGraph prefill;
    models::StepGraph step;
    Session session;
    std::optional<Executable> read;
    Executable next;
  };

  PendingRun started(std::int64_t prompt_length) const {
    const models::DecodeSizes sizes{.batch = golden_.size("batch"),
                                    .length = length_,
                                    .prompt_length = prompt_length,
                                    .inputs_length = golden_.both() ? golden_.size("enc_length") : 0};
    const models::PrefillGraph prefill = models::prefill_graph(golden_.options(), sizes);
    const models::StepGraph step = models::step_graph(golden_.options(), sizes);
    Session session = open();
    std::optional<Executable> read;
    if (!prefill.updates.empty()) read = session.compile(prefill.graph, layout_, {.update = prefill.updates});
    Executable next = session.compile(step.graph, layout_, {.fetch = {step.logits}, .update = step.updates});
    golden_.set_weights(session);
    return {prefill, step, session, read, next};
  }

  void read(PendingRun& r, const Array* prompt) const {
    Feeds feeds;
    if (golden_.both()) feeds.emplace_back(r.prefill.inputs, golden_.read("inputs", {"batch", "inputs_length"}));
    if (prompt) feeds.emplace_back(r.prefill.targets, *prompt);
    if (r.read) r.read->run(feeds);
  }

  // The logits of the target at `position` of each row.
  Array logits(PendingRun& r, const Array& path, std::int64_t position) const {
    Array tokens(r.step.tokens.shape(), DType::kI32);
    for (std::int64_t b = 0; b < tokens.elements(); ++b)
      tokens.set(b, position == 0 ? 0 : path.at(b * length_ + position - 1));
    Array positions(r.step.position.shape(), DType::kI32);
    for (std::int64_t b = 0; b < positions.elements(); ++b) positions.set(b, static_cast<double>(position));
    const Feeds feeds = {{r.step.tokens, tokens}, {r.step.position, positions}};
    return r.next.run(feeds)[r.step.logits];
  }

  // The likeliest tokens from each row's own place on; zeros after the first end that was made.
  Array greedy(const Array& prompt, std::int64_t prompt_length) const {
    PendingRun r = started(prompt_length);
    Array path = prompt;
    std::vector<bool> ended(static_cast<std::size_t>(golden_.size("batch")));
    std::int64_t first = length_;
    for (std::size_t b = 0; b < ended.size(); ++b) first = std::min(first, given(prompt, b));
    if (prompt_length > 0) {
      Array cut({{"batch", golden_.size("batch")}, {"length", prompt_length}}, DType::kI32);
      for (std::int64_t i = 0; i < cut.elements(); ++i)
        cut.set(i, prompt.at(i / prompt_length * length_ + i % prompt_length));
      read(r, &cut);
    } else {
      read(r, nullptr);
      first = 0;
    }
    for (std::int64_t p = first; p < length_; ++p) {
      const Array scores = logits(r, path, p);
      const std::int64_t vocab = scores.shape().dims().back().size;
      for (std::size_t b = 0; b < ended.size(); ++b) {
        if (p < given(prompt, b) || ended[b]) continue;
        const std::int64_t row = static_cast<std::int64_t>(b);
        std::int64_t best = 0;
        for (std::int64_t v = 0; v < vocab; ++v)
          if (scores.at(row * vocab + v) > scores.at(row * vocab + best)) best = v;
        path.set(row * length_ + p, static_cast<double>(best));
        ended[b] = best == kEnd;
      }
    }
    return path;
  }

  std::int64_t given(const Array& prompt, std::size_t row) const {
    std::int64_t n = 0;
    while (n < length_ && prompt.at(static_cast<std::int64_t>(row) * length_ + n) != 0) ++n;
    return n;
  }
  std::int64_t longest(const Array& prompt) const {
    std::int64_t n = 0;
    for (std::size_t b = 0; b < static_cast<std::size_t>(golden_.size("batch")); ++b) n = std::max(n, given(prompt, b));
    return n;
  }

  const GoldenTransformer golden_{folder(), name_};
  const std::int64_t length_ = golden_.size("length");
};

TEST_P(GoldenDecoders, LogitsOfAPath) {
  const Array path = golden_.read("greedy_never_end", {"batch", "length"});
  const Array want = golden_.read("logits", {"batch", "length", "vocab"});
  double largest = 0, most = 0;
  for (const double x : want.values()) largest = std::max(largest, std::abs(x));
  PendingRun r = started(0);
  read(r, nullptr);
  const std::int64_t vocab = want.shape()[2].size;
  for (std::int64_t p = 0; p < length_; ++p) {
    const Array got = logits(r, path, p);
    for (std::int64_t i = 0; i < got.elements(); ++i)
      most = std::max(most, std::abs(got.at(i) - want.at((i / vocab * length_ + p) * vocab + i % vocab)));
  }
  EXPECT_LE(most, kLogits * largest);
}

TEST_P(GoldenDecoders, Greedy) {
  const Array prompt = golden_.read("prompt", {"batch", "length"});
  const Array want = golden_.read("greedy", {"batch", "length"});
  EXPECT_EQ(greedy(prompt, longest(prompt)).values(), want.values());
  EXPECT_EQ(greedy(prompt, 0).values(), want.values());  // the prompt read position by position
  if (golden_.both()) return;
  EXPECT_EQ(greedy(prompt, length_).values(), want.values());
  const Array nothing(prompt.shape(), DType::kI32);
  EXPECT_EQ(greedy(nothing, 0).values(), golden_.read("greedy_no_prompt", {"batch", "length"}).values());
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenDecoders,
                         ::testing::Combine(::testing::ValuesIn(folder().names("models")),
                                            ::testing::ValuesIn(kPlaces)),
                         case_name);

}  // namespace
}  // namespace weft::test::incremental_test
