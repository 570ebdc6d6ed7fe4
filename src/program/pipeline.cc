#include "program/pipeline.h"

#include <chrono>

#include "program/passes/passes.h"
#include "program/verify.h"

namespace weft {

namespace {

const std::vector<Pass> kPipeline = {
    {"fold", fold},
    {"merge_common", merge_common},
    {"drop_dead_code", drop_dead_code},  // so that the uses counted next are real
    {"place_reductions", place_reductions},
    {"reduce_then_scatter", reduce_then_scatter},  // all_reduce + shard
    {"fold", fold},                                // what is left along axes of size 1
    {"join_attend", join_attend},
    {"choose_dim_orders", choose_dim_orders},
    {"join_siblings", join_siblings},
    {"join_collectives", join_collectives},
    {"drop_dead_code", drop_dead_code},
    {"widen_products", widen_products},
    {"contract_to_sum", contract_to_sum},
    {"recompute_maps", recompute_maps},
    {"drop_dead_code", drop_dead_code},  // what only later sweeps read
    {"fuse", fuse},
    {"hoist_updates", hoist_updates},
    {"schedule_collectives", schedule_collectives},
    {"recompute_for_memory", recompute_for_memory},  // last: it needs to know how long everything lives
};

// A pass sees the bodies of loops before the program around them. The memory limit is that of the whole.
Program run_inside_out(const Pass& pass, Program program, const PassOptions& options) {
  PassOptions inside = options;
  inside.arena_limit = 0;
  inside.in_loop = true;
  for (Instr& instr : program.body)
    if (Program* body = instr.is<Loop>() ? body_of(instr) : nullptr) *body = run_inside_out(pass, std::move(*body), inside);
  return pass.run(std::move(program), options);
}

}  // namespace

const std::vector<Pass>& pipeline() { return kPipeline; }

Program run_passes(Program program, const PassOptions& options) {
  if (options.verify) verify(program, "partition");
  for (const Pass& pass : kPipeline) {
    const auto begin = std::chrono::steady_clock::now();
    program = run_inside_out(pass, std::move(program), options);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (options.times) options.times->push_back({pass.name, took.count()});
    if (options.verify) verify(program, pass.name);
    if (options.dump) options.dump(pass.name, program);
  }
  return program;
}

}  // namespace weft
