// Attention by cuDNN: which instructions it takes, and what they need.
#pragma once

#include "runtime/cuda/work.h"

namespace weft::cuda {

// Whether the totals that attend saves for attend_back are the logsumexp of a query's scores, as cuDNN has it, and not
// the sum of e^(score - largest). So it is for all 16-bit attention without masks but causality, whoever computes it:
// nothing else reads them.
bool saves_logsumexp(const Instr& instr, DType dtype);

// Appends the work to `work` if cuDNN takes it.
bool attend_by_cudnn(const Work& work);

// Of cuDNN's part; on a machine without a card an estimate, and not too little.
std::int64_t cudnn_attend_bytes(const Program& program, const Instr& instr,
                                const ByValue<std::vector<std::int64_t>>& strides, bool deterministic);

// "cuDNN", "cuDNN (nondeterministic)" or "cuda": see RunInstr. On a machine without a card what cuDNN is expected to take is an estimate, and says so.
std::string attend_served_by(const Program& program, const Instr& instr,
                             const ByValue<std::vector<std::int64_t>>& strides, bool deterministic);

constexpr std::int64_t kFewQueries = 16;  // of one memory: below, tiles of queries would be empty for the most part

// attend for single queries of every memory, if they lie so that the kernel for steps of decoding can read them. With
// updates of k and v that write one position in place, these are done too. Else false, and nothing is done.
bool attend_step(const Work& work);
bool attend_step(const Work& work, const Work& k_update, const Work& v_update);

// attend for few queries of every memory, and the derivative by any bias, number by number; `largest`, `means`: of every
// query, what is subtracted from its scores before e^, and dy . y.
void attend_few(const Work& work);
void attend_bias_numbers(const Work& work, const TensorView& db, void* largest, void* means);

}  // namespace weft::cuda
