// collectives/threads/2/<bytes>: every collective of the threads wire, from 8 bytes to 64 MiB.
// Roof of all_reduce in place with two processors: a loop in which each sums its half of both buffers into both.
#include <iostream>

#include "weft/detail/bench.h"

int main() {
  weft::bench::CollectivesOptions options;
  options.bytes = {8, 1024, 65536, 1 << 20, 16 << 20, 64 << 20};
  std::cout << weft::bench::table(weft::bench::collectives(options));
}
