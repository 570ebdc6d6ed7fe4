// The CUDA engine through a Session. Suites that begin with Gpu need a card and are skipped where there is none; elsewhere
// the engine says why it cannot be used.
#include <gtest/gtest.h>

#include "runtime/cuda/open.h"
#include "runtime/engine.h"
#include "support/expect_error.h"
#include "support/processes.h"
#include "support/processor_list.h"
#include "weft/weft.h"

namespace weft::cuda_session_test {
namespace {

bool has_card() { return cuda_library().has_card; }

TEST(CudaDevice, SaysWhyItCannotBeUsed) {
  EXPECT_FALSE(cuda_library().found.empty());
  if (has_card()) GTEST_SKIP() << "this machine has a card: " << cuda_library().found;
  EXPECT_USER_ERROR(Session(Mesh(), wire::threads(), device::cuda()),
                    "the device 'cuda' cannot be used: ", "--device cpu");
}

TEST(CudaDevice, TheNcclWireNeedsACardToo) {
  if (has_card()) GTEST_SKIP() << "this machine has a card: " << cuda_library().found;
  EXPECT_USER_ERROR(Session(Mesh(), wire::nccl(), device::cuda()),
                    "the device 'cuda' cannot be used: ", "--device cpu");
  EXPECT_NE(cuda_library().nccl.find("NCCL"), std::string::npos);
}

TEST(CudaDevice, TheNcclWireIsNotInEveryBuild) {
  const CudaLibrary& cuda = cuda_library();
  if (cuda.nccl.find("nccl.h was not there") == std::string::npos) GTEST_SKIP() << "this build has the wire";
  EXPECT_USER_ERROR(cuda.make_nccl_wire(2), "this build has no wire nccl: nccl.h was not there when it was built",
                    "install libnccl-dev and build again");
}

// A card per processor: what packs the operands of collectives is planned, and said without a card.
TEST(CudaDevice, PlansTheCollectivesOfNcclWithoutACard) {
  Graph g;
  const Dim rows{"rows", 64}, columns{"columns", 512};
  const Tensor x = g.input("x", {rows, columns}), w = g.variable("w", {rows, columns}, init::normal(0.1));
  const Tensor whole = with_layout(x * w, "columns:-");
  const auto planned = [&](bool over_nccl) {
    return explain(g, Mesh::parse("p:2"), Layout::parse("columns:p"), {.fetch = {reduce_max(whole, {rows})}},
                   Machine::uniform(1e12, 1e12), {}, {.name = "cuda", .over_nccl = over_nccl});
  };
  // The all_gather along the inner dim arrives in rank order.
  EXPECT_LT(planned(false).workspace_bytes, 64 * 512);
  EXPECT_EQ(planned(true).workspace_bytes, 64 * 512 * 4);
}

class GpuSession : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_card()) GTEST_SKIP() << cuda_library().found;
  }
};

// Two steps of a small network with random numbers; results, then variables.
std::vector<Array> train(const device::Choice& device, const std::string& mesh, const std::string& layout) {
  Graph g;
  const Dim batch{"batch", 8}, width{"width", 16}, hidden{"hidden", 32}, classes{"classes", 8};
  const Tensor x = g.input("x", {batch, width});
  const Tensor w = g.variable("w", {width, hidden}, init::normal(0.3));
  const Tensor v = g.variable("v", {hidden, classes}, init::normal(0.3));
  const Tensor noise = random_uniform(g, {batch, hidden}, 0, 0.1);
  const Tensor h = tanh(einsum({x, w}, {batch, hidden}) + noise);
  const Tensor p = softmax(einsum({h, v}, {batch, classes}), classes);
  const Tensor loss = reduce_sum(p * log(p));
  Session session(Mesh::parse(mesh), wire::threads(), device);
  const Tensors slopes = gradients({loss}, {w, v});
  Executable step = session.compile(
      g, Layout::parse(layout),
      {.fetch = {loss, p}, .update = {assign_add(w, -0.1 * slopes[0]), assign_add(v, -0.1 * slopes[1])}});
  Array values({batch, width}, DType::kF32);
  for (std::int64_t i = 0; i < values.elements(); ++i) values.set(i, static_cast<double>(i % 7) * 0.1 - 0.3);
  step.run({{x, values}});
  const Values out = step.run({{x, values}});
  return {out[loss], out[p], session.value("w"), session.value("v")};
}

TEST_F(GpuSession, TrainsAsTheReferenceDoes) {
  const std::vector<Array> want = train(device::reference(), "", "");
  for (const auto& [mesh, layout] :
       {std::pair{"", ""}, {"data:2", "batch:data"}, {"data:2 model:2", "batch:data hidden:model"}}) {
    SCOPED_TRACE(mesh);
    const std::vector<Array> got = train(device::cuda(), mesh, layout);
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_LE(relative_difference(got[i], want[i]), 2e-5) << "result " << i;
  }
}

TEST_F(GpuSession, GivesTheSameBitsInEveryRun) {
  const std::vector<Array> one = train(device::cuda(), "data:2", "batch:data"),
                           two = train(device::cuda(), "data:2", "batch:data");
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].values(), two[i].values()) << "result " << i;
}

TEST_F(GpuSession, RefusesProcessorsOfOtherProcesses) {
  const std::shared_ptr<comm::Wire> wire = comm::make_threads_wire(2);
  const auto open = [&] {
    SessionState::open(Mesh::parse("p:2"), std::make_unique<test::OneOfMany>(wire, test::processors({0})),
                       engine_named("cuda", "a test"), {});
  };
  EXPECT_USER_ERROR(open(), "the device 'cuda' reaches processors in other processes by the wire nccl only",
                    "use wire::nccl(), --wire nccl: one process per card; or wire::threads(): all processors of the "
                    "mesh on one card");
}

}  // namespace
}  // namespace weft::cuda_session_test
