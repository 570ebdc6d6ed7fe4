// The nccl wire on a real card: two processes on one card, which NCCL takes for two hosts because their NCCL_HOSTID
// differ. Suites that begin with Gpu need a card and are skipped where there is none.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/str.h"
#include "runtime/cuda/nccl_collectives.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/cuda/open.h"
#include "runtime/cuda/prelude.h"
#include "runtime/cuda/text.h"
#include "runtime/host/strided.h"
#include "weft/weft.h"

namespace weft::cuda_nccl_test {
namespace {

constexpr const char* kOut = "WEFT_TEST_NCCL_OUT";    // the file that a rank writes
constexpr const char* kMesh = "WEFT_TEST_NCCL_MESH";  // "data:2" or "model:2"
constexpr const char* kStop = "WEFT_TEST_NCCL_STOP";  // this rank ends after the first step

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

// Three steps of a small network, with all kinds of collectives among them: the loss of each, then a variable.
std::vector<double> train(const std::string& mesh, const wire::Choice& wire, bool stops = false) {
  Graph g;
  const Dim batch{"batch", 8}, width{"width", 16}, hidden{"hidden", 32}, classes{"classes", 8};
  const Tensor x = g.input("x", {batch, width});
  const Tensor w = g.variable("w", {width, hidden}, init::normal(0.3));
  const Tensor v = g.variable("v", {hidden, classes}, init::normal(0.3));
  const Tensor h = tanh(einsum({x, w}, {batch, hidden}));
  const Tensor whole = with_layout(h, "hidden:- batch:-");
  const Tensor p = softmax(einsum({whole, v}, {batch, classes}), classes);
  const Tensor loss = reduce_sum(p * log(p)) + reduce_max(h);
  Session session(Mesh::parse(mesh), wire, device::cuda(), {.deadline_seconds = 20});
  const Tensors slopes = gradients({loss}, {w, v});
  Executable step =
      session.compile(g, Layout::parse("batch:data? hidden:model? classes:model?"),
                      {.fetch = {loss}, .update = {assign_add(w, -0.1 * slopes[0]), assign_add(v, -0.1 * slopes[1])}});
  Array values({batch, width}, DType::kF32);
  for (std::int64_t i = 0; i < values.elements(); ++i) values.set(i, static_cast<double>(i % 7) * 0.1 - 0.3);
  std::vector<double> all;
  for (int i = 0; i < 3; ++i) {
    all.push_back(step.run({{x, values}}).scalar(loss));
    if (stops) _exit(0);
  }
  const Array final_w = session.value("w");
  for (std::int64_t i = 0; i < final_w.elements(); ++i) all.push_back(final_w.at(i));
  return all;
}

// One rank of a job that the suite GpuNccl starts.
TEST(GpuNcclRank, Trains) {
  if (variable(kOut).empty()) GTEST_SKIP() << "not a rank of a job";
  std::ofstream out(variable(kOut));
  try {
    for (const double value : train(variable(kMesh), wire::nccl(), variable(kStop) == variable("WEFT_NCCL_RANK")))
      out << std::hexfloat << value << "\n";
  } catch (const Error& error) {
    out << error.what();
  }
}

TEST(CudaNccl, ItsKernelsCompile) {
  std::string source = cuda::kernel_prelude();
  source += str(
      "extern \"C\" __global__ void progress(volatile unsigned long long* steps, volatile unsigned long long* number, "
      "long long value) {\n",
      cuda::kProgressText, "}\n");
  int kernels = 0;
  const Shape shape({{"a", 4}, {"b", 6}});
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64})
    for (const Reduce how : {Reduce::kMax, Reduce::kMin})
      source += str("extern \"C\" __global__ void reduce", kernels++, "(const ", cuda::stored_type(dtype), "* x, ",
                    cuda::stored_type(dtype), "* y) {\nconst long long i = threadIdx.x;\n",
                    cuda::gathered_reduction_text(dense_view(nullptr, dtype, shape), 1, 3, 3, how), "}\n");
  const std::string ptx = cuda::compile_to_ptx(source, "sm_90");
  EXPECT_NE(ptx.find(".visible .entry progress("), std::string::npos);
  EXPECT_NE(ptx.find(str(".visible .entry reduce", kernels - 1, "(")), std::string::npos);
}

// Rank 1 of three members: its block of every member's blocks.
TEST(CudaNccl, ReducesGatheredBlocksInRankOrder) {
  const TensorView result = dense_view(nullptr, DType::kF32, Shape({{"a", 4}}));
  EXPECT_NE(cuda::gathered_reduction_text(result, 1, 3, 3, Reduce::kMax)
                .find("JoinMax()(JoinMax()((float)widen(get(x[4ll + i])), (float)widen(get(x[16ll + i]))), "
                      "(float)widen(get(x[28ll + i])))"),
            std::string::npos);
}

class GpuNccl : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_library().has_card) GTEST_SKIP() << cuda_library().found;
    folder_ = (std::filesystem::temp_directory_path() / str("weft-gpu-nccl-", getpid())).string();
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  // What the two ranks write.
  std::vector<std::string> run(const std::string& mesh, const std::string& host_ids, const std::string& stop = "-") {
    const std::string program = std::filesystem::canonical("/proc/self/exe").string();
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 2; ++rank)
      ranks.emplace_back([&, rank] {
        const std::string command = str(
            "CUDA_VISIBLE_DEVICES=0 NCCL_SOCKET_IFNAME=lo WEFT_NCCL_SIZE=2 WEFT_NCCL_TIMEOUT=60 WEFT_NCCL_RANK=", rank,
            " WEFT_NCCL_FILE=", folder_, "/job ", kMesh, "=", mesh, " ", kStop, "=", stop, " ", kOut, "=", out(rank),
            " ", host_ids.empty() ? "" : str("NCCL_HOSTID=", host_ids[static_cast<std::size_t>(rank)]), " timeout 120 ",
            program, " --gtest_filter=GpuNcclRank.* > /dev/null 2>&1");
        if (std::system(command.c_str()) != 0 && stop == "-") ADD_FAILURE() << command;
      });
    for (std::thread& rank : ranks) rank.join();
    std::vector<std::string> texts;
    for (int rank = 0; rank < 2; ++rank) {
      std::ifstream in(out(rank));
      texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
    return texts;
  }

 private:
  std::string out(int rank) const { return str(folder_, "/out", rank); }
  std::string folder_;
};

TEST_F(GpuNccl, TwoProcessesTrainAsOneDoes) {
  for (const char* mesh : {"data:2", "model:2"}) {
    SCOPED_TRACE(mesh);
    const std::vector<double> want = train(mesh, wire::threads());
    const std::vector<std::string> got = run(mesh, "ab");
    EXPECT_EQ(got[0], got[1]);
    std::istringstream lines(got[0]);
    std::string line;
    std::size_t i = 0;
    for (; std::getline(lines, line); ++i) {
      ASSERT_LT(i, want.size()) << line;
      EXPECT_NEAR(std::strtod(line.c_str(), nullptr), want[i], 2e-5) << "value " << i;
    }
    EXPECT_EQ(i, want.size()) << got[0];
  }
}

TEST_F(GpuNccl, ARankThatEndsIsReported) {
  const std::vector<std::string> got = run("data:2", "ab", "1");
  EXPECT_NE(got[0].find("processor 1 (data=1) is gone: its process "), std::string::npos) << got[0];
}

TEST_F(GpuNccl, TwoRanksOnOneCardAreRefused) {
  for (const std::string& text : run("data:2", ""))
    EXPECT_NE(text.find("ranks 0 and 1 would share one card"), std::string::npos) << text;
}

}  // namespace
}  // namespace weft::cuda_nccl_test
