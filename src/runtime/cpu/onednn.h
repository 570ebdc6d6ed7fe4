// The common use of oneDNN in product.cc and convolution.cc.
#pragma once

#include <dnnl.hpp>

#include "weft/dtype.h"

namespace weft::cpu::onednn {

dnnl::memory::data_type type_of(DType dtype);  // f32 or bf16
const dnnl::engine& engine();

// The workers are ours: from this call on oneDNN uses the calling thread alone. Comes before anything is made or run.
const dnnl::stream& stream_of_this_thread();

// Scratch memory is the caller's.
dnnl::primitive_attr attributes();

void run(const dnnl::primitive& primitive, const dnnl_exec_arg_t* args, int count);  // InternalError if it fails

}  // namespace weft::cpu::onednn
