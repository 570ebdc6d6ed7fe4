// The nccl wire on the stand-in for NCCL: every rank a thread of this process with a wire of its own.
#pragma once

#include <functional>
#include <memory>

#include "comm/nccl/wire.h"

namespace weft::comm {

// The stand-in's functions.
const NcclCalls& fake_nccl();
const CudaCalls& fake_cuda();
void set_fake_devices(int count);
void set_fake_failure(int rank, int after);

// A job of this process; all ranks of one test are to have the same file.
NcclJob fake_job(int rank, int size, const std::string& file);
std::string fresh_job_file();

// Runs the body on every rank of a fresh job. Throws what the first failing body threw, after aborting its wire.
void on_fake_ranks(int size, const std::function<void(NcclWire& wire)>& body);

}  // namespace weft::comm
