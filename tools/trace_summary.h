// Summarizes a trace: how much time each part of a step takes.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace weft::tools {

// Times are seconds per step, the mean over processors and steps.
struct TraceSummary {
  struct Part {
    std::string what, cause;
    double seconds = 0, least_seconds = 0;  // least: at the roof, for instructions that have one
    double roofed_seconds = 0;              // of the instructions that have a roof
    double count = 0;
  };
  std::string mesh, layout, device, peaks;
  int processors = 1, workers = 1, steps = 0;
  double flops_per_second = 0, bytes_per_second = 0;
  double call = 0, kernels = 0, collectives = 0;
  double waiting = 0;              // in kernels: workers that waited for other workers, as a mean over workers
  std::vector<Part> kinds;         // by kind and phase, the slowest first
  std::vector<Part> instructions;  // the slowest first

  double overhead() const { return call - kernels - collectives; }
  std::string text(std::size_t most) const;
  std::string json(std::size_t most) const;
};

// UserError if the text is not a trace of Weft; `path` is its file, for the error.
TraceSummary summarize_trace(const std::string& text, const std::string& path);

}  // namespace weft::tools
