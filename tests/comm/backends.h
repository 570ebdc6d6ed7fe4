// The wires under test. A new backend is one entry of backends(); every suite of this folder then runs on it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/index.h"
#include "comm/launch.h"
#include "comm/spawn.h"
#include "comm/wire.h"

#include <gtest/gtest.h>

namespace weft::comm {

using Body = std::function<void(Wire& wire, ProcessorId processor)>;

struct Engine {
  std::string name;
  // Runs the body on every processor of a fresh wire: all of them in this process, or, if processors are processes,
  // the one that this process is. Throws what the first failing body threw.
  std::function<void(int processors, const Body& body)> run;
  bool reduces_in_rank_order = true;
};

inline void PrintTo(const Engine& engine, std::ostream* out) { *out << engine.name; }

// The wires that a build has besides threads and mpi.
std::vector<Engine> more_engines();

// Under a launcher, where this process is one rank of a job, the mpi wire; else the wires within a process.
inline std::vector<Engine> engines() {
  if (const std::optional<Launch> launch = launched())
    return {{"mpi", [ranks = launch->size, rank = launch->rank](int processors, const Body& body) {
               if (processors > ranks) GTEST_SKIP() << "needs " << processors << " ranks";
               if (rank >= processors) return;
               const std::unique_ptr<Wire> wire = make_mpi_wire(processors);
               on_every_processor(*wire, [&](ProcessorId processor) { body(*wire, processor); });
             }}};
  std::vector<Engine> all = {{"threads", [](int processors, const Body& body) {
                                const std::unique_ptr<Wire> wire = make_threads_wire(processors);
                                on_every_processor(*wire, [&](ProcessorId processor) { body(*wire, processor); });
                              }}};
  for (Engine& engine : more_engines()) all.push_back(std::move(engine));
  return all;
}

// Processors 0 … size - 1.
inline std::vector<ProcessorId> everyone(int size) { return identity<ProcessorId>(at(size)); }

// A run with one group of all processors.
inline void on_one_group(const Engine& engine, int size, const std::function<void(Wire&, Group&)>& body) {
  engine.run(size, [&](Wire& wire, ProcessorId processor) {
    const std::unique_ptr<Group> group = wire.join(processor, everyone(size));
    body(wire, *group);
  });
}

}  // namespace weft::comm
