// Every kind of collective × a processor that throws in it or never comes to it, through a Session: all processors end,
// and one report names the processor by its coordinates, the collective, the tensor and the user's line.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "api/state.h"
#include "base/str.h"
#include "runtime/host/host_engine.h"
#include "runtime/processor_names.h"
#include "support/expect_error.h"
#include "support/processes.h"
#include "support/processor_list.h"
#include "support/soak.h"
#include "weft/weft.h"

namespace weft::faults_test {
namespace {

enum class How { kThrow, kThrowOurs, kStall };

struct Fault {
  std::string kind;
  How how = How::kThrow;
  ProcessorId processor = ProcessorId(3);
  double deadline_seconds = 60;
  bool comes_back = true;  // one that stalls: as soon as another of its process has given up
  double stalls_seconds = 600;
};

// What the kernels of a faulty engine share with the test.
struct Control {
  std::atomic<bool> released{false}, ended{false};
};

// The reference engine with a fault in one kind of collective.
HostEngine faulty(const Fault& fault, const std::shared_ptr<Control>& control) {
  KernelTable table = reference_engine().table();
  for (const char* kind : {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "permute"})
    table.collectives[kind] = [=, is_faulty = fault.kind == kind](const KernelArgs& args) -> BoundCollective {
      const BoundCollective good = reference_engine().table().collectives.at(kind)(args);
      const bool fails = is_faulty && args.processor == fault.processor;
      const auto watched = [=](const Kernel& half, const StepState& state) {
        try {
          half(state);
        } catch (...) {
          if (fault.comes_back) control->released = true;
          control->ended = control->ended || fails;
          throw;
        }
      };
      return {[=](const StepState& state) {
                if (fails && fault.how == How::kThrow) throw std::runtime_error("the fuse blew");
                if (fails && fault.how == How::kThrowOurs)
                  throw RunError({.code = "test.fuse", .what = "the fuse blew", .where = "cellar", .fix = "change it"});
                const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(fault.stalls_seconds);
                while (fails && !control->released && std::chrono::steady_clock::now() < end)
                  std::this_thread::sleep_for(std::chrono::milliseconds(1));
                watched(good.start, state);
              },
              [=](const StepState& state) { watched(good.done, state); }};
    };
  return HostEngine("faulty", std::move(table), reference_engine().target(), false);
}

// A program on a 2x2 mesh with all five kinds of collectives, and the tensor and line that each is put down to.
class Faults : public ::testing::Test {
 protected:
  struct Cause {
    std::string tensor;
    int line;
  };

  Faults() {
    const Tensor w = g.variable("w", {a, b}, init::ones()), u = g.variable("u", {a, c}, init::ones());
    causes["all_gather"] = {"whole", __LINE__ + 1};
    const Tensor whole = with_layout(w, "b:-").named("whole");
    causes["all_to_all"] = {"turned", __LINE__ + 1};
    const Tensor turned = with_layout(u, "a:- c:data").named("turned");
    causes["permute"] = {"shifted", __LINE__ + 1};
    const Tensor shifted = shift(w, a, 1, true).named("shifted");
    causes["reduce_scatter"] = {"scattered", __LINE__ + 1};
    const Tensor scattered = with_layout(einsum({w, rename(w, a, "c")}, {a, c}), "c:model a:-").named("scattered");
    causes["all_reduce"] = {"sum", __LINE__ + 1};
    const Tensor sum = reduce_sum(w).named("sum");
    fetch = {whole, turned, shifted, scattered, sum};
  }

  Session open(const Engine& engine, double deadline_seconds) {
    std::unique_ptr<comm::Wire> wire = test::ranks() > 0 ? comm::make_mpi_wire() : comm::make_threads_wire(4);
    return SessionState::open(mesh, std::move(wire), engine, {.deadline_seconds = deadline_seconds});
  }

  // The report of a run with this fault.
  std::string report(const Fault& fault) {
    const auto control = std::make_shared<Control>();
    const HostEngine engine = faulty(fault, control);
    Session session = open(engine, fault.deadline_seconds);
    try {  // a rank may still be compiling when it learns of the failure
      session.compile(g, layout, {.fetch = fetch}).run();
    } catch (const RunError& error) {
      return error.what();
    }
    return "the run did not fail";
  }

  void check(const Fault& fault) {
    SCOPED_TRACE(str(fault.kind, fault.how == How::kStall ? " stalls" : " throws", " on processor ", fault.processor));
    const std::string text = report(fault);
    const std::string who = str("processor ", fault.processor, " (", coordinates_text(mesh, fault.processor), ")");
    const Cause& cause = causes.at(fault.kind);
    EXPECT_EQ(test::missing_pieces(text, {who, fault.kind, str("'", cause.tensor), str("faults_test.cc:", cause.line)}),
              "");
    const std::string how = fault.how == How::kStall ? str("waited ", fault.deadline_seconds, " s for processor")
                                                     : str(fault.kind, " of '", cause.tensor);
    EXPECT_EQ(test::missing_pieces(text, {how, fault.how == How::kStall ? who : " failed: the fuse blew"}), "");
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << "four lines: " << text;
    EXPECT_EQ(text.find("left behind"), std::string::npos) << text;
  }

  const Mesh mesh = Mesh::parse("data:2 model:2");
  const Layout layout = Layout::parse("a:data b:model");
  const Dim a{"a", 4}, b{"b", 4}, c{"c", 4};
  Graph g;
  Tensors fetch;
  std::map<std::string, Cause> causes;
};

const char* const kKinds[] = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "permute"};

TEST_F(Faults, ProgramHasEveryKind) {
  Session session = open(reference_engine(), 60);
  Executable step = session.compile(g, layout, {.fetch = fetch});
  for (const char* kind : kKinds)
    EXPECT_NE(step.text().find(str(" = ", kind, " ")), std::string::npos) << kind << "\n" << step.text();
  EXPECT_EQ(step.run().scalar(fetch.back()), 16);
}

TEST_F(Faults, WhoeverThrowsIsNamed) {
  for (const char* kind : kKinds)
    for (const How how : {How::kThrow, How::kThrowOurs})
      for (const ProcessorId processor : test::processors({0, 3}))
        check({.kind = kind, .how = how, .processor = processor});
}

TEST_F(Faults, WhoeverStallsIsNamed) {
  for (const char* kind : kKinds)
    check({.kind = kind, .how = How::kStall, .processor = ProcessorId(2), .deadline_seconds = 2});
}

// The report comes although a processor does not: the session is given up, and ends when that processor does.
TEST_F(Faults, WhoeverNeverComesBackIsLeftBehind) {
  const auto control = std::make_shared<Control>();
  const HostEngine engine =
      faulty({.kind = "all_to_all", .how = How::kStall, .processor = ProcessorId(1), .comes_back = false}, control);
  const long others = control.use_count();
  {
    Session session = open(engine, 1);
    Executable step = session.compile(g, layout, {.fetch = fetch});
    EXPECT_RUN_ERROR(step.run(), "waited 1 s for processor", "processor 1 (data=0 model=1)",
                     "processor 1 (data=0 model=1) has not come back and is left behind");
    EXPECT_RUN_ERROR(step.run(), "this session is unusable");
    EXPECT_FALSE(control->ended);
  }
  control->released = true;
  for (int i = 0; i < 60000 && control.use_count() > others; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(control->ended);
  EXPECT_EQ(control.use_count(), others) << "the session was not freed";
}

// The same between ranks: every rank has the report, in its own words, and the next session works.
class MpiSessionFaults : public Faults {
 protected:
  void SetUp() override {
    if (test::ranks() != 4) GTEST_SKIP() << "WEFT_TEST_WIRE=mpi and 4 ranks are needed";
  }
};

TEST_F(MpiSessionFaults, WhoeverThrowsIsNamed) {
  for (const char* kind : kKinds)
    for (const How how : {How::kThrow, How::kThrowOurs})
      for (const ProcessorId processor : test::processors({0, 3}))
        check({.kind = kind, .how = how, .processor = processor});
}

TEST_F(MpiSessionFaults, WhoeverStallsIsNamed) {
  for (const char* kind : kKinds)
    check({.kind = kind, .how = How::kStall, .processor = ProcessorId(2), .deadline_seconds = 2, .stalls_seconds = 4});
}

class SoakFaults : public Faults {};

TEST_F(SoakFaults, FiveHundredRuns) {
  std::mt19937 random(1);
  for (int i = 0; i < test::soak_count(500) && !HasFailure(); ++i)
    check({.kind = kKinds[random() % std::size(kKinds)],
           .how = static_cast<How>(random() % 3),
           .processor = ProcessorId(random() % 4),
           .deadline_seconds = 2});
}

TEST(ProcessorNames, HaveCoordinates) {
  const Mesh mesh = Mesh::parse("data:2 model:3");
  const comm::ProcessorNames names = processor_names(mesh);
  EXPECT_EQ(processor_text(mesh, ProcessorId(4)), "processor 4 (data=1 model=1)");
  EXPECT_EQ(names.name(ProcessorId(4)), "4 (data=1 model=1)");
  EXPECT_EQ(names.mesh, " of mesh data:2 model:3");
  for (const int outside : {-1, 6}) EXPECT_EQ(names.name(ProcessorId(outside)), str(outside));
  EXPECT_EQ(processor_text(Mesh(), ProcessorId(0)), "processor 0");
  EXPECT_EQ(processor_names(Mesh()).mesh, "");
}

// A user's text is no part of the report's structure: it is copied, whatever it says.
TEST(Failure, TextOfTheUserIsOnlyCopied) {
  const std::string odd = "the wire was aborted: all_reduce waited 3 s for processor 1: waits in processors 0 1";
  Graph g;
  const Tensor w = g.variable("w", {{"a", 4}}, init::ones());
  const Tensor y = reduce_sum(print(w, "w"));
  Session session(Mesh::parse("p:2"), wire::threads(), device::reference(),
                  SessionOptions{.deadline_seconds = 60, .print = [&](const std::string&) {
                                   throw RunError({.code = odd, .what = odd, .where = odd, .fix = odd});
                                 }});
  Executable step = session.compile(g, Layout::parse("a:p"), {.fetch = {y}});
  try {
    step.run();
    FAIL() << "the run did not fail";
  } catch (const RunError& error) {
    EXPECT_EQ(error.text().what, str("host of 'host' failed: ", odd));
    EXPECT_TRUE(error.text().where.text.starts_with("processor 0 (p=0) of mesh p:2, tests/api/faults_test.cc:"))
        << error.text().where.text;
    EXPECT_EQ(error.text().where.text.find("; "), std::string::npos) << "the board is for hangs";
  }
}

}  // namespace
}  // namespace weft::faults_test
