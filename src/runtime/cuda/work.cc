#include "runtime/cuda/work.h"

#include <memory>

#include "base/str.h"
#include "runtime/cuda/hazards.h"
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
                  const LaunchOptions& options) const {
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
      kernels.add(str("__launch_bounds__(", threads, ")",
                      options.cluster > 1 ? str(" __cluster_dims__(", options.cluster, ", 1, 1)") : ""),
                  str("(", join(texts, ", "), ") {\n", options.waits ? "" : "wait_for_earlier();\n", body, "}\n"));
  issues.push_back([launch, overlaps = card.has_clusters()](cudaStream_t stream) {
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(launch->blocks);
    config.blockDim = dim3(launch->threads);
    config.stream = stream;
    config.attrs = &early;
    // Only in a graph, before which all has ended: what a program does not write may then be read at any time.
    cudaStreamCaptureStatus captured = cudaStreamCaptureStatusNone;
    if (overlaps && launch->kernels.overlaps())
      check(cudaStreamIsCapturing(stream, &captured), "cudaStreamIsCapturing");
    config.numAttrs = captured == cudaStreamCaptureStatusActive ? 1 : 0;
    check(cudaLaunchKernelExC(&config, launch->kernels.at(launch->kernel), launch->places.data()),
          "cudaLaunchKernelExC");
  });
}

Work Work::with(std::vector<TensorView> in, std::vector<TensorView> out) const {
  return {program, instr, std::move(in), std::move(out), processor, workspace, card, kernels, issues};
}

bool share_memory(const TensorView& a, const TensorView& b) {
  return overlap({span_of(a)}, {span_of(b)});
}

void launch_per_element(const Work& work, std::int64_t elements, const std::vector<Param>& params,
                        const std::string& body) {
  constexpr int kThreads = 256;
  work.launch(divided_up(elements, kThreads), kThreads, params,
              str("const long long i = blockIdx.x * (long long)", kThreads, " + threadIdx.x;\nif (i >= ", elements,
                  "ll) return;\n", body));
}

}  // namespace weft::cuda
