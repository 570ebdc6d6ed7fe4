// weft run as a user meets it: a program leaves `weft explain`, inputs come from files, outputs go to one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/str.h"
#include "weft/array.h"
#include "weft/tensor_file.h"

namespace weft::run_command_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::json;

struct Ran {
  int code = -1;
  std::string out, err;
};

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A folder with a small program in it, and the command run there.
class RunCommand : public testing::Test {
 protected:
  RunCommand() : folder_(std::filesystem::path(testing::TempDir()) / str("weft_run_", getpid())) {
    std::filesystem::create_directories(folder_);
    std::ofstream(at("p.weft")) << "weft program 1\nmesh data:2\nlayout \"a:data\"\n"
                                   "input x %0.x f32 [a=2 b=2] {a:data}\n"
                                   "variable n %1.n f32 [b=2] fixed update=%3.next\n"
                                   "%2.y f32 [a=2 b=2] {a:data} = map %0.x, %1.n expr=add($0, $1)\n"
                                   "%3.next f32 [b=2] = map %1.n expr=add($0, 1:f32)\n"
                                   "output y %2.y\nend\n";
  }
  ~RunCommand() override { std::filesystem::remove_all(folder_); }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  // `before` is for the shell, in the folder.
  Ran weft(const std::string& arguments, const std::string& before = "true") const {
    const std::string line = str("cd ", folder_.string(), " && ", before, " && ", WEFT_COMMAND, " ", arguments);
    const int status = std::system(str(line, " >out 2>err").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content(at("out")), content(at("err"))};
  }

  void expect_refused(const std::string& arguments, const std::string& what, const std::string& fix) const {
    const Ran ran = weft(arguments);
    EXPECT_EQ(ran.code, 2) << arguments << ran.out;
    EXPECT_THAT(ran.err, AllOf(StartsWith("error: "), HasSubstr(what), HasSubstr(fix))) << arguments;
  }

 private:
  std::filesystem::path folder_;
};

const Array kX({{"a", 4}, {"b", 2}}, {1, 2, 3, 4, 5, 6, 7, 8}, DType::kF32);

TEST_F(RunCommand, TakesNpyAndShowsOutputs) {
  write_npy(at("x.npy"), kX);
  const Ran ran = weft("run p.weft --inputs x.npy --steps 3");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(StartsWith("mesh data:2 (2 processors), 2 instructions, 3 steps, "),
                             HasSubstr("1 of 1 variables started at zero\n"),
                             HasSubstr("output y f32 [a=4 b=2]: min 3, max 10, mean 6.5; first 3 4 5 6 7 8 9 10\n")));
  write_npy(at("other.npy"), kX);
  EXPECT_THAT(weft("run p.weft --inputs x=other.npy").out, HasSubstr("first 1 2 3"));
}

TEST_F(RunCommand, TakesAndWritesSafetensors) {
  write_safetensors(at("in.safetensors"),
                    {{"x", kX}, {"n", Array({{"b", 2}}, {10, 20}, DType::kF64)}, {"stray", Array()}});
  const Ran ran =
      weft("run p.weft --inputs in.safetensors --steps 2 --outputs o.safetensors --variables v.safetensors --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json["processors"], 2);
  EXPECT_EQ(json["unused"], Json::array({"stray"}));
  EXPECT_EQ(json["outputs"][0]["name"], "y");
  EXPECT_EQ(json["outputs"][0]["shape"], Json::parse(R"([{"dim":"a","size":4},{"dim":"b","size":2}])"));
  EXPECT_EQ(json["outputs"][0]["first"][0], 12);
  EXPECT_EQ(json["variables"][0]["max"], 22);
  EXPECT_EQ(TensorFile::open(at("o.safetensors")).read("y", {"a", "b"}).values(),
            (std::vector<double>{12, 23, 14, 25, 16, 27, 18, 29}));
  EXPECT_EQ(TensorFile::open(at("v.safetensors")).read("n", {"b"}).values(), (std::vector<double>{12, 22}));
  EXPECT_THAT(weft("run p.weft --inputs in.safetensors").out, HasSubstr("unused stray: no input or variable\n"));
}

TEST_F(RunCommand, RunsWhatExplainWrites) {
  for (const char* model : {"two_layer --set batch=4,io=8,hidden=8",
                            "transformer --set batch=2,d_ff=8,d_kv=4,d_model=8,heads=2,layers=1,length=4,vocab=8"}) {
    const Ran explained = weft(str("explain ", model, " --machine h200x8 --program model.weft"));
    ASSERT_EQ(explained.code, 0) << explained.err;
    const Ran ran = weft("run model.weft --random-inputs 1 --random-variables 2 --steps 2 --json");
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_FALSE(Json::parse(ran.out)["outputs"].empty());
  }
  EXPECT_EQ(weft("explain two_layer --machine h200x8 --program no/such/folder").code, 3);
  EXPECT_THAT(content(at("err")), HasSubstr("cannot write the program to 'no/such/folder'"));
}

TEST_F(RunCommand, SaysWhatIsStrange) {
  const double inf = std::numeric_limits<double>::infinity();
  write_npy(at("x.npy"), Array({{"a", 4}, {"b", 2}}, {1, inf, 3, inf - inf, 5, 6, 7, 8}, DType::kF32));
  EXPECT_THAT(weft("run p.weft --inputs x.npy").out,
              HasSubstr("min 1, max 8, mean 5; 2 infinite or not a number; first 1 inf 3"));
}

TEST_F(RunCommand, EndsWellWhereTheSystemHasNoMoreThreads) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer does not start under such a limit";
#endif
  std::ofstream(at("wide.weft")) << "weft program 1\nmesh p:512\nend\n";
  EXPECT_EQ(weft("run wide.weft").code, 0);
  const Ran ran = weft("run wide.weft", "ulimit -s 1000000000");  // no 512 stacks of 1 TB fit the address space
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("the system gave "), HasSubstr(" threads, but 512 processors need one each: "),
                             HasSubstr("use a smaller mesh, or raise the limit of processes (ulimit -u)")));
}

TEST_F(RunCommand, RefusesWhatDoesNotFit) {
  expect_refused("run p.weft", "inputs are missing: x f32 [a=4 b=2]", "--random-inputs SEED");
  expect_refused("run p.weft --inputs no.npy", "cannot open the file 'no.npy'", "that you may read");
  write_npy(at("x.npy"), Array({{"a", 2}, {"b", 4}}, DType::kF32));
  expect_refused("run p.weft --inputs x.npy", "'x' is f32 [a=4 b=2] in the program, but <f4 [2 4] in the file",
                 "give a file with these sizes, in this order, and this kind of dtype");
  write_npy(at("x.npy"), Array({{"a", 4}, {"b", 2}}, DType::kI32));
  expect_refused("run p.weft --inputs x.npy", "but <i4 [4 2] in the file", "this kind of dtype");
  write_npy(at("x.npy"), kX);
  expect_refused("run p.weft --inputs x.npy x=x.npy", "'x' is in two of the files", "give each value once");
  write_safetensors(at("in.safetensors"), {{"x", kX}, {"y", kX}});
  expect_refused("run p.weft --inputs x=in.safetensors",
                 "'x=in.safetensors' names the tensor of a file that has 2 tensors",
                 "give the file alone: its tensors have names");
  expect_refused("run x.npy", "the text has no version line", "begin it with: weft program 1");
  std::ofstream(at("q.weft")) << "weft program 1\nmesh\ninput x %0 f32 []\noutput x %0\noutput x %0\nend\n";
  expect_refused("run q.weft --random-inputs 1 --outputs o.safetensors",
                 "the program has two outputs 'x', and a file has one tensor of a name",
                 "rename one of them in the program's text");
}

}  // namespace
}  // namespace weft::run_command_test
