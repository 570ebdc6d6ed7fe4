// What the stand-in for NCCL offers to tests besides NCCL's own functions.
#pragma once

#include "comm/nccl/calls.h"
#include "weft/dtype.h"

extern "C" {
void weft_fake_cuda(weft::comm::CudaCalls* calls);
void weft_fake_devices(int count);            // that each host has
void weft_fake_failure(int rank, int after);  // NCCL of that rank fails after so many calls; -1: none does
}
