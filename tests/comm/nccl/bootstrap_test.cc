// How the ranks of an nccl job find each other, and what is said if they do not.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "base/str.h"
#include "comm/launch.h"
#include "fake_wire.h"
#include "weft/error.h"

#include <gtest/gtest.h>

namespace weft::comm::nccl_bootstrap_test {
namespace {

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void expect_has(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in:\n" << text;
}

// The errors of all jobs, each started on a thread of its own.
std::vector<std::string> started(const std::vector<NcclJob>& jobs) {
  std::vector<std::future<std::string>> results;
  for (const NcclJob& job : jobs)
    results.push_back(std::async(std::launch::async,
                                 [job] { return error_of([&] { NcclWire wire(job, fake_nccl(), fake_cuda()); }); }));
  std::vector<std::string> errors;
  for (std::future<std::string>& result : results) errors.push_back(result.get());
  return errors;
}

using Variables = std::vector<std::pair<const char*, std::string>>;

// Sets variables for the life of the object.
class Environment {
 public:
  explicit Environment(const Variables& variables) : variables_(variables) {
    for (const auto& [name, value] : variables_) setenv(name, value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : variables_) unsetenv(name);
  }

 private:
  const Variables variables_;
};

TEST(NcclBootstrap, RanksMeetAtAnAddress) {
  const std::string address = str("127.0.0.1:", 29000 + getpid() % 2000);
  std::vector<NcclJob> jobs;
  for (int rank = 2; rank >= 0; --rank) jobs.push_back({.rank = rank, .size = 3, .address = address});
  EXPECT_EQ(started(jobs), std::vector<std::string>(3, "no error"));
}

TEST(NcclBootstrap, AnOldFileIsNoHindrance) {
  const std::string file = fresh_job_file();
  std::ofstream(file) << "weft 1 77 127.0.0.1 end";
  EXPECT_EQ(started({fake_job(1, 2, file), fake_job(0, 2, file)}), std::vector<std::string>(2, "no error"));
  std::filesystem::remove(file);
}

// The processes make one wire after another at one address, and one of them is early every time.
TEST(NcclBootstrap, OneAddressServesManyWires) {
  const std::string address = str("127.0.0.1:", 27000 + getpid() % 2000);
  const auto rank = [&](int number) {
    for (int i = 0; i < 3; ++i) {
      NcclWire wire({.rank = number, .size = 2, .address = address}, fake_nccl(), fake_cuda());
      const std::unique_ptr<Group> group = wire.join(wire.me(), {ProcessorId(0), ProcessorId(1)});
      barrier(*group, "here", std::chrono::seconds(30));
      if (number == 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  };
  std::future<std::string> other = std::async(std::launch::async, [&] { return error_of([&] { rank(1); }); });
  EXPECT_EQ(error_of([&] { rank(0); }), "no error");
  EXPECT_EQ(other.get(), "no error");
}

// The port of an old file may belong to another job now.
TEST(NcclBootstrap, AHubOfAnotherJobIsNotJoined) {
  const std::string file = fresh_job_file();
  Hub another(Socket::listening(0), 2, 77, std::chrono::seconds(60));
  NcclJob job = fake_job(1, 2, file);
  job.patience = std::chrono::milliseconds(300);
  std::ofstream(file) << "weft " << another.port() << " 78 127.0.0.1 end";
  expect_has(started({job})[0], {"did not reach rank 0", "a process listens there that is not rank 0 of this job"});
  std::filesystem::remove(file);
}

TEST(NcclBootstrap, MissingRanksAreNamed) {
  const std::string file = fresh_job_file();
  NcclJob first = fake_job(0, 4, file), other = fake_job(2, 4, file);
  first.patience = std::chrono::milliseconds(600);
  const std::vector<std::string> errors = started({first, other});
  for (const std::string& error : errors)
    expect_has(error, {"ranks 1 3 of 4 did not come within 0.6 s",
                       "give them more time with WEFT_NCCL_TIMEOUT (seconds)", "nccl.ranks-missing"});
  std::filesystem::remove(file);
}

TEST(NcclBootstrap, RankZeroIsMissing) {
  NcclJob job = fake_job(1, 2, fresh_job_file());
  job.patience = std::chrono::milliseconds(200);
  expect_has(started({job})[0], {"rank 1 of 2 did not reach rank 0 at the address in ", "there is no such file yet",
                                 "see that rank 0 runs", "nccl.no-rank-0"});
  job.file.clear();
  job.address = "127.0.0.1:1";
  expect_has(started({job})[0], {"did not reach rank 0 at 127.0.0.1:1 within 0.2 s: Connection refused"});
}

TEST(NcclBootstrap, ThePortIsTaken) {
  const Socket taken = Socket::listening(0);
  const NcclJob job{.rank = 0, .size = 2, .address = str("127.0.0.1:", taken.port())};
  expect_has(started({job})[0], {str("rank 0 cannot listen on port ", taken.port(), ": Address already in use"),
                                 "name another port in WEFT_NCCL_ADDRESS, or end the process that holds it"});
}

TEST(NcclBootstrap, SizesThatDiffer) {
  const std::string file = fresh_job_file();
  for (const std::string& error : started({fake_job(0, 2, file), fake_job(1, 3, file)}))
    expect_has(error, {"rank 1 was started as one of 3 processes, but rank 0 as one of 2",
                       "give all processes the same WEFT_NCCL_SIZE and the same mesh"});
  std::filesystem::remove(file);
}

TEST(NcclBootstrap, ARankTwice) {
  const std::string file = fresh_job_file();
  for (const std::string& error : started({fake_job(0, 3, file), fake_job(1, 3, file), fake_job(1, 3, file)}))
    expect_has(error,
               {"two processes say that they are rank 1 of 3", "give every process another WEFT_NCCL_RANK, from 0 on"});
  std::filesystem::remove(file);
}

TEST(NcclBootstrap, MoreRanksThanDevices) {
  const std::string file = fresh_job_file();
  set_fake_devices(2);
  const std::vector<std::string> errors = started({fake_job(0, 3, file), fake_job(1, 3, file), fake_job(2, 3, file)});
  set_fake_devices(64);
  expect_has(
      errors[0],
      {"another host has more ranks than CUDA devices",
       "start at most one process per card of a host (mpirun --map-by ppr:8:node), and see CUDA_VISIBLE_DEVICES"});
  expect_has(errors[2], {"3 ranks run on host ", ", which has 2 CUDA devices"});
  std::filesystem::remove(file);
}

TEST(NcclBootstrap, TwoRanksOnOneDevice) {
  const std::string file = fresh_job_file();
  set_fake_devices(1);
  for (const std::string& error : started({fake_job(0, 2, file), fake_job(1, 2, file)}))
    expect_has(error,
               {"ranks 0 and 1 would share one card, on host ",
                "start as many processes per host as it has cards, and let CUDA_VISIBLE_DEVICES name all of them"});
  // For tests on one card: NCCL takes the processes for processes of two hosts.
  NcclJob first = fake_job(0, 2, file), second = fake_job(1, 2, file);
  first.host_id = "a", second.host_id = "b";
  EXPECT_EQ(started({first, second}), std::vector<std::string>(2, "no error"));
  set_fake_devices(64);
  std::filesystem::remove(file);
}

TEST(NcclBootstrap, ALibraryThatIsNotThereOrTooOld) {
  expect_has(error_of([] { open_nccl("/no/such/libnccl.so"); }),
             {"NCCL cannot be used: /no/such/libnccl.so: cannot open shared object file", "opening NCCL's library",
              "install NCCL 2.19.0 or newer (the package libnccl2), or name its file in WEFT_NCCL_LIBRARY"});
  const Environment old(Variables{{"WEFT_FAKE_NCCL_VERSION", "21803"}});
  expect_has(error_of([] {
               open_nccl(str(std::filesystem::path(WEFT_FAKE_NCCL).parent_path().string(), "/./",
                             std::filesystem::path(WEFT_FAKE_NCCL).filename().string()));
             }),
             {"NCCL cannot be used: ", " is NCCL 2.18.3, which is too old"});
}

TEST(NcclBootstrap, TheEnvironmentDescribesTheJob) {
  {
    const Environment set({{"WEFT_NCCL_RANK", "1"},
                           {"WEFT_NCCL_SIZE", "4"},
                           {"WEFT_NCCL_ADDRESS", "node1:29400"},
                           {"WEFT_NCCL_TIMEOUT", "2.5"},
                           {"NCCL_HOSTID", "a"}});
    const NcclJob job = nccl_job();
    EXPECT_EQ(job.rank, 1);
    EXPECT_EQ(job.size, 4);
    EXPECT_EQ(job.address, "node1:29400");
    EXPECT_EQ(job.host_id, "a");
    EXPECT_EQ(job.patience, std::chrono::milliseconds(2500));
    EXPECT_EQ(launched()->by, kByHand);
  }
  const NcclJob alone = nccl_job();
  EXPECT_EQ(alone.size, 1);
  EXPECT_FALSE(alone.by_mpi);
}

TEST(NcclBootstrap, EnvironmentsThatMakeNoSense) {
  const auto error_with = [](const Variables& variables) {
    const Environment set(variables);
    return error_of([] { nccl_job(); });
  };
  expect_has(error_with(Variables{{"WEFT_NCCL_RANK", "1"}}),
             {"WEFT_NCCL_RANK is set, but WEFT_NCCL_SIZE is not",
              "set both WEFT_NCCL_RANK and WEFT_NCCL_SIZE, or start the processes by mpirun"});
  expect_has(error_with({{"WEFT_NCCL_RANK", "1"}, {"WEFT_NCCL_SIZE", "2"}}),
             {"this process is rank 1 of 2 and does not know where rank 0 is",
              "set WEFT_NCCL_ADDRESS=host:port or WEFT_NCCL_FILE=path, the same for all processes"});
  expect_has(error_with(Variables{{"WEFT_NCCL_ADDRESS", "node1"}}),
             {"WEFT_NCCL_ADDRESS is 'node1', not a host and a port",
              "write the host of rank 0 and a free port there, as WEFT_NCCL_ADDRESS=node1:29400"});
  expect_has(error_with(Variables{{"WEFT_NCCL_TIMEOUT", "soon"}}),
             {"WEFT_NCCL_TIMEOUT is 'soon'", "give it a number of seconds above 0"});
  const std::string file = "/no/such/folder/job";
  expect_has(error_of([&] { NcclWire wire(fake_job(0, 2, file), fake_nccl(), fake_cuda()); }),
             {"rank 0 cannot write the file /no/such/folder/job",
              "name a file in a folder that all processes of the job share and rank 0 may write to"});
  expect_has(error_of([] { make_nccl_wire(3); }), {"the mesh has 3 processors, but this job has 1 process",
                                                   "run `mpirun -n 3 …` or set WEFT_NCCL_SIZE=3, or "
                                                   "choose a mesh of 1"});
}

}  // namespace
}  // namespace weft::comm::nccl_bootstrap_test
