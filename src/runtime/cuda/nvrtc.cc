#include "runtime/cuda/nvrtc.h"

#include <nvrtc.h>

#include <array>

#include "base/str.h"
#include "weft/error.h"

namespace weft::cuda {

namespace {

void check(nvrtcResult result, const char* call) {
  if (result != NVRTC_SUCCESS) throw InternalError(str(call, " failed: ", nvrtcGetErrorString(result)));
}

class Compilation {
 public:
  explicit Compilation(const std::string& source) {
    check(nvrtcCreateProgram(&program_, source.c_str(), "weft.cu", 0, nullptr, nullptr), "nvrtcCreateProgram");
  }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;
  ~Compilation() { nvrtcDestroyProgram(&program_); }

  void run(const std::string& architecture) {
    const std::string target = "--gpu-architecture=" + architecture;
    const std::array options = {target.c_str(), "--std=c++20",     "--fmad=false",
                                "--ftz=false",  "--prec-div=true", "--prec-sqrt=true"};
    if (nvrtcCompileProgram(program_, static_cast<int>(options.size()), options.data()) != NVRTC_SUCCESS)
      throw InternalError(str("NVRTC refuses a source: ", log()));
  }

  std::string ptx() const {
    std::size_t size = 0;
    check(nvrtcGetPTXSize(program_, &size), "nvrtcGetPTXSize");
    std::string text(size, '\0');
    check(nvrtcGetPTX(program_, text.data()), "nvrtcGetPTX");
    return text;
  }

 private:
  std::string log() const {
    std::size_t size = 0;
    check(nvrtcGetProgramLogSize(program_, &size), "nvrtcGetProgramLogSize");
    std::string text(size, '\0');
    check(nvrtcGetProgramLog(program_, text.data()), "nvrtcGetProgramLog");
    return text;
  }

  nvrtcProgram program_ = nullptr;
};

}  // namespace

std::string compile_to_ptx(const std::string& source, const std::string& architecture) {
  Compilation compilation(source);
  compilation.run(architecture);
  return compilation.ptx();
}

}  // namespace weft::cuda
