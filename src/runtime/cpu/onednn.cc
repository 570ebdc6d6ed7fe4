#include "runtime/cpu/onednn.h"

#include "base/str.h"
#include "weft/error.h"

// Of libgomp, which oneDNN runs on. omp.h does not come with every compiler.
extern "C" void omp_set_num_threads(int threads);

namespace weft::cpu::onednn {

dnnl::memory::data_type type_of(DType dtype) {
  return dtype == DType::kBF16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

const dnnl::engine& engine() {
  static const dnnl::engine kEngine(dnnl::engine::kind::cpu, 0);
  return kEngine;
}

// OpenMP holds the number of threads per thread.
const dnnl::stream& stream_of_this_thread() {
  thread_local const dnnl::stream kStream = [] {
    omp_set_num_threads(1);
    return dnnl::stream(engine());
  }();
  return kStream;
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

void run(const dnnl::primitive& primitive, const dnnl_exec_arg_t* args, int count) {
  const dnnl_status_t status = dnnl_primitive_execute(primitive.get(), stream_of_this_thread().get(), count, args);
  if (status != dnnl_success) throw InternalError(str("oneDNN failed with status ", static_cast<int>(status)));
}

}  // namespace weft::cpu::onednn
