// Devices of the CUDA engine: the processors of a mesh on one card, or the one of this process on its own.
#pragma once

#include "runtime/cuda/card.h"
#include "runtime/cuda/instructions.h"
#include "runtime/engine.h"

namespace weft::cuda {

// What a session has on the card besides variables and arena.
constexpr std::int64_t kCardScratch = kProductWorkspace + kStepWords;

Devices open_devices(comm::Wire& wire, const Mesh& mesh, bool deterministic);
const Engine& cuda_engine(const Mode& mode);

}  // namespace weft::cuda
