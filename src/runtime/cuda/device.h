// Devices of the CUDA engine: the processors of a mesh, all on one card.
#pragma once

#include "runtime/cuda/card.h"
#include "runtime/engine.h"

namespace weft::cuda {

// What a session has on the card besides variables and arena.
constexpr std::int64_t kCardScratch = kProductWorkspace + kStepWords;

Devices open_devices(comm::Wire& wire, const Mesh& mesh, bool deterministic);
const Engine& cuda_engine(bool deterministic);

}  // namespace weft::cuda
