// A session whose process holds only some of the mesh's processors, without MPI: each "process" is a thread with its
// own session that meets the others on one wire.
#include <gtest/gtest.h>

#include <latch>
#include <mutex>

#include "base/str.h"
#include "network.h"
#include "runtime/host/host_engine.h"
#include "support/expect_error.h"
#include "support/processes.h"
#include "weft/detail/session_access.h"

namespace weft::processes_test {
namespace {

using test::as_processes;

void expect_no_errors(const std::vector<std::exception_ptr>& errors) {
  for (const std::exception_ptr& error : errors) {
    if (!error) continue;
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& thrown) {
      ADD_FAILURE() << thrown.what();
    }
  }
}

class Processes : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Counts, Processes, ::testing::Values(1, 2, 4), ::testing::PrintToStringParamName());

// Not only the numbers of threads: their very bits, in every process.
TEST_P(Processes, GiveTheBitsOfThreads) {
  const Mesh mesh = Mesh::parse("data:2 model:2");
  for (const char* layout : {"", "batch:data", "hidden:model", "batch:data hidden:model", "hidden:data+model",
                             "batch:model io:data", "hidden:model+data"}) {
    Session threads(mesh, wire::threads());
    const Trained want = train(threads, layout);
    EXPECT_EQ(want.metrics.size(), 1u);
    std::mutex mutex;
    expect_no_errors(as_processes(GetParam(), 4, [&](int process, std::unique_ptr<comm::Wire> wire) {
      Session session = SessionState::open(mesh, std::move(wire), cpu_engine(), {});
      const Trained got = train(session, layout);
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(got == want) << "process " << process << ", layout \"" << layout << "\"";
    }));
  }
}

TEST_P(Processes, HoldOnlyTheirOwnShards) {
  const Mesh mesh = Mesh::parse("p:4");
  expect_no_errors(as_processes(GetParam(), 4, [&](int, std::unique_ptr<comm::Wire> wire) {
    const std::vector<ProcessorId> mine = wire->local();
    const auto processors = std::make_shared<Processors>(mesh, std::move(wire), reference_engine());
    Session session = SessionState::open(processors, {});
    train(session, "hidden:p");
    EXPECT_EQ(processors->local(), mine);
    for (const detail::VariableShard& shard : detail::shards(session))
      EXPECT_EQ(std::count(mine.begin(), mine.end(), shard.processor), 1) << shard.variable;
    for (const ProcessorId p : mine) EXPECT_GT(processors->device(p).allocated(MemoryUse::kVariables), 0) << p;
  }));
}

// More than the memory through which shards travel, and pieces that end in the middle of a row.
TEST_P(Processes, GatherLargeVariablesInPieces) {
  const Mesh mesh = Mesh::parse("data:2 model:2");
  const Dim a{"a", 516}, b{"b", 1026};
  Array values({a, b}, DType::kF32);
  for (std::int64_t i = 0; i < values.elements(); ++i) values.set(i, static_cast<double>(i));
  static_assert(516 * 1026 * sizeof(float) > 2 * Gatherer::kStagingBytes);
  for (const char* layout : {"a:data b:model", "b:model", "a:model+data"})
    expect_no_errors(as_processes(GetParam(), 4, [&](int process, std::unique_ptr<comm::Wire> wire) {
      Graph g;
      const Tensor big = g.variable("big", {a, b}, init::values(values));
      Session session = SessionState::open(mesh, std::move(wire), reference_engine(), {});
      Executable step = session.compile(g, Layout::parse(layout), {.fetch = {big}, .update = {assign_add(big, big)}});
      EXPECT_TRUE(same_bits(step.run()[big], values)) << "process " << process << ", layout " << layout;
      const Array twice = session.value("big");
      EXPECT_EQ(twice.at(twice.elements() - 1), 2.0 * static_cast<double>(twice.elements() - 1));
      session.set_value("big", values);
      EXPECT_TRUE(same_bits(session.value("big"), values));
    }));
}

TEST_P(Processes, PrintInTheFirstOnly) {
  const Mesh mesh = Mesh::parse("p:4");
  std::vector<int> lines(static_cast<std::size_t>(GetParam()));
  expect_no_errors(as_processes(GetParam(), 4, [&](int process, std::unique_ptr<comm::Wire> wire) {
    int& mine = lines[static_cast<std::size_t>(process)];
    Session session =
        SessionState::open(mesh, std::move(wire), reference_engine(), {.print = [&](const std::string&) { ++mine; }});
    Graph g;
    const Tensor x = print(g.variable("x", {{"a", 4}}, init::ones()), "x");
    Executable step = session.compile(g, Layout::parse("a:p"), {.fetch = {x}});
    step.run();
    step.run();
  }));
  EXPECT_EQ(lines[0], 2);
  for (int process = 1; process < GetParam(); ++process) EXPECT_EQ(lines[static_cast<std::size_t>(process)], 0);
}

TEST_P(Processes, AreRefusedAlikeAndGoOn) {
  const Mesh mesh = Mesh::parse("p:4");
  expect_no_errors(as_processes(GetParam(), 4, [&](int, std::unique_ptr<comm::Wire> wire) {
    Session session = SessionState::open(mesh, std::move(wire), reference_engine(), {});
    const Network net;
    EXPECT_THROW(session.compile(net.g, Layout::parse("batch,hidden:p"), {.fetch = {net.loss}}), UserError);
    Executable step = session.compile(net.g, Layout::parse("batch:p"), {.fetch = {net.loss}});
    EXPECT_THROW(step.run(), UserError);
    EXPECT_THROW(session.value("u"), UserError);
    EXPECT_GT(step.run(net.feeds()).scalar(net.loss), 0);
  }));
}

// One report for all: whoever reads it learns what failed, where and in which line.
TEST(ProcessFailure, EndsAllWithOneReport) {
  const Mesh mesh = Mesh::parse("data:2 model:2");
  KernelTable table = reference_engine().table();
  table.kernels["contract"] = [](const KernelArgs& args) -> Kernel {
    const Kernel contract = reference_engine().table().kernels.at("contract")(args);
    return [contract, p = args.processor](const StepState& state) {
      if (p == ProcessorId(2)) throw std::runtime_error("a cosmic ray");
      contract(state);
    };
  };
  const HostEngine failing("failing", table, reference_engine().target(), false);
  std::vector<std::string> texts(4);
  const auto errors = as_processes(4, 4, [&](int process, std::unique_ptr<comm::Wire> wire) {
    Session session = SessionState::open(mesh, std::move(wire), failing, {.deadline_seconds = 60});
    const Network net;
    try {  // a process may still be compiling when it learns of the failure
      session.compile(net.g, Layout::parse("batch:data hidden:model"), {.fetch = {net.loss}}).run(net.feeds());
    } catch (const RunError& error) {
      texts[static_cast<std::size_t>(process)] = error.what();
    }
    EXPECT_RUN_ERROR(session.value("w"), "this session is unusable since a run failed: ", "a cosmic ray");
  });
  expect_no_errors(errors);
  for (const std::string& text : texts)
    EXPECT_EQ(test::missing_pieces(
                  text, {"contract of ", " failed: a cosmic ray", "processor 2 (data=1 model=0)", "network.h:"}),
              "");
}

TEST(ProcessFailure, ReachesThoseWhoGather) {
  const Mesh mesh = Mesh::parse("p:2");
  std::latch compiled(2);
  const auto errors = as_processes(2, 2, [&](int process, std::unique_ptr<comm::Wire> wire) {
    comm::Wire& shared = *wire;
    Session session = SessionState::open(mesh, std::move(wire), reference_engine(), {.deadline_seconds = 60});
    Graph g;
    const Tensor x = g.variable("x", {{"a", 4}}, init::ones());
    session.compile(g, Layout::parse("a:p"), {.fetch = {x}});
    compiled.arrive_and_wait();
    if (process == 0)
      return shared.abort(
          {.kind = comm::Failure::Kind::kProcessor, .processor = ProcessorId(0), .cause = "the host is going down"});
    EXPECT_RUN_ERROR(session.value("x"), "error: processor 0 (p=0) failed: the host is going down\n",
                     "; seen by processor 1 (p=1) ", "of variable 'x', Session::value");
    EXPECT_RUN_ERROR(session.value("x"), "this session is unusable", "the host is going down");
  });
  expect_no_errors(errors);
}

TEST(ProcessFailure, OfOneThatDoesNotComeToGather) {
  const Mesh mesh = Mesh::parse("p:2");
  const auto errors = as_processes(2, 2, [&](int process, std::unique_ptr<comm::Wire> wire) {
    Session session = SessionState::open(mesh, std::move(wire), reference_engine(), {.deadline_seconds = 1});
    Graph g;
    const Tensor x = g.variable("x", {{"a", 4}}, init::ones());
    session.compile(g, Layout::parse("a:p"), {.fetch = {x}});
    if (process == 0) return;
    EXPECT_RUN_ERROR(session.value("x"),
                     "all_gather 'of variable 'x', Session::value' waited 1 s for processor 0 (p=0)");
  });
  expect_no_errors(errors);
}

// Who compiles another program, or has another seed, is found out before anything runs.
TEST(ProcessDisagreement, OnTheProgram) {
  const Mesh mesh = Mesh::parse("data:2 model:2");
  expect_no_errors(as_processes(4, 4, [&](int process, std::unique_ptr<comm::Wire> wire) {
    Session session = SessionState::open(mesh, std::move(wire), reference_engine(), {});
    const Network net;
    const Layout layout = Layout::parse(process == 2 ? "batch:data" : "batch:model");
    EXPECT_USER_ERROR(session.compile(net.g, layout, {.fetch = {net.loss}}),
                      "processor 2 (data=1 model=0) compiled another program than processor 0 (data=0 model=0), or has "
                      "another seed",
                      str("where: Session::compile, layout \"", layout.text(), "\", mesh data:2 model:2"),
                      "fix:   let every process make the same calls in the same order, with the same graph, layout, "
                      "options and seed; none of them may depend on the process, its host or the time");
    EXPECT_NO_THROW(session.compile(net.g, Layout(), {.fetch = {net.loss}}));
  }));
}

TEST(ProcessDisagreement, OnTheSeed) {
  const Mesh mesh = Mesh::parse("p:2");
  expect_no_errors(as_processes(2, 2, [&](int process, std::unique_ptr<comm::Wire> wire) {
    Session session = SessionState::open(mesh, std::move(wire), reference_engine(), {.seed = process == 1 ? 5u : 4u});
    const Network net;
    EXPECT_USER_ERROR(session.compile(net.g, Layout(), {.fetch = {net.loss}}), "processor 1 (p=1) compiled another");
  }));
}

TEST(ProcessCount, MustBeTheMeshs) {
  const auto open = [](const char* mesh, int processes) {
    SessionState::open(Mesh::parse(mesh), comm::make_threads_wire(processes), reference_engine(), {});
  };
  EXPECT_USER_ERROR(open("data:2 model:2", 2), "mesh data:2 model:2 has 4 processors, but mpirun started 2 processes",
                    "where: Session, wire::mpi()", "fix:   run `mpirun -n 4 …`, or choose a mesh of 2");
  EXPECT_USER_ERROR(open("", 3), "mesh \"\" has 1 processor, but mpirun started 3 processes");
  EXPECT_USER_ERROR(open("p:2", 1), "mesh p:2 has 2 processors, but mpirun started 1 process\n");
}

}  // namespace
}  // namespace weft::processes_test
