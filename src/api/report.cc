// Executable::report: a few lines on the cost of a step.
#include "api/explain_parts.h"
#include "api/state.h"
#include "base/str.h"

namespace weft {

std::vector<std::string> Executable::warnings() const {
  std::vector<std::string> texts;
  for (const Explanation::Warning& warning : idle_axes(state_->program())) texts.push_back(warning.text);
  return texts;
}

std::string Executable::report() const {
  const Program& p = state_->program();
  const ProgramCost cost = summarize(p);
  const Store& store = state_->session->options.store;
  const std::string stored = store.level() == 0 ? "" : str(", store \"", store.text(), "\" level ", store.level());
  const std::string staging =
      state_->session->processors->all_are_local()
          ? ""
          : str("\n  staging    ", bytes_text(Gatherer::kStagingBytes), ", to gather what is fetched");
  std::string warned;
  for (const std::string& warning : warnings()) warned += str("  warning: ", warning, "\n");
  return str("mesh ", p.mesh.axes().empty() ? "of one processor" : p.mesh.text(), ", layout \"", p.layout, "\"", stored,
             ", ", p.body.size(), " instructions; on each processor, in one step:\n  flops      ",
             count_text(cost.flops), "\n  variables  ", bytes_text(state_->runner->compiled().variable_bytes()),
             "\n  arena      ", bytes_text(state_->runner->compiled().arena_bytes()), staging, "\n",
             collectives_text(collectives_of(cost), false), warned);
}

}  // namespace weft
