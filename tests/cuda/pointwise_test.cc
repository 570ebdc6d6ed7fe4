// The pointwise functions as CUDA source: NVRTC compiles all of them, over every type of number that they take.
#include <gtest/gtest.h>

#include "base/str.h"
#include "kernels/cuda_source.h"
#include "kernels/pointwise.h"
#include "runtime/cuda/nvrtc.h"
#include "support/expect_error.h"

namespace weft::pointwise_test {
namespace {

struct Type {
  DType dtype;
  const char* value;   // as the bodies take it
  const char* stored;  // as memory holds it
};
const Type kTypes[] = {{DType::kF32, "float", "float"},
                       {DType::kF64, "double", "double"},
                       {DType::kI32, "weft::vmath::Wrapped<int>", "int"},
                       {DType::kI64, "weft::vmath::Wrapped<long long>", "long long"},
                       {DType::kBool, "weft::vmath::Wrapped<int>", "bool"}};

std::string kernel_name(const Pointwise& function, const Type& type) {
  return str("apply_", function.name, "_", type.dtype);
}

// out[i] = f(x[i]) or f(x[i], y[i]).
std::string kernel(const Pointwise& function, const Type& type) {
  const std::string x = str(type.value, "(x[i])"), y = function.arity == 2 ? str(", ", type.value, "(y[i])") : "";
  const char* of_whole = is_float(type.dtype) || function.gives_truth() ? "" : ".v";
  return str(
      "extern \"C\" __global__ void ", kernel_name(function, type), "(const ", type.stored, "* x, const ", type.stored,
      "* y, ", function.gives_truth() ? "bool" : type.stored,
      "* out) {\n  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n  out[i] = weft::bodies::",
      function.name, "()(", x, y, ")", of_whole, ";\n}\n");
}

TEST(CudaPointwise, EveryFunctionCompiles) {
  std::string source = cuda_pointwise_source();
  std::vector<std::string> kernels;
  for (const Pointwise& function : pointwise_functions())
    for (const Type& type : kTypes)
      if (function.takes_dtype(type.dtype)) {
        source += kernel(function, type);
        kernels.push_back(kernel_name(function, type));
      }
  const std::string ptx = cuda::compile_to_ptx(source, "sm_90");
  for (const std::string& name : kernels)
    EXPECT_NE(ptx.find(".visible .entry " + name + "("), std::string::npos) << name;
  EXPECT_GE(kernels.size(), 2 * pointwise_functions().size());
}

// A product that is added must round by itself, and numbers below the normal ones must stay.
TEST(CudaPointwise, NothingIsContractedOrFlushed) {
  const std::string source = cuda_pointwise_source() + R"(
extern "C" __global__ void both(const float* x, float* out) {
  out[0] = weft::bodies::add()(weft::bodies::multiply()(x[0], x[1]), x[2]);
})";
  const std::string ptx = cuda::compile_to_ptx(source, "sm_90");
  EXPECT_NE(ptx.find("mul.rn.f32"), std::string::npos);
  EXPECT_NE(ptx.find("add.rn.f32"), std::string::npos);
  EXPECT_EQ(ptx.find("fma"), std::string::npos);
  EXPECT_EQ(ptx.find(".ftz"), std::string::npos);
}

TEST(CudaPointwise, AWrongSourceIsRefusedWithTheLog) {
  EXPECT_INTERNAL_ERROR(cuda::compile_to_ptx(cuda_pointwise_source() + "int wrong = nothing;", "sm_90"),
                        "NVRTC refuses a source", "identifier \"nothing\" is undefined");
}

}  // namespace
}  // namespace weft::pointwise_test
