#include "support/processes.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "base/index.h"
#include "comm/launch.h"
#include "support/compile.h"

namespace weft::test {

namespace {

std::string chosen() {
  const char* text = std::getenv("WEFT_TEST_WIRE");
  return text ? text : "threads";
}

void expect_same_bits(const std::vector<Array>& a, const std::vector<Array>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].shape(), b[i].shape());
    ASSERT_EQ(a[i].dtype(), b[i].dtype());
    const std::size_t bytes = static_cast<std::size_t>(a[i].elements()) * size_of(a[i].dtype());
    EXPECT_EQ(std::memcmp(a[i].bytes(), b[i].bytes(), bytes), 0) << "processes have unlike results " << i;
  }
}

}  // namespace

device::Choice device_under_test() {
  const char* name = std::getenv("WEFT_TEST_DEVICE");
  return name ? device::Choice{name} : device::cpu();
}

int ranks() { return chosen() == "mpi" ? comm::launched().value_or(comm::Launch{}).size : 0; }

bool can_have(const Mesh& mesh) { return ranks() == 0 || mesh.size() == 1 || mesh.size() == ranks(); }

Session open_session(const Mesh& mesh, const SessionOptions& options, const device::Choice& device) {
  if (ranks() != mesh.size()) return Session(mesh, wire::threads(), device, options);
  static const std::shared_ptr<comm::Wire> wire = comm::make_mpi_wire();
  return SessionState::open(mesh, std::make_unique<OneOfMany>(wire, wire->local()), engine_named(device.name, "a test"),
                            options);
}

std::vector<std::exception_ptr> as_processes(int processes, int processors,
                                             const std::function<void(int, std::unique_ptr<comm::Wire>)>& body) {
  const std::shared_ptr<comm::Wire> wire = comm::make_threads_wire(processors);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(processes));
  std::vector<std::thread> threads;
  for (int process = 0; process < processes; ++process)
    threads.emplace_back([&, process] {
      const auto first = [&](int of) { return ProcessorId(of * processors / processes); };
      std::vector<ProcessorId> mine;
      for (const ProcessorId p : ids(first(process), first(process + 1))) mine.push_back(p);
      try {
        body(process, std::make_unique<OneOfMany>(wire, mine));
      } catch (...) {
        errors[static_cast<std::size_t>(process)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

std::vector<Array> in_every_process(const Mesh& mesh, const SessionOptions& options,
                                    const std::function<std::vector<Array>(Session&)>& body,
                                    const device::Choice& device) {
  if (chosen() != "ranks") {
    Session session = open_session(mesh, options, device);
    return body(session);
  }
  std::vector<std::vector<Array>> all(static_cast<std::size_t>(mesh.size()));
  const auto errors = as_processes(mesh.size(), mesh.size(), [&](int process, std::unique_ptr<comm::Wire> wire) {
    Session session = SessionState::open(mesh, std::move(wire), engine_named(device.name, "a test"), options);
    all[static_cast<std::size_t>(process)] = body(session);
  });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  for (const std::vector<Array>& arrays : all) expect_same_bits(arrays, all[0]);
  return all[0];
}

}  // namespace weft::test
