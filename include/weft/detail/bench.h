// Measures parts of Weft on this machine.
// Not part of the API's promise: it may change in any release.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "weft/session.h"

namespace weft::bench {

struct CollectivesOptions {
  std::vector<std::string> kinds = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "permute"};
  std::vector<int> processors = {2};
  std::vector<std::size_t> bytes = {std::size_t{1} << 20, std::size_t{16} << 20, std::size_t{64} << 20};
  int repeats = 11;
  std::string wire = "threads";  // or "mpi": then every rank of the job must call, and only rank 0 gets times
};

struct CollectiveTime {
  std::string wire;
  std::string kind;
  int processors = 0;
  std::size_t bytes = 0;  // of the larger of a processor's input and output
  double median_seconds = 0, p10_seconds = 0, p90_seconds = 0;
  double gigabytes_per_second = 0;  // bytes / median
};

// Times the collectives of a wire, in f32 and in place, on buffers that their owners have just written. UserError for
// an unknown kind or wire or a count out of range.
std::vector<CollectiveTime> collectives(const CollectivesOptions& options = {});

std::string table(const std::vector<CollectiveTime>& times);  // for people
std::string json(const std::vector<CollectiveTime>& times);   // one array of objects

// Medians of the two stages of a compilation.
struct CompileTime {
  double plan_s = 0;                                   // from the graph to the memory plan
  double bind_s = 0;                                   // from there to bound kernels of one processor; memory apart
  std::vector<std::pair<std::string, double>> passes;  // name, seconds; the memory plan is the last
  int instructions = 0;
  std::int64_t arena_bytes = 0, variable_bytes = 0, live_bytes = 0, scratch_bytes = 0;  // on each processor
};

// Compiles `repeats` times. UserError like Session::compile, and for a count out of range.
CompileTime compile(const Graph& graph, const Mesh& mesh, const Layout& layout, const CompileOptions& options,
                    const Store& store = {}, int repeats = 11);

std::string table(const CompileTime& time);
std::string json(const CompileTime& time);

}  // namespace weft::bench
