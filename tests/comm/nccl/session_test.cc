// Sessions over the nccl wire, on the stand-in for NCCL: every rank a thread with a session of its own on the reference
// engine, whose buffers are memory of the host.
#include <filesystem>
#include <thread>

#include "api/state.h"
#include "fake_wire.h"
#include "runtime/engine.h"
#include "weft/weft.h"

#include <gtest/gtest.h>

namespace weft::comm::nccl_session_test {
namespace {

struct Trained {
  double loss = 0;
  std::vector<double> weights;
};

Trained train(Session session, const std::string& layout, std::int64_t width_of_hidden) {
  Graph g;
  const Dim batch{"batch", 8}, width{"width", 16}, hidden{"hidden", width_of_hidden};
  const Tensor x = g.input("x", {batch, width});
  const Tensor w = g.variable("w", {width, hidden}, init::normal(0.3));
  const Tensor loss = reduce_sum(square(tanh(einsum({x, w}, {batch, hidden})))) + reduce_max(x);
  Executable step =
      session.compile(g, Layout::parse(layout), {.fetch = {loss}, .update = optim::sgd(loss, g.variables(), 0.1)});
  Array values({batch, width}, DType::kF32);
  for (std::int64_t i = 0; i < values.elements(); ++i) values.set(i, static_cast<double>(i % 7) * 0.1 - 0.3);
  Trained trained;
  for (int i = 0; i < 3; ++i) trained.loss = step.run({{x, values}}).scalar(loss);
  const Array final_w = session.value("w");
  for (std::int64_t i = 0; i < final_w.elements(); ++i) trained.weights.push_back(final_w.at(i));
  return trained;
}

Session open(const Mesh& mesh, const NcclJob& job) {
  return SessionState::open(mesh, std::make_unique<NcclWire>(job, fake_nccl(), fake_cuda()),
                            engine_named("reference", "a test"), {.deadline_seconds = 30});
}

// What every rank gives or throws.
template <class Body>
std::vector<std::string> on_ranks(int size, const Body& body) {
  const std::string file = fresh_job_file();
  std::vector<std::string> errors(static_cast<std::size_t>(size), "no error");
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(fake_job(rank, size, file));
      } catch (const Error& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::filesystem::remove(file);
  return errors;
}

TEST(NcclSession, TrainsAsOneProcessDoes) {
  const Trained want = train(Session(Mesh(), wire::threads(), device::reference()), "", 32);
  for (const auto& [mesh, layout] : {std::pair{"data:2", "batch:data"},
                                     {"model:4", "hidden:model"},
                                     {"data:2 model:2", "batch:data hidden:model"}}) {
    SCOPED_TRACE(mesh);
    const Mesh parsed = Mesh::parse(mesh);
    const auto check = [&, layout = layout](const NcclJob& job) {
      const Trained got = train(open(parsed, job), layout, 32);
      EXPECT_NEAR(got.loss, want.loss, 1e-4);
      ASSERT_EQ(got.weights.size(), want.weights.size());
      for (std::size_t i = 0; i < want.weights.size(); ++i) EXPECT_NEAR(got.weights[i], want.weights[i], 1e-5) << i;
    };
    for (const std::string& error : on_ranks(parsed.size(), check)) EXPECT_EQ(error, "no error");
  }
}

TEST(NcclSession, ProgramsThatDifferAreRefused) {
  const auto body = [](const NcclJob& job) {
    train(open(Mesh::parse("data:2"), job), "batch:data", job.rank == 1 ? 64 : 32);
  };
  for (const std::string& error : on_ranks(2, body))
    EXPECT_NE(error.find("compiled another program than processor 0"), std::string::npos) << error;
}

}  // namespace
}  // namespace weft::comm::nccl_session_test
