// A checkpoint loads on any mesh, layout, storage and dtype, with the bits that were saved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/training.h"
#include "support/expect_error.h"

namespace weft::load_test {
namespace {

using test::expect_equal;
using test::new_folder;
using test::Training;
using test::TrainingOptions;

Store store_of(int level) { return level == 0 ? Store() : Store::parse("*:data", level); }

// Trained three steps on 2x2, saved, and what it held.
struct Saved {
  std::string folder;
  std::map<std::string, Array> values;

  explicit Saved(const std::string& name, int level = 0) : folder(new_folder(name)) {
    Training t({.mesh = "data:2 model:2", .layout = "batch:data hidden:model", .store = store_of(level)});
    t.train(3);
    Checkpoints checkpoints(t.session, {.folder = folder});
    checkpoints.save(t.state());
    checkpoints.wait();
    values = t.values();
  }
};

const TrainingOptions kPlaces[] = {{},
                                   {.mesh = "data:4", .layout = "batch:data"},
                                   {.mesh = "data:4 model:1", .layout = "batch:data in:model"},
                                   {.mesh = "model:8", .layout = "hidden:model"},
                                   {.mesh = "data:2 model:4", .layout = "batch:data in:model"},
                                   {.mesh = "a:2 b:2 c:2", .layout = "batch:c hidden:b+a"},
                                   {.mesh = "data:2 model:2", .layout = "batch:data hidden:model"}};

TEST(CheckpointLoad, OnAnyMeshLayoutAndStorage) {
  for (const int written : {0, 1, 3}) {
    const Saved saved("matrix", written);
    for (TrainingOptions place : kPlaces)
      for (const int level : {0, 1, 3}) {
        if (level > 0 && place.mesh.find("data") == std::string::npos) continue;
        SCOPED_TRACE(::testing::Message() << "written at level " << written << ", loaded on " << place.mesh << ", "
                                          << place.layout << ", level " << level);
        place.store = store_of(level);
        Training t(place);
        t.resume(Checkpoint::open(saved.folder));
        EXPECT_EQ(t.done, 3);
        expect_equal(t.values(), saved.values);
      }
  }
}

TEST(CheckpointLoad, AResumedRunIsTheUninterruptedOne) {
  const TrainingOptions grid{.mesh = "data:2 model:2", .layout = "batch:data hidden:model"};
  Training whole(grid);
  const std::vector<double> want = whole.train(8);
  const Saved saved("resumed");
  Training resumed(grid);
  resumed.resume(Checkpoint::open(saved.folder));
  EXPECT_EQ(resumed.train(5), std::vector<double>(want.begin() + 3, want.end()));  // bit for bit, dropout and all
  expect_equal(resumed.values(), whole.values());
  for (const TrainingOptions& place : kPlaces) {
    Training other(place);
    other.resume(Checkpoint::open(saved.folder));
    const std::vector<double> got = other.train(5);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i + 3], 1e-5 * std::abs(want[i + 3]));
  }
}

TEST(CheckpointLoad, AsAnotherFloat) {
  const Saved saved("floats");
  Training half({.mesh = "data:2", .layout = "batch:data", .dtype = DType::kBF16});
  Checkpoint::open(saved.folder).load(half.session);
  for (const auto& [name, value] : half.values()) {
    const bool is_weight = name.find('.') == std::string::npos;
    EXPECT_EQ(value.dtype(), is_weight ? DType::kBF16 : DType::kF32);
    EXPECT_TRUE(test::same_bits(value, saved.values.at(name).cast(value.dtype()))) << name;
  }
  const std::string folder = new_folder("halves");
  Checkpoints checkpoints(half.session, {.folder = folder});
  checkpoints.save({});
  checkpoints.wait();
  Training back;
  Checkpoint::open(folder).load(back.session);
  for (const auto& [name, value] : back.values())
    EXPECT_TRUE(test::same_bits(value, half.values().at(name).cast(DType::kF32))) << name;
}

TEST(CheckpointLoad, WeightsAlone) {
  const Saved saved("weights");
  Training t;
  const std::map<std::string, Array> first = t.values();
  Checkpoint::open(saved.folder).load(t.session, {.optimizer_state = false});
  for (const auto& [name, value] : t.values()) {
    const bool is_weight = name.find('.') == std::string::npos;
    EXPECT_TRUE(test::same_bits(value, (is_weight ? saved.values : first).at(name))) << name;
  }
}

// A session with variables of these names and shapes.
Session session_of(const std::vector<std::pair<std::string, Shape>>& variables, const std::string& mesh = "",
                   DType dtype = DType::kF32) {
  Graph g;
  Tensors all;
  for (const auto& [name, shape] : variables)
    all.push_back(g.variable(name, shape, init::constant(5), {.stored = dtype}));
  Session session(Mesh::parse(mesh), wire::threads(), device::reference());
  session.compile(g, Layout::parse("hidden:m? in:n?"), {.fetch = all});
  return session;
}

const Dim kIn{"in", 8}, kQkv{"qkv", 3}, kHidden{"hidden", 16};

TEST(CheckpointLoad, WithOtherNames) {
  const Saved saved("names");
  Session session = session_of({{"model/a/w", {kIn, kQkv, kHidden}}, {"b", {kHidden, kIn}}, {"scale", {}}});
  Checkpoint::open(saved.folder).load(session, {.rename = {{"first/", "model/a/"}, {"second/v", "b"}}});
  EXPECT_TRUE(test::same_bits(session.value("model/a/w"), saved.values.at("first/w")));
  EXPECT_TRUE(test::same_bits(session.value("b"), saved.values.at("second/v")));
}

TEST(CheckpointLoad, WithDimsInAnotherOrder) {
  const Saved saved("orders");
  for (const char* mesh : {"", "m:2", "m:2 n:4"}) {
    Session session =
        session_of({{"first/w", {kHidden, kIn, kQkv}}, {"second/v", {kIn, kHidden}}, {"scale", {}}}, mesh);
    Checkpoint::open(saved.folder).load(session);
    for (const char* name : {"first/w", "second/v"}) {
      const Array got = session.value(name);
      EXPECT_TRUE(test::same_bits(got, saved.values.at(name).transposed(got.shape()))) << name;
    }
  }
}

TEST(CheckpointLoad, SaysWhatDoesNotFit) {
  const Saved saved("fit");
  const Checkpoint found = Checkpoint::open(saved.folder);
  const std::string fit_fix = "build the model with the sizes of the checkpoint; see its index.json";
  Session other = session_of({{"first/w", {kIn, kQkv, {"hidden", 12}}}});
  EXPECT_USER_ERROR(found.load(other),
                    "variable 'first/w' is f32 [in=8 qkv=3 hidden=12] in the session, but f32 "
                    "[in=8 qkv=3 hidden=16] in the checkpoint",
                    found.path(), fit_fix);
  Session whole = session_of({{"first/w", {kIn, kQkv, kHidden}}}, "", DType::kI32);
  EXPECT_USER_ERROR(found.load(whole), "variable 'first/w' is i32 [in=8 qkv=3 hidden=16] in the session, but f32 ",
                    fit_fix);

  Session more =
      session_of({{"first/w", {kIn, kQkv, kHidden}}, {"second/v", {kHidden, kIn}}, {"scale", {}}, {"x", {kIn}}});
  EXPECT_USER_ERROR(found.load(more), "the checkpoint lacks variables that the session has: x",
                    "load it into the model that wrote it, give other names with rename (--rename OLD=NEW), leave out "
                    "optimizer_state, or set allow_missing (--allow-missing) to keep their first values");
  EXPECT_USER_ERROR(found.load(more, {.rename = {{"scale", "scal"}}, .allow_missing = true}),
                    "nothing is renamed from 'scale' in the checkpoint to 'scal' in the session",
                    "give whole names of variables, or beginnings that end in \"/\" on both sides; see its index.json");
  EXPECT_USER_ERROR(found.load(more, {.rename = {{"scal", "scale"}}, .allow_missing = true, .allow_unused = true}),
                    "nothing is renamed from 'scal' in the checkpoint to 'scale' in the session");
  found.load(more, {.allow_missing = true});
  EXPECT_EQ(more.value("x").at(3), 5);
  EXPECT_TRUE(test::same_bits(more.value("scale"), saved.values.at("scale")));

  Session fewer = session_of({{"scale", {}}});
  EXPECT_USER_ERROR(found.load(fewer), "the checkpoint has weights that the session lacks: first/w, second/v",
                    "load it into the model that wrote it, after compiling, or set allow_unused (--allow-unused) to "
                    "leave them out");
  found.load(fewer, {.allow_unused = true});
  EXPECT_TRUE(test::same_bits(fewer.value("scale"), saved.values.at("scale")));
}

TEST(CheckpointLoad, ReadsParts) {
  const Saved saved("parts");
  const Checkpoint found = Checkpoint::open(saved.folder);
  const Array& whole = saved.values.at("first/w");
  std::vector<float> part(2 * 1 * 11);
  found.read("first/w", {5, 2, 4}, {2, 1, 11}, std::as_writable_bytes(std::span(part)));
  for (std::int64_t i = 0; i < 2; ++i)
    for (std::int64_t k = 0; k < 11; ++k)
      EXPECT_EQ(part[static_cast<std::size_t>(i * 11 + k)], whole.at(((5 + i) * 3 + 2) * 16 + 4 + k));
  EXPECT_USER_ERROR(found.read("first/w", {5, 2, 6}, {2, 1, 11}, std::as_writable_bytes(std::span(part))),
                    "variable 'first/w' [in=8 qkv=3 hidden=16] has no part [2 1 11] at [5 2 6] of 88 bytes",
                    "ask for a part that lies in the variable, with room for just its bytes",
                    "code:  checkpoint.part-out-of-range");
  EXPECT_USER_ERROR(found.read("first/v"), "the checkpoint has no variable 'first/v'", "did you mean 'first/w'?");
  EXPECT_USER_ERROR(found.read("zzzzzzzzz"), "the checkpoint has no variable 'zzzzzzzzz'",
                    "it has 9 variables: see its index.json");
}

}  // namespace
}  // namespace weft::load_test
