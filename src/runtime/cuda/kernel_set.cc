#include "runtime/cuda/kernel_set.h"

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "base/str.h"
#include "runtime/cuda/card.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/cuda/prelude.h"
#include "weft/error.h"

namespace weft::cuda {

namespace {

// All kernels that this process has compiled, by architecture and text. They stay loaded to its end.
struct CompiledKernels {
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, const void*> kernels;
};

CompiledKernels& compiled_kernels() {
  static auto* all = new CompiledKernels;
  return *all;
}

std::string kernel_text(const std::string& text, std::size_t number) {
  const std::size_t end = text.find('\n');
  return str("extern \"C\" __global__ void ", text.substr(0, end), " weft_", number, text.substr(end));
}

// Compiles texts side by side, kEach to a source, or finds them compiled.
std::vector<std::string> compile_texts(const std::vector<std::string>& texts, std::size_t each,
                                       const std::string& architecture) {
  const std::size_t parts = (texts.size() + each - 1) / each;
  const std::size_t threads = std::min<std::size_t>(parts, std::max(1u, std::thread::hardware_concurrency()));
  const std::string prelude = kernel_prelude();
  std::vector<std::string> binaries(parts);
  std::vector<std::exception_ptr> failures(parts);
  const auto compile_share = [&](std::size_t share) {
    for (std::size_t part = share; part < parts; part += threads) {
      std::string source = prelude;
      for (std::size_t i = part * each; i < std::min(texts.size(), (part + 1) * each); ++i)
        source += kernel_text(texts[i], i);
      try {
        if (std::optional<std::string> found = find_binary(source, architecture)) {
          binaries[part] = std::move(*found);
          continue;
        }
        binaries[part] = compile_to_cubin(source, architecture);
        keep_binary(source, architecture, binaries[part]);
      } catch (const std::exception& error) {
        failures[part] = std::make_exception_ptr(InternalError(str(error.what(), "\n", source.substr(prelude.size()))));
      }
    }
  };
  std::vector<std::thread> others;
  for (std::size_t t = 1; t < threads; ++t) others.emplace_back(compile_share, t);
  if (threads > 0) compile_share(0);
  for (std::thread& thread : others) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return binaries;
}

}  // namespace

int KernelSet::add(const std::string& attributes, const std::string& text) {
  const std::string all = str(attributes, "\n", text);
  const auto [found, is_new] = numbers_.emplace(all, static_cast<int>(texts_.size()));
  if (is_new) texts_.push_back(all);
  return found->second;
}

void KernelSet::compile(const std::string& architecture) {
  constexpr std::size_t kEach = 3;  // kernels of one source
  CompiledKernels& known = compiled_kernels();
  const std::lock_guard lock(known.mutex);
  std::vector<std::string> fresh;
  for (const std::string& text : texts_)
    if (!known.kernels.contains({architecture, text})) fresh.push_back(text);
  const std::vector<std::string> binaries = compile_texts(fresh, kEach, architecture);
  for (std::size_t part = 0; part < binaries.size(); ++part) {
    cudaLibrary_t library = nullptr;
    check(cudaLibraryLoadData(&library, binaries[part].data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
          "cudaLibraryLoadData");
    for (std::size_t i = part * kEach; i < std::min(fresh.size(), (part + 1) * kEach); ++i) {
      cudaKernel_t kernel = nullptr;
      check(cudaLibraryGetKernel(&kernel, library, str("weft_", i).c_str()), "cudaLibraryGetKernel");
      known.kernels[{architecture, fresh[i]}] = kernel;
    }
  }
  for (const std::string& text : texts_) kernels_.push_back(known.kernels.at({architecture, text}));
}

}  // namespace weft::cuda
