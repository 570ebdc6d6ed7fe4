// weft-pjrt-compile REQUEST RESULT: serves one request of the XLA engine, in a process that may crash.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>

#include "runtime/xla/compiler.h"

namespace {

// Ahead of time libtpu need not look for a TPU, and may be open in other processes. A value that is set stays.
void set_tpu_variables() {
  for (const auto& [name, value] : {std::pair{"TPU_SKIP_MDS_QUERY", "1"}, std::pair{"ALLOW_MULTIPLE_LIBTPU_LOAD", "1"},
                                    std::pair{"TPU_WORKER_HOSTNAMES", "localhost"}, std::pair{"TPU_WORKER_ID", "0"},
                                    std::pair{"TPU_ACCELERATOR_TYPE", "v5litepod-8"}})
    setenv(name, value, 0);
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) {
    std::cerr << "usage: weft-pjrt-compile REQUEST RESULT; the XLA engine of Weft runs it\n";
    return 2;
  }
  std::ifstream file(words[1], std::ios::binary);
  const auto request = weft::xla::request_from({std::istreambuf_iterator<char>(file.rdbuf()), {}});
  if (!request) {
    std::cerr << "the request is damaged\n";
    return 2;
  }
  if (!request->topology.empty()) set_tpu_variables();
  try {
    const std::string bytes = to_bytes(weft::xla::serve(*request));
    std::ofstream out(words[2], std::ios::binary);
    out << bytes;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  std::_Exit(0);  // plugins need not clean up
}
