#include "runtime/cuda/nvrtc.h"

#include <nvrtc.h>

#include <array>

#include "base/str.h"
#include "weft/error.h"

namespace weft::cuda {

namespace {

void check_nvrtc(nvrtcResult result, const char* call) {
  if (result != NVRTC_SUCCESS) throw InternalError(str(call, " failed: ", nvrtcGetErrorString(result)));
}

class Compilation {
 public:
  explicit Compilation(const std::string& source) {
    check_nvrtc(nvrtcCreateProgram(&program_, source.c_str(), "weft.cu", 0, nullptr, nullptr), "nvrtcCreateProgram");
  }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;
  ~Compilation() { nvrtcDestroyProgram(&program_); }

  void run(const std::string& architecture) {
    const std::string target = "--gpu-architecture=" + architecture;
    const std::array options = {target.c_str(),    "--std=c++20",      "--fmad=false",   "--ftz=false",
                                "--prec-div=true", "--prec-sqrt=true", "-default-device"};
    if (nvrtcCompileProgram(program_, static_cast<int>(options.size()), options.data()) != NVRTC_SUCCESS)
      throw InternalError(str("NVRTC refuses a source: ", log()));
  }

  std::string ptx() const {
    std::size_t size = 0;
    check_nvrtc(nvrtcGetPTXSize(program_, &size), "nvrtcGetPTXSize");
    std::string text(size, '\0');
    check_nvrtc(nvrtcGetPTX(program_, text.data()), "nvrtcGetPTX");
    return text;
  }

  std::string cubin() const {
    std::size_t size = 0;
    check_nvrtc(nvrtcGetCUBINSize(program_, &size), "nvrtcGetCUBINSize");
    std::string binary(size, '\0');
    check_nvrtc(nvrtcGetCUBIN(program_, binary.data()), "nvrtcGetCUBIN");
    return binary;
  }

 private:
  std::string log() const {
    std::size_t size = 0;
    check_nvrtc(nvrtcGetProgramLogSize(program_, &size), "nvrtcGetProgramLogSize");
    std::string text(size, '\0');
    check_nvrtc(nvrtcGetProgramLog(program_, text.data()), "nvrtcGetProgramLog");
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

std::string compile_to_cubin(const std::string& source, const std::string& architecture) {
  Compilation compilation(source);
  compilation.run(architecture);
  return compilation.cubin();
}

}  // namespace weft::cuda
