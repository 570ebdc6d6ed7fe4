// The golden decodings: greedy, with prompts, without and never ending, and by beam search, on one processor and on
// meshes; with WEFT_TEST_WIRE=mpi on the ranks of mpirun.
#include <gtest/gtest.h>

#include <cmath>

#include "golden/transformers.h"
#include "weft/decode.h"

namespace weft::test::decode_test {
namespace {

constexpr double kScore = 3e-5;

using Ids = std::vector<std::int32_t>;
using Results = std::vector<std::vector<decode::Hypothesis>>;

const GoldenFolder& folder() {
  static const GoldenFolder kFolder("decode");
  return kFolder;
}

const std::vector<Where> kPlaces = {
    {"OneProcessor", "", ""},
    {"Data2", "data:2", "batch:data"},
    {"Data4", "data:4", "batch:data"},
    {"Model2", "model:2", "heads,d_ff,vocab:model"},
    {"Vocab4", "model:4", "vocab,d_ff:model"},
    {"Hidden2", "m:2", "d_model:m"},
    {"Data2Model2", "data:2 model:2", "batch:data heads,d_ff,vocab:model"},
    {"Rows2Cols2", "rows:2 cols:2", "heads,d_ff,vocab:rows d_model:cols"},
};

class GoldenDecode : public GoldenCaseTest {
 protected:
  std::vector<Ids> rows(const std::string& tensor) const {
    const Array all = golden_.read(tensor, {"batch", "length"});
    const std::int64_t length = all.shape()[1].size;
    std::vector<Ids> rows(static_cast<std::size_t>(all.shape()[0].size));
    for (std::int64_t i = 0; i < all.elements(); ++i)
      rows[static_cast<std::size_t>(i / length)].push_back(static_cast<std::int32_t>(all.at(i)));
    return rows;
  }
  std::vector<Ids> prompts() const {
    std::vector<Ids> all = rows("prompt");
    for (Ids& row : all) row.erase(std::find(row.begin(), row.end(), 0), row.end());
    return all;
  }

  Results decode(const decode::Options& options, std::int64_t prompt_length, const std::vector<Ids>& prompts) const {
    Session session = open();
    const std::int64_t inputs_length = golden_.both() ? golden_.size("enc_length") : 0;
    decode::Decoder decoder(session, golden_.options(), layout_, golden_.size("batch"), inputs_length, prompt_length,
                            options);
    golden_.set_weights(session);
    return decoder.run(prompts, golden_.both() ? rows("inputs") : std::vector<Ids>{});
  }

  // The prompt, what was generated and its end, then zeros.
  Ids whole(Ids row, const decode::Hypothesis& found) const {
    row.insert(row.end(), found.ids.begin(), found.ids.end());
    if (found.ended) row.push_back(1);
    row.resize(static_cast<std::size_t>(golden_.size("length")), 0);
    return row;
  }
  void expect_rows(const Results& got, const std::vector<Ids>& prompts, const std::string& tensor) const {
    const std::vector<Ids> want = rows(tensor);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t r = 0; r < want.size(); ++r) EXPECT_EQ(whole(prompts[r], got[r].at(0)), want[r]) << tensor << r;
  }

  const GoldenTransformer golden_{folder(), name_};
  const std::int64_t length_ = golden_.size("length");
};

TEST_P(GoldenDecode, Greedy) {
  for (std::int64_t prompt_length : {0, 3})
    expect_rows(decode({.max_length = length_}, prompt_length, prompts()), prompts(), "greedy");
}

TEST_P(GoldenDecode, GreedyWithoutPrompt) {
  if (golden_.both()) GTEST_SKIP() << "has no prompts";
  const std::vector<Ids> none(prompts().size());
  expect_rows(decode({.max_length = length_}, 0, none), none, "greedy_no_prompt");
}

TEST_P(GoldenDecode, NeverEnd) {
  expect_rows(decode({.max_length = length_, .never_end = true}, 2, prompts()), prompts(), "greedy_never_end");
}

TEST_P(GoldenDecode, Beams) {
  const std::int64_t beams = folder().about.at("config").at("beam");
  const double alpha = folder().about.at("config").at("alpha");
  const std::vector<Ids> none(prompts().size());
  const decode::Options options{.max_length = length_, .beams = beams, .alpha = alpha, .n_best = beams};
  const Results got = decode(options, 0, none);
  decode::Options to_the_end = options;
  to_the_end.early_stop = false;
  const Results complete = decode(to_the_end, 0, none);
  const Array ids = golden_.read("beam_ids", {"batch", "beams", "length"});
  const Array scores = golden_.read("beam_scores", {"batch", "beams"});
  for (std::int64_t r = 0; r < golden_.size("batch"); ++r) {
    std::size_t rank = 0;
    for (std::int64_t k = 0; k < beams; ++k) {
      const double score = scores.at(r * beams + k);
      if (score < -1e6) continue;  // an empty slot
      Ids row;
      for (std::int64_t l = 0; l < length_; ++l)
        row.push_back(static_cast<std::int32_t>(ids.at((r * beams + k) * length_ + l)));
      const std::vector<decode::Hypothesis>& found = got.at(static_cast<std::size_t>(r));
      ASSERT_LT(rank, found.size()) << "row " << r;
      EXPECT_EQ(whole({}, found[rank]), row) << "row " << r << " rank " << rank;
      EXPECT_NEAR(found[rank].score, score, kScore * std::abs(score)) << "row " << r << " rank " << rank;
      ++rank;
    }
    // Mesh TensorFlow stops all rows together and leaves slots empty, depending on the other rows of the batch. The
    // decoder fills them, with what a search to the last position finds.
    const auto ids_of = [&](const Results& results) {
      std::vector<Ids> lists;
      for (const decode::Hypothesis& h : results.at(static_cast<std::size_t>(r))) lists.push_back(h.ids);
      return lists;
    };
    EXPECT_EQ(ids_of(got), ids_of(complete)) << "row " << r;
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, GoldenDecode,
                         ::testing::Combine(::testing::ValuesIn(folder().names("models")),
                                            ::testing::ValuesIn(kPlaces)),
                         case_name);

}  // namespace
}  // namespace weft::test::decode_test
