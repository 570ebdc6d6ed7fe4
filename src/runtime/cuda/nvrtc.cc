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

  std::string ptx() const { return read(nvrtcGetPTXSize, nvrtcGetPTX, "nvrtcGetPTX"); }
  std::string cubin() const { return read(nvrtcGetCUBINSize, nvrtcGetCUBIN, "nvrtcGetCUBIN"); }

 private:
  std::string log() const { return read(nvrtcGetProgramLogSize, nvrtcGetProgramLog, "nvrtcGetProgramLog"); }

  std::string read(nvrtcResult (*size_of)(nvrtcProgram, std::size_t*), nvrtcResult (*get)(nvrtcProgram, char*),
                   const char* call) const {
    std::size_t size = 0;
    check_nvrtc(size_of(program_, &size), call);
    std::string bytes(size, '\0');
    check_nvrtc(get(program_, bytes.data()), call);
    return bytes;
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

std::string nvrtc_version() {
  int major = 0, minor = 0;
  check_nvrtc(nvrtcVersion(&major, &minor), "nvrtcVersion");
  return str(major, ".", minor);
}

}  // namespace weft::cuda
