// What is written, in which order it becomes visible, and what is kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "checkpoint/training.h"
#include "support/expect_error.h"
#include "weft/error.h"
#include "weft/tensor_file.h"

namespace weft::save_test {
namespace {

using test::content;
using test::expect_equal;
using test::names_in;
using test::new_folder;
using test::Training;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const test::TrainingOptions kGrid{.mesh = "data:2 model:2", .layout = "batch:data hidden:model"};

TEST(CheckpointSave, WritesShardsTextsAndLatest) {
  const std::string folder = new_folder("writes");
  Training t(kGrid);
  t.train(2);
  Checkpoints checkpoints(t.session, {.folder = folder});
  checkpoints.save(t.state());
  checkpoints.wait();
  EXPECT_THAT(names_in(folder), ElementsAre(".lock", "latest", "step-00000002"));
  EXPECT_EQ(content(folder + "/latest"), "step-00000002\n");
  // Processors 0 and 1 are the first of their replicas over data.
  EXPECT_THAT(names_in(folder + "/step-00000002"),
              ElementsAre("config.toml", "data.json", "index.json", "shard-0.safetensors", "shard-1.safetensors"));
  EXPECT_EQ(content(folder + "/step-00000002/config.toml"), "[model]\n");
  const TensorFile first = TensorFile::open(folder + "/step-00000002/shard-0.safetensors");
  EXPECT_EQ(first.tensors().size(), 9u);
  EXPECT_EQ(first.tensors().at("first/w").sizes, (std::vector<std::int64_t>{8, 3, 8}));
  EXPECT_EQ(first.tensors().at("scale.v").sizes, (std::vector<std::int64_t>{}));
  const TensorFile second = TensorFile::open(folder + "/step-00000002/shard-1.safetensors");
  EXPECT_EQ(second.tensors().size(), 6u);

  const Checkpoint found = Checkpoint::open(folder);
  EXPECT_EQ(found.path(), folder + "/step-00000002");
  EXPECT_EQ(found.state().step, 2);
  EXPECT_EQ(found.state().texts, t.state().texts);
  EXPECT_EQ(found.variables().at("first/w.m").slot_of, "first/w");
  EXPECT_EQ(found.variables().at("first/w").slot_of, "");
  std::map<std::string, Array> read;
  for (const auto& [name, variable] : found.variables()) read[name] = found.read(name);
  expect_equal(read, t.values());
}

// Weights that are updated in f32 and stored as bf16: the files have bf16, the state of the optimizer stays f32.
TEST(CheckpointSave, HoldsTheStoredDtype) {
  const std::string folder = new_folder("stored");
  test::TrainingOptions options = kGrid;
  options.dtype = DType::kBF16;
  options.slice = DType::kF32;
  Training t(options);
  t.train(2);
  Checkpoints checkpoints(t.session, {.folder = folder, .finite = true});
  checkpoints.save(t.state());
  checkpoints.wait();
  const TensorFile file = TensorFile::open(folder + "/step-00000002/shard-0.safetensors");
  EXPECT_EQ(file.tensors().at("first/w").dtype, DType::kBF16);
  EXPECT_EQ(file.tensors().at("first/w.m").dtype, DType::kF32);
  const Checkpoint found = Checkpoint::open(folder);
  std::map<std::string, Array> expected = t.values(), rounded;
  EXPECT_EQ(expected.at("first/w").dtype(), DType::kF32);
  for (auto& [name, value] : expected)
    if (found.variables().at(name).slot_of.empty()) {
      EXPECT_FALSE(test::same_bits(value.cast(DType::kBF16).cast(DType::kF32), value) && value.elements() > 1) << name;
      value = value.cast(DType::kBF16);
    }
  std::map<std::string, Array> read;
  for (const auto& [name, variable] : found.variables()) {
    EXPECT_EQ(variable.dtype, variable.slot_of.empty() ? DType::kBF16 : DType::kF32) << name;
    read[name] = found.read(name);
  }
  expect_equal(read, expected);

  options.mesh = "model:4";
  options.layout = "hidden:model";
  Training again(options);
  found.load(again.session);
  for (const auto& [name, value] : again.values()) {
    EXPECT_EQ(value.dtype(), DType::kF32);
    EXPECT_TRUE(test::same_bits(value, expected.at(name).cast(DType::kF32))) << name;
  }
}

TEST(CheckpointSave, RefusesWhatIsNoNumber) {
  const std::string folder = new_folder("finite");
  Training t(kGrid);
  t.train(1);
  Checkpoints checkpoints(t.session, {.folder = folder, .finite = true});
  checkpoints.save(t.state());
  checkpoints.wait();
  Array broken = t.session.value("first/w");
  broken.set(5, std::numeric_limits<double>::quiet_NaN());
  t.session.set_value("first/w", broken);
  t.train(1);
  checkpoints.save(t.state());
  EXPECT_RUN_ERROR(checkpoints.wait(), "' has values that are no numbers at step 2: no checkpoint is made of it",
                   "a lower learning rate");
  EXPECT_EQ(Checkpoint::open(folder).state().step, 1);
  EXPECT_THAT(names_in(folder), ElementsAre(".lock", "latest", "step-00000001"));
}

TEST(CheckpointSave, TakesTheValuesOfTheMoment) {
  const std::string folder = new_folder("moment");
  Training t(kGrid);
  Checkpoints checkpoints(t.session, {.folder = folder, .keep = 0});
  std::vector<std::map<std::string, Array>> values;
  for (int i = 0; i < 4; ++i) {
    t.train(1);
    values.push_back(t.values());
    checkpoints.save(t.state());
  }
  checkpoints.wait();
  for (int i = 0; i < 4; ++i) {
    Training other;
    other.resume(Checkpoint::open(folder + "/step-0000000" + std::to_string(i + 1)));
    expect_equal(other.values(), values[static_cast<std::size_t>(i)]);
  }
}

TEST(CheckpointSave, KeepsTheNewest) {
  const std::string folder = new_folder("keeps");
  Training t;
  Checkpoints checkpoints(t.session, {.folder = folder, .keep = 2, .async = false});
  for (const std::int64_t step : {10, 20, 30, 40}) checkpoints.save({.step = step});
  EXPECT_THAT(names_in(folder), ElementsAre(".lock", "latest", "step-00000030", "step-00000040"));
  // Resumed from an earlier one: those ahead are not ours to remove, and the newest is always kept.
  for (const std::int64_t step : {5, 6, 7}) checkpoints.save({.step = step});
  EXPECT_THAT(names_in(folder),
              ElementsAre(".lock", "latest", "step-00000006", "step-00000007", "step-00000030", "step-00000040"));
  EXPECT_EQ(Checkpoint::open(folder).state().step, 7);
}

TEST(CheckpointSave, ReplacesTheSameStep) {
  const std::string folder = new_folder("replaces");
  Training t;
  Checkpoints checkpoints(t.session, {.folder = folder, .async = false});
  checkpoints.save({.step = 5, .texts = {{"a.txt", "old"}}});
  t.train(1);
  checkpoints.save({.step = 5, .texts = {{"b.txt", "new"}}});
  EXPECT_THAT(names_in(folder), ElementsAre(".lock", "latest", "step-00000005"));
  const Checkpoint found = Checkpoint::open(folder);
  EXPECT_EQ(found.state().texts, (std::map<std::string, std::string>{{"b.txt", "new"}}));
  Training other;
  found.load(other.session);
  expect_equal(other.values(), t.values());
}

TEST(CheckpointSave, TellsTheLatestOnlyWhenAllIsThere) {
  const std::string folder = new_folder("order");
  Training t;
  std::vector<std::string> phases;
  std::vector<std::int64_t> latest;
  const auto at = [&](const std::string& phase) {
    if (phases.empty() || phases.back() != phase) phases.push_back(phase);
    const std::optional<Checkpoint> found = Checkpoint::latest(folder);
    latest.push_back(found ? found->state().step : -1);
  };
  Checkpoints checkpoints(t.session, {.folder = folder});
  detail::on_phase(checkpoints, at);
  checkpoints.save({.step = 1});
  checkpoints.wait();
  EXPECT_THAT(phases, ElementsAre("save-begun", "mid-shard", "before-rename", "before-latest"));
  EXPECT_EQ(latest.front(), -1);
  EXPECT_EQ(latest[latest.size() - 2], -1);
  EXPECT_EQ(latest.back(), 1);  // whole, though not yet called the latest
  latest.clear();
  checkpoints.save({.step = 2});
  checkpoints.wait();
  EXPECT_EQ(latest.back(), 1);
  EXPECT_EQ(Checkpoint::open(folder).state().step, 2);
}

TEST(CheckpointSave, TellsOfAFailureWithoutWaiting) {
  const std::string folder = new_folder("failure");
  Training t;
  std::atomic<bool> fails = true;
  const auto at = [&](const std::string& phase) {
    if (fails && phase == "before-rename")
      throw RunError({.code = "test.room", .what = "no room", .where = "disk", .fix = "make some"});
  };
  Checkpoints checkpoints(t.session, {.folder = folder});
  detail::on_phase(checkpoints, at);
  EXPECT_FALSE(checkpoints.failure());
  checkpoints.save({.step = 1});
  while (!checkpoints.failure()) std::this_thread::yield();
  EXPECT_RUN_ERROR(std::rethrow_exception(checkpoints.failure()), "no room");
  EXPECT_RUN_ERROR(checkpoints.wait(), "no room");
  EXPECT_FALSE(checkpoints.failure());
  fails = false;
  checkpoints.save({.step = 2});
  checkpoints.wait();
  EXPECT_FALSE(checkpoints.failure());
  EXPECT_EQ(Checkpoint::open(folder).state().step, 2);
}

TEST(CheckpointSave, RemovesWhatWasLeftUnfinished) {
  const std::string folder = new_folder("leftovers");
  for (const char* name : {".step-00000003.partial", ".step-00000001.old", "mine", "step-2"})
    std::filesystem::create_directories(folder + "/" + name);
  test::write(folder + "/.latest.partial", "step-000");
  test::write(folder + "/.step-00000003.partial/shard-0.safetensors", "half");
  Training t;
  Checkpoints checkpoints(t.session, {.folder = folder});
  EXPECT_THAT(names_in(folder), ElementsAre(".lock", "mine", "step-2"));
  EXPECT_FALSE(Checkpoint::latest(folder).has_value());
}

TEST(CheckpointSave, OneWriterAtATime) {
  const std::string folder = new_folder("lock");
  Training t;
  auto first = std::make_unique<Checkpoints>(t.session, CheckpointOptions{.folder = folder});
  EXPECT_USER_ERROR(Checkpoints(t.session, {.folder = folder}),
                    "another program is writing checkpoints to '" + folder + "'",
                    "wait until it has ended, or save to another folder");
  first.reset();
  Checkpoints second(t.session, {.folder = folder});
}

TEST(CheckpointSave, RefusesWhatItCannotWrite) {
  const std::string folder = new_folder("refuses");
  Training t;
  EXPECT_USER_ERROR(Checkpoints(t.session, {}), "checkpoints cannot be saved to folder '', keeping 3",
                    "name a folder, and keep 1 or more, or 0 for all");
  Checkpoints checkpoints(t.session, {.folder = folder, .async = false});
  checkpoints.save({.step = 1});
  EXPECT_USER_ERROR(checkpoints.save({.step = -1}), "a checkpoint of step -1 cannot be saved", "count steps from 0");
  for (const char* name : {"", "a/b", "../x", ".hidden", "index.json", "shard-7", "a\nb"})
    EXPECT_USER_ERROR(checkpoints.save({.step = 2, .texts = {{name, "text"}}}),
                      std::string("a checkpoint cannot have a text called '") + name + "'",
                      "choose the name of a file, without folders, that begins neither with '.' nor with "
                      "\"shard-\" and is not index.json");
  EXPECT_THAT(names_in(folder), ElementsAre(".lock", "latest", "step-00000001"));
}

TEST(CheckpointSave, AnEmptySessionIsACheckpointToo) {
  const std::string folder = new_folder("empty");
  Session session{Mesh()};
  Checkpoints checkpoints(session, {.folder = folder});
  checkpoints.save({.step = 3});
  checkpoints.wait();
  const Checkpoint found = Checkpoint::open(folder);
  EXPECT_THAT(found.variables(), IsEmpty());
  found.load(session);
}

}  // namespace
}  // namespace weft::save_test
