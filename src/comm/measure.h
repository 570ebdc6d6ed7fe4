// How long the collectives of a wire take on this machine: for the bench and for the machine model.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "comm/group.h"

namespace weft::comm {

struct CollectiveTiming {
  std::string wire = "threads";
  Collective what = Collective::kAllReduce;
  int processors = 0;
  std::size_t bytes = 0;                                        // of the larger of one processor's input and output
  double median_seconds = 0, p10_seconds = 0, p90_seconds = 0;  // of one call, over the repeats
  double gigabytes_per_second = 0;                              // bytes / median
};

// Every collective, every number of processors, every size, in f32 and in place. Each processor writes its whole buffer
// before each call, so that it lies where a program would have left it; a barrier; then the clock runs on rank 0 until
// its wait returns. A repeat is the mean of many calls for small sizes and of at least 3 for large ones.
// wire: "threads" or "mpi"; on the latter all ranks of the job call, and rank 0 gets the timings, the others none.
std::vector<CollectiveTiming> measure_collectives(const std::vector<Collective>& kinds,
                                                  const std::vector<int>& processors,
                                                  const std::vector<std::size_t>& bytes, int repeats,
                                                  const std::string& wire = "threads");

std::string table_of(const std::vector<CollectiveTiming>& timings);  // for a person
std::string json_of(const CollectiveTiming& timing);                 // one line

}  // namespace weft::comm
