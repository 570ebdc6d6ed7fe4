// Every instruction of the CUDA engine: appends its kernels and library calls to Work.
#pragma once

#include "runtime/cuda/work.h"

namespace weft::cuda {

void map(const Work& work);
void fused(const Work& work);
void reduce(const Work& work);
void scan(const Work& work);
void copy(const Work& work);
void concat(const Work& work);
void dynamic_slice(const Work& work);
void dynamic_update(const Work& work);
// Two that follow each other, by one kernel; false, and nothing is done, if they are not pieces of different values that go
// where these lie already.
bool dynamic_updates(const Work& one, const Work& other);
void gather(const Work& work);
void scatter_add(const Work& work);
std::int64_t scatter_bytes(const Program& program, const Instr& instr);  // of its workspace
void sort(const Work& work);
void convolve(const Work& work);
void pool(const Work& work);
void attend(const Work& work);
void attend_back(const Work& work);
void random(const Work& work);
void axis_index(const Work& work);
void constant(const Work& work);

// The settings that programs are compiled for.
struct Mode {
  bool deterministic = true;  // every sum has one order
  bool over_nccl = false;     // the processors have a card each; else all share one
};

// See RunInstr.
std::string served_by(const Program& program, const Instr& instr, const ByValue<std::vector<std::int64_t>>& strides,
                      bool deterministic);

// See WorkspaceBytes.
std::int64_t workspace_bytes(const Program& program, const Instr& instr,
                             const ByValue<std::vector<std::int64_t>>& strides, const Mode& mode);
std::int64_t attend_bytes(const Program& program, const Instr& instr, const ByValue<std::vector<std::int64_t>>& strides,
                          bool deterministic);

}  // namespace weft::cuda
