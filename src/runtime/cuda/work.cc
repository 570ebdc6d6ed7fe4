#include "runtime/cuda/work.h"

#include <memory>

#include "base/str.h"
#include "runtime/cuda/text.h"
#include "weft/error.h"

namespace weft::cuda {

Param in(DType dtype, const std::string& name, const void* data) {
  return typed(str("const ", stored_type(dtype)), name, data);
}
Param out(DType dtype, const std::string& name, void* data) { return typed(stored_type(dtype), name, data); }
Param typed(const std::string& type, const std::string& name, const void* data) {
  return {str(type, "* ", name), reinterpret_cast<std::uint64_t>(data)};
}
Param number(const std::string& name, std::int64_t value) {
  return {str("long long ", name), static_cast<std::uint64_t>(value)};
}

namespace {

struct KernelCall {
  KernelSet& kernels;
  int kernel;
  unsigned blocks, threads;
  std::vector<std::uint64_t> arguments;
  std::vector<void*> places;
};

}  // namespace

void Work::launch(std::int64_t blocks, int threads, const std::vector<Param>& params, const std::string& body,
                  int resident) const {
  internal_check(blocks > 0 && blocks <= 0x7fffffff, "a grid that CUDA does not have");
  std::vector<std::string> texts;
  auto launch = std::make_shared<KernelCall>(
      KernelCall{kernels, 0, static_cast<unsigned>(blocks), static_cast<unsigned>(threads), {}, {}});
  for (const Param& param : params) {
    texts.push_back(param.text);
    launch->arguments.push_back(param.argument);
  }
  for (std::uint64_t& argument : launch->arguments) launch->places.push_back(&argument);
  launch->kernel =
      kernels.add(str("__launch_bounds__(", threads, ", ", resident, ")"), str("(", join(texts, ", "), ") {\n", body, "}\n"));
  issues.push_back([launch](cudaStream_t stream) {
    check(cudaLaunchKernel(launch->kernels.at(launch->kernel), dim3(launch->blocks), dim3(launch->threads),
                           launch->places.data(), 0, stream),
          "cudaLaunchKernel");
  });
}

Work Work::with(std::vector<TensorView> in, std::vector<TensorView> out) const {
  return {program, instr, std::move(in), std::move(out), processor, workspace, card, kernels, issues};
}

void launch_per_element(const Work& work, std::int64_t elements, const std::vector<Param>& params,
                        const std::string& body) {
  constexpr int kThreads = 256;
  work.launch(divided_up(elements, kThreads), kThreads, params,
              str("const long long i = blockIdx.x * (long long)", kThreads, " + threadIdx.x;\nif (i >= ", elements,
                  "ll) return;\n", body));
}

}  // namespace weft::cuda
