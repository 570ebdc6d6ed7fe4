// The wires under test. A new backend is one entry of backends(); every suite of this folder then runs on it.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "comm/spawn.h"
#include "comm/wire.h"

namespace weft::comm {

using Body = std::function<void(Wire& wire, int processor)>;

struct Backend {
  std::string name;
  // Runs the body on every processor of a fresh wire: all of them in this process, or, if processors are processes,
  // the one that this process is. Throws what the first failing body threw.
  std::function<void(int processors, const Body& body)> run;
};

inline void PrintTo(const Backend& backend, std::ostream* out) { *out << backend.name; }

inline std::vector<Backend> backends() {
  return {{"threads", [](int processors, const Body& body) {
             const std::unique_ptr<Wire> wire = make_threads_wire(processors);
             on_every_processor(*wire, [&](int processor) { body(*wire, processor); });
           }}};
}

// Processors 0 … size - 1.
inline std::vector<int> everyone(int size) {
  std::vector<int> members;
  for (int p = 0; p < size; ++p) members.push_back(p);
  return members;
}

// A run with one group of all processors.
inline void on_one_group(const Backend& backend, int size, const std::function<void(Wire&, Group&)>& body) {
  backend.run(size, [&](Wire& wire, int processor) {
    const std::unique_ptr<Group> group = wire.join(processor, everyone(size));
    body(wire, *group);
  });
}

}  // namespace weft::comm
