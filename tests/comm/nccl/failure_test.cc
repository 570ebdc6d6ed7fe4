// Failures that only NCCL's wire has: NCCL reports an error, the process of a rank ends, a member never comes to the
// first collective, an abort ends what hangs on the device.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "base/index.h"
#include "base/str.h"
#include "fake_wire.h"
#include "support/processor_list.h"
#include "weft/error.h"

#include <gtest/gtest.h>

namespace weft::comm::nccl_failure_test {
namespace {

constexpr std::chrono::seconds kLong{30};
constexpr std::chrono::milliseconds kShort{300};

std::vector<ProcessorId> everyone(const Wire& wire) { return identity<ProcessorId>(at(wire.size())); }

std::string run_error(const std::function<void()>& body) {
  try {
    body();
  } catch (const RunError& error) {
    return error.what();
  }
  return "no RunError";
}

void expect_has(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in:\n" << text;
}

TEST(NcclFailure, AnErrorOfNcclReachesEveryone) {
  set_fake_failure(1, 4);
  on_fake_ranks(3, [](NcclWire& wire) {
    const std::unique_ptr<Group> group = wire.join(wire.me(), everyone(wire));
    std::vector<float> x(1000);
    const Buffer all{x.data(), x.size(), DType::kF32};
    const std::string text = run_error([&] {
      for (;;) all_reduce(*group, all, all, Reduce::kSum, "gradient of w1", kLong);
    });
    expect_has(text,
               {"all_reduce of 'gradient of w1' failed: NCCL reports an error: remote process exited or there was "
                "a network error: told by a test",
                "processor 1"});
  });
  set_fake_failure(-1, 0);
}

TEST(NcclFailure, AMemberNeverComesToTheFirstCollective) {
  on_fake_ranks(2, [](NcclWire& wire) {
    if (wire.me() == ProcessorId(1)) {
      std::this_thread::sleep_for(4 * kShort);
      expect_has(run_error([&] { wire.join(wire.me(), everyone(wire)); }), {"waited 0.3 s for processor 1 to come"});
      return;
    }
    const std::unique_ptr<Group> group = wire.join(wire.me(), everyone(wire));
    expect_has(run_error([&] { barrier(*group, "begin", kShort); }),
               {"barrier 'begin' waited 0.3 s for processor 1 to come; processor 1: no collective started yet"});
  });
}

// What hangs on the device ends, and the group's memory can go.
TEST(NcclFailure, AnAbortEndsWhatHangs) {
  on_fake_ranks(3, [](NcclWire& wire) {
    std::unique_ptr<Group> group = wire.join(wire.me(), everyone(wire));
    std::vector<float> x(100'000);
    const Buffer all{x.data(), x.size(), DType::kF32};
    barrier(*group, "all are here", kLong);
    expect_has(run_error([&] {
                 if (wire.me() == ProcessorId(2)) {
                   std::this_thread::sleep_for(kShort);
                   wire.abort("the disk is full");
                 }
                 all_reduce(*group, all, all, Reduce::kSum, "x", kLong);
               }),
               {"the disk is full"});
    const auto begin = std::chrono::steady_clock::now();
    group.reset();
    EXPECT_TRUE(wire.wait_for_abort());
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  });
}

// The communicators of programs are made once, and hang nobody.
TEST(NcclFailure, CommunicatorsOfPrograms) {
  on_fake_ranks(2, [](NcclWire& wire) {
    const std::shared_ptr<Communicator> made = wire.communicator(everyone(wire), kLong);
    EXPECT_EQ(made, wire.communicator(everyone(wire), kLong));
    EXPECT_EQ(made->size(), 2);
    EXPECT_EQ(made->rank(), wire.me().number());
    if (wire.me() == ProcessorId(0))
      expect_has(run_error([&] {
                   wire.communicator(test::processors({1, 0}), kShort);
                 }),
                 {"waited 0.3 s for processor 1 to come", "processor 0 joining the group of processors 1 0"});
    else std::this_thread::sleep_for(4 * kShort);
  });
}

// Two processes, of which one is killed in the middle of a job.
TEST(NcclFailure, AProcessIsKilled) {
  const std::string file = fresh_job_file();
  const std::string job = str(WEFT_NCCL_RANK, " ", file, " 2 ");
  for (const int killed : {0, 1}) {
    const int other = 1 - killed;
    std::thread victim([&] { EXPECT_NE(std::system(str(job, killed, " kill > /dev/null 2>&1").c_str()), 0); });
    const std::string out = str(file, ".out");
    const int status = std::system(str(job, other, " wait > ", out, " 2>&1").c_str());
    victim.join();
    EXPECT_EQ(WEXITSTATUS(status), 3);
    std::ifstream in(out);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    expect_has(text, {str("processor ", killed, " is gone: its process ")});
    std::filesystem::remove(out);
    std::filesystem::remove(file);
  }
}

}  // namespace
}  // namespace weft::comm::nccl_failure_test
