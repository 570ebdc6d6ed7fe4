// weft export and weft import as a user meets them: out to plain files and back, to the bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/str.h"
#include "support/command.h"
#include "weft/checkpoint.h"
#include "weft/tensor_file.h"

namespace weft::export_test {
namespace {

namespace fs = std::filesystem;
using test::Ran;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Sizes = std::vector<std::int64_t>;

bool same_bits(const Array& a, const Array& b) {
  return a.dtype() == b.dtype() && a.elements() == b.elements() &&
         std::memcmp(a.bytes(), b.bytes(), static_cast<std::size_t>(a.elements()) * size_of(a.dtype())) == 0;
}

class ExportCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / str("weft_export_", getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    const Dim model{"d_model", 4}, qkv{"qkv", 3}, heads{"heads", 2}, kv{"d_kv", 3};
    put("embedding", {{"vocab", 5}, model});
    put("embedding.m", {{"vocab", 5}, model}, DType::kF32, "embedding");
    put("layer_0/attention/qkv/kernel", {model, qkv, heads, kv});
    put("layer_0/attention/qkv/bias", {qkv, heads, kv}, DType::kBF16);
    put("scale", {}, DType::kF64);
    put("count", {{"n", 2}}, DType::kI32);
    write_checkpoint(at("ckpt"), {.step = 9, .texts = {{"config.toml", "x"}}}, variables_,
                     [&](const std::string& name) { return values_.at(name); });
  }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  void put(const std::string& name, const Shape& shape, DType dtype = DType::kF32, const std::string& slot_of = "") {
    Array value(shape, dtype);
    for (std::int64_t i = 0; i < value.elements(); ++i)
      value.set(i, static_cast<double>(i) + 0.1 * static_cast<double>(name.size()));
    values_[name] = value;
    variables_[name] = {shape, dtype, slot_of};
  }

  Ran weft(const std::string& line) const {
    return test::ran(str("cd ", folder_.string(), " && ", WEFT_COMMAND, " ", line, " 2>&1"));
  }

  void expect_refused(const std::string& line, const std::string& what, const std::string& fix) const {
    const Ran ran = weft(line);
    EXPECT_EQ(ran.code, 2) << ran.output;
    EXPECT_THAT(ran.output, AllOf(HasSubstr("error: " + what), HasSubstr("fix:   "), HasSubstr(fix))) << line;
  }

  void expect_done(const std::string& line, const std::string& said) const {
    const Ran ran = weft(line);
    EXPECT_EQ(ran.code, 0) << ran.output;
    EXPECT_THAT(ran.output, HasSubstr(said));
  }

  // The weights of a checkpoint are ours, to the bit.
  void expect_ours(const std::string& path) const {
    const Checkpoint found = Checkpoint::open(at(path));
    EXPECT_EQ(found.variables().size(), 5u);
    for (const auto& [name, variable] : found.variables()) {
      EXPECT_EQ(variable.shape, variables_.at(name).shape) << name;
      EXPECT_TRUE(same_bits(found.read(name), values_.at(name))) << name;
    }
  }

  fs::path folder_;
  std::map<std::string, CheckpointVariable> variables_;
  std::map<std::string, Array> values_;
};

TEST_F(ExportCommand, OneFileAndBack) {
  expect_done("export ckpt --out all.safetensors", "5 tensors, ");
  const TensorFile file = TensorFile::open(at("all.safetensors"));
  EXPECT_EQ(file.tensors().size(), 5u);
  EXPECT_FALSE(file.tensors().contains("embedding.m"));
  EXPECT_EQ(file.tensors().at("layer_0/attention/qkv/kernel").sizes, (Sizes{4, 3, 2, 3}));
  EXPECT_TRUE(same_bits(file.read("embedding", {"a", "b"}), values_.at("embedding")));
  expect_done("import all.safetensors --like ckpt --out back --step 4", "5 variables are in the checkpoint back");
  expect_ours("back");
  EXPECT_EQ(Checkpoint::open(at("back")).state().step, 4);
}

TEST_F(ExportCommand, SplitsAndJoinsQkv) {
  expect_done("export ckpt --out parts.safetensors --split-qkv", "9 tensors, ");
  const TensorFile file = TensorFile::open(at("parts.safetensors"));
  EXPECT_EQ(file.tensors().at("layer_0/attention/q/kernel").sizes, (Sizes{4, 2, 3}));
  EXPECT_EQ(file.tensors().at("layer_0/attention/v/bias").sizes, (Sizes{2, 3}));
  const Array k = file.read("layer_0/attention/k/kernel", {"a", "b", "c"});
  const Array& whole = values_.at("layer_0/attention/qkv/kernel");
  for (std::int64_t row = 0; row < 4; ++row)
    for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(k.at(row * 6 + i), whole.at((row * 3 + 1) * 6 + i));
  expect_done("import parts.safetensors --like ckpt --join-qkv --out back", "5 variables");
  expect_ours("back");
  expect_refused(
      "import parts.safetensors --like ckpt --out none",
      "the files have no tensor 'layer_0/attention/qkv/bias', which variable 'layer_0/attention/qkv/bias' is to be",
      "give rules for its name with --map; --join-qkv joins …/q/…, …/k/… and …/v/…");
  EXPECT_FALSE(fs::exists(at("none")));
}

TEST_F(ExportCommand, SeveralFilesAndBack) {
  expect_done("export ckpt --out set --max-shard 100", "5 tensors, ");
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(at("set"))) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  EXPECT_THAT(names, ElementsAre("model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                                 "model-00003-of-00003.safetensors", "model.safetensors.index.json"));
  std::ifstream file(at("set/model.safetensors.index.json"));
  const auto index = nlohmann::json::parse(file);
  EXPECT_EQ(index["weight_map"].size(), 5u);
  for (const auto& [name, path] : index["weight_map"].items())
    EXPECT_TRUE(TensorFile::open(at("set/" + path.get<std::string>())).tensors().contains(name)) << name;
  EXPECT_EQ(index["metadata"]["total_size"], 8 + 80 + 288 + 8 + 36);
  expect_done("import set --like ckpt --out back", "5 variables");
  expect_ours("back");
  expect_done("export ckpt --out small", "5 tensors, ");
  EXPECT_TRUE(fs::exists(at("small/model.safetensors")));
}

TEST_F(ExportCommand, AsAnotherDtype) {
  expect_done("export ckpt --out half.safetensors --dtype bf16 --optimizer-state", "6 tensors, ");
  const TensorFile file = TensorFile::open(at("half.safetensors"));
  EXPECT_TRUE(same_bits(file.read("embedding", {"a", "b"}), values_.at("embedding").cast(DType::kBF16)));
  EXPECT_TRUE(same_bits(file.read("scale", {}), values_.at("scale").cast(DType::kBF16)));
  EXPECT_EQ(file.tensors().at("count").dtype, DType::kI32);
  EXPECT_TRUE(file.tensors().contains("embedding.m"));
  expect_done("import half.safetensors --like ckpt --dtype f32 --out back --allow-unused", "5 variables");
  EXPECT_EQ(Checkpoint::open(at("back")).variables().at("embedding").dtype, DType::kF32);
}

TEST_F(ExportCommand, UnderOtherNamesAndShapes) {
  std::ofstream(at("out.json")) << R"([
    {"from": "layer_(\\d+)/attention/(q|k|v)/kernel", "to": "layers.$1.attn.$2.weight", "sizes": [0, -1], "transpose": true},
    {"from": "layer_(\\d+)/attention/(q|k|v)/bias", "to": "layers.$1.attn.$2.bias", "sizes": [-1]},
    {"from": "count", "to": null}])";
  std::ofstream(at("in.json")) << R"([
    {"from": "layers\\.(\\d+)\\.attn\\.(.)\\.weight", "to": "layer_$1/attention/$2/kernel", "sizes": [0, 2, 3], "transpose": true},
    {"from": "layers\\.(\\d+)\\.attn\\.(.)\\.bias", "to": "layer_$1/attention/$2/bias", "sizes": [2, 3]}])";
  expect_done("export ckpt --out named.safetensors --split-qkv --map out.json", "8 tensors, ");
  const TensorFile file = TensorFile::open(at("named.safetensors"));
  EXPECT_EQ(file.tensors().at("layers.0.attn.q.weight").sizes, (Sizes{6, 4}));
  const Array q = file.read("layers.0.attn.q.weight", {"out", "in"});
  const Array& whole = values_.at("layer_0/attention/qkv/kernel");
  for (std::int64_t in = 0; in < 4; ++in)
    for (std::int64_t out = 0; out < 6; ++out) EXPECT_EQ(q.at(out * 4 + in), whole.at(in * 18 + out));
  expect_refused("import named.safetensors --like ckpt --map in.json --join-qkv --out back",
                 "the files have no tensor 'count', which variable 'count' is to be",
                 "give rules for its name with --map");
  // Without `count` in the model the round is whole.
  variables_.erase("count");
  values_.erase("count");
  write_checkpoint(at("less"), {}, variables_, [&](const std::string& name) { return values_.at(name); });
  expect_done("import named.safetensors --like less --map in.json --join-qkv --out back", "4 variables");
  const Checkpoint back = Checkpoint::open(at("back"));
  for (const auto& [name, variable] : back.variables())
    EXPECT_TRUE(same_bits(back.read(name), values_.at(name))) << name;
}

TEST_F(ExportCommand, ABuiltInModel) {
  write_safetensors(at("m.safetensors"),
                    {{"w", Array({{"a", 4}, {"b", 8}}, DType::kF32)}, {"v", Array({{"a", 8}, {"b", 4}}, DType::kF32)}});
  expect_done("import m.safetensors --model two_layer --set io=4,hidden=8 --out back", "2 variables");
  EXPECT_EQ(Checkpoint::open(at("back")).variables().at("w").shape, (Shape{{"io", 4}, {"hidden", 8}}));
  expect_refused("import m.safetensors --model two_layer --set io=4 --out other",
                 "tensor 'v' has the sizes [8 4]: it cannot be", "the right model");
}

TEST_F(ExportCommand, SaysWhatIsWrong) {
  ASSERT_EQ(weft("export ckpt --out all.safetensors").code, 0);
  expect_refused("export nothing --out x", "there is no checkpoint in 'nothing'", "give the folder of a checkpoint");
  expect_refused("export ckpt --out x --dtype i32", "weights cannot be exported as i32",
                 "choose f32, bf16, f16 or f64");
  expect_refused("import all.safetensors --like ckpt --out x --dtype u8", "weights cannot be imported as u8",
                 "choose f32, bf16, f16 or f64");
  expect_refused("export ckpt --out x.safetensors --max-shard 1GB",
                 "--max-shard has no effect on a single file x.safetensors",
                 "give --out a folder, or leave out --max-shard");
  expect_refused(
      "import all.safetensors --out x", "files know no names of dims, and it is not said whose they are",
      "give one of --config, with the config of the model, --like, with a checkpoint of it, or --model, with "
      "its --set");
  expect_refused("import all.safetensors --like ckpt --out ckpt", "there is something at 'ckpt' already",
                 "remove it, or write the checkpoint to another folder");
  fs::create_directories(at("hollow"));
  expect_refused("import hollow --like ckpt --out x", "the folder 'hollow' has no .safetensors",
                 "name .safetensors files, or a folder that has some");
  EXPECT_FALSE(fs::exists(at("x")));
  const Ran full = weft("export ckpt --out nowhere/x.safetensors");
  EXPECT_EQ(full.code, 3);
  EXPECT_THAT(full.output, HasSubstr("cannot write 'nowhere/x.safetensors': No such file or directory"));
}

TEST_F(ExportCommand, SaysWhichFileDoesNotFit) {
  write_safetensors(at("odd.safetensors"), {{"embedding", Array({{"a", 4}, {"b", 5}}, DType::kF32)},
                                            {"more", Array({{"a", 1}}, DType::kF32)}});
  write_checkpoint(at("one"), {}, {{"embedding", {{{"vocab", 5}, {"d_model", 4}}}}},
                   [&](const std::string& name) { return values_.at(name); });
  expect_refused("import odd.safetensors --like one --out x", "no variable takes these tensors of the files: more",
                 "give rules for their names with --map, leave them out with \"to\": null, or say --allow-unused");
  expect_refused("import odd.safetensors --like one --out x --allow-unused",
                 "tensor 'embedding' has the sizes [4 5]: it cannot be [vocab=5 d_model=4]",
                 "give a rule with \"transpose\" or \"sizes\" in --map, or the right model");
  EXPECT_FALSE(fs::exists(at("x")));
  EXPECT_FALSE(fs::exists(at(".x.partial")));
  std::ofstream(at("t.json")) << R"([{"from": "embedding", "to": "embedding", "transpose": true}])";
  expect_done("import odd.safetensors --like one --out x --allow-unused --map t.json", "1 variables");
}

TEST_F(ExportCommand, RefusesOddRules) {
  const std::string fix =
      "write a list of {\"from\": \"regular expression\", \"to\": \"name with $1\"}, with \"sizes\" and "
      "\"transpose\" where needed";
  const auto expect_odd = [&](const std::string& rules, const std::string& what, const std::string& cure) {
    std::ofstream(at("r.json"), std::ios::trunc) << rules;
    expect_refused("export ckpt --out x.safetensors --map r.json", what, cure);
  };
  expect_refused("export ckpt --out x --map none.json", "cannot read the rules 'none.json'", fix);
  expect_odd("{", "the rules are no JSON list", fix);
  expect_odd("[{\"from\": \"a\"}]", "rule 1 has no \"from\" or no \"to\"", fix);
  expect_odd("[{\"from\": \"a\", \"to\": \"b\", \"x\": 1}]", "rule 1 has no use for \"x\"", fix);
  expect_odd("[{\"from\": \"a\", \"to\": \"b\", \"sizes\": [-2]}]", "rule 1 has odd sizes", fix);
  expect_odd("[{\"from\": \"(\", \"to\": \"b\"}]", "rule 1, \"from\", is no regular expression: ", fix);
  expect_odd("[{\"from\": \"embedding\", \"to\": \"b\", \"sizes\": [3, -1]}]",
             "tensor 'embedding' [5 4] cannot have the sizes [3 -1]",
             "give sizes with as many elements; 0 stands for the size at that place, -1 for the rest");
  expect_odd("[{\"from\": \"scale\", \"to\": \"b\", \"transpose\": true}]",
             "tensor 'scale' [] is no matrix to be transposed", "give the rule \"sizes\" of two dims");
  expect_odd("[{\"from\": \"scale|count\", \"to\": \"b\"}]", "variables 'count' and 'scale' would both be called 'b'",
             "let the rules give every tensor a different name");
  write_safetensors(at("two.safetensors"), {{"a", Array::scalar(1)}, {"b", Array::scalar(2)}});
  std::ofstream(at("r.json"), std::ios::trunc) << "[{\"from\": \".\", \"to\": \"scale\"}]";
  expect_refused("import two.safetensors --like ckpt --map r.json --out x",
                 "two tensors would be called 'scale', one of them 'b'",
                 "let the rules of --map give every tensor a different name, or leave it out");
}

}  // namespace
}  // namespace weft::export_test
