// contract: products of matrices by cuBLASLt where the operands lie so, without transposes; a plain kernel elsewhere.
#pragma once

#include "runtime/cuda/work.h"
#include "runtime/engine.h"

namespace weft::cuda {

void contract(const Work& work);

// The f32 products and the copies of a card at their best.
Roofs measure_card(Card& card);

}  // namespace weft::cuda
