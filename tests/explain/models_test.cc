// The built-in models: sizes, parameters and refusals.
#include "weft/detail/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "weft/explain.h"

namespace weft::models_test {
namespace {

const Machine kMachine = Machine::uniform(1e11, 1e10);

TEST(Models, CompileOnTheirOwnMeshAndLayout) {
  for (const std::string& name : models::names()) {
    const models::Model model = models::build(name);
    EXPECT_EQ(model.name, name);
    EXPECT_FALSE(models::description(name).empty());
    const Explanation e = explain(model.graph, model.mesh, model.layout, model.options, kMachine);
    EXPECT_GT(e.parameters, e.parameters_per_processor) << name;
    EXPECT_FALSE(e.collectives.empty()) << name;
    EXPECT_LT(e.work_ratio, 1.5) << name;
  }
}

TEST(Models, CompileOnOneProcessorWithoutTalk) {
  for (const std::string& name : models::names()) {
    const models::Model model = models::build(name);
    const Explanation e = explain(model.graph, Mesh(), Layout(), model.options, kMachine);
    EXPECT_TRUE(e.collectives.empty()) << name;
    EXPECT_EQ(e.parameters, e.parameters_per_processor);
    EXPECT_EQ(e.work_ratio, 1);
  }
}

// Attention stores no scores: with many places they would be larger than all else together.
TEST(Models, TransformerHasNoTensorOfScores) {
  const models::Model model = models::build("transformer", {{"batch", 1},
                                                            {"length", 1024},
                                                            {"d_model", 16},
                                                            {"heads", 4},
                                                            {"d_kv", 4},
                                                            {"d_ff", 16},
                                                            {"vocab", 16},
                                                            {"layers", 1}});
  const Explanation e = explain(model.graph, Mesh(), Layout(), model.options, kMachine);
  EXPECT_LT(e.arena_bytes, 4 * 1024 * 1024 * 4 / 4);
  const double scores = 4.0 * 1024 * 1024, places = 1024;
  const double weights = 4 * 16 * 16 + 2 * 16 * 16 + 16 * 16;  // q, k, v and o; in and out; logits
  // Counted whole, though half of it is masked: two products forward, four back.
  EXPECT_DOUBLE_EQ(e.contract_flops.at("forward"), 2 * places * weights + scores * 2 * (4 + 4));
  EXPECT_DOUBLE_EQ(e.contract_flops.at("backward"), 4 * places * weights + scores * 4 * (4 + 4));
  EXPECT_LT(e.executed_flops, e.model_flops);
}

// The paper's language models: 6 layers, d_model 1024, d_kv 256, 32,768 words, tables not tied. Billions of parameters
// as published; ours has positions and layer norms besides.
TEST(Models, TransformerHasThePapersParameters) {
  struct Published {
    std::int64_t d_ff, heads;
    double billions;
  };
  for (const Published& row : {Published{4096, 4, 0.14},
                               {8192, 8, 0.22},
                               {16384, 16, 0.37},
                               {32768, 32, 0.67},
                               {65536, 64, 1.28},
                               {131072, 128, 2.48},
                               {262144, 256, 4.90}}) {
    const models::Model model = models::build("transformer", {{"batch", 256},
                                                              {"length", 256},
                                                              {"d_model", 1024},
                                                              {"heads", row.heads},
                                                              {"d_kv", 256},
                                                              {"d_ff", row.d_ff},
                                                              {"vocab", 32768},
                                                              {"layers", 6}});
    const Explanation e = explain(model.graph, Mesh::parse("data:16 model:4"), model.layout, model.options, kMachine);
    const std::int64_t tables = 2 * 32768 * 1024;
    const std::int64_t layers = 6 * (4 * 1024 * row.heads * 256 + 2 * 1024 * row.d_ff);
    const std::int64_t positions = 256 * 1024, norms = (2 * 6 + 1) * 2 * 1024;
    EXPECT_EQ(e.parameters, tables + layers + positions + norms);
    EXPECT_EQ(e.parameters_per_processor, (tables + layers) / 4 + positions + norms);
    EXPECT_NEAR(static_cast<double>(e.parameters) * 1e-9, row.billions, 0.006);
    EXPECT_EQ(e.variable_bytes, 3 * 4 * e.parameters_per_processor);  // Adam keeps two more of each
  }
}

TEST(Models, SizesAreRead) {
  EXPECT_EQ(models::parse_sizes("batch=64,d_ff=1024"), (models::Sizes{{"batch", 64}, {"d_ff", 1024}}));
  EXPECT_USER_ERROR(models::parse_sizes("batch=64,hidden"), "'hidden' does not set a size", "column 10",
                    "batch=64,hidden=1024");
  EXPECT_USER_ERROR(models::parse_sizes("batch=x"), "'batch=x' does not set a size");
  EXPECT_USER_ERROR(models::parse_sizes("batch=0"), "'batch=0' does not set a size", "at least one");
  EXPECT_USER_ERROR(models::parse_sizes("batch=1.5"), "'batch=1.5' does not set a size");
  EXPECT_USER_ERROR(models::parse_sizes(""), "'' does not set a size");
  EXPECT_USER_ERROR(models::parse_sizes("batch=2,batch=4"), "the size of 'batch' is set twice", "set it once");
}

TEST(Models, UnknownNamesAreRefused) {
  EXPECT_USER_ERROR(models::build("transfromer"), "there is no built-in model 'transfromer'",
                    "did you mean 'transformer'?", "two_layer, mlp, transformer");
  EXPECT_USER_ERROR(models::build("zzz"), "there is no built-in model 'zzz'", "the models are: ");
  EXPECT_USER_ERROR(models::build("two_layer", {{"hiden", 4}}), "model 'two_layer' has no size 'hiden' to set",
                    "did you mean 'hidden'?", "it has: batch, hidden, io");
}

}  // namespace
}  // namespace weft::models_test
