// KernelSet: the distinct kernels of one program, as text, and as what the card runs once they are compiled. A text that
// this process has compiled before, for any program, is not compiled again.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace weft::cuda {

class KernelSet {
 public:
  // The number of the kernel; equal texts are one kernel. `text`: parameters and body.
  int add(const std::string& attributes, const std::string& text);

  // Compiles all, on several threads, for an architecture such as "sm_90", or finds them on disk (kernel_cache.h), and
  // loads them.
  void compile(const std::string& architecture);
  // Whether kernels are started before those before them have ended: for programs of short kernels.
  void overlap() { overlaps_ = true; }
  bool overlaps() const { return overlaps_; }
  const void* at(int kernel) const { return kernels_[static_cast<std::size_t>(kernel)]; }

 private:
  std::vector<std::string> texts_;  // attributes, a line break, parameters and body
  std::unordered_map<std::string, int> numbers_;
  std::vector<const void*> kernels_;
  bool overlaps_ = false;
};

}  // namespace weft::cuda
