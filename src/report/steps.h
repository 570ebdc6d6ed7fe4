// One step on one processor, as a trace in Chrome's format has it: measured or predicted.
#pragma once

#include <string>
#include <vector>

namespace weft::report {

struct Span {
  double begin = 0, end = 0;  // seconds after the step's begin
  std::string kind, phase, tensor, cause;
  bool is_collective = false;
};

struct Step {
  double seconds = 0;
  std::vector<Span> spans;  // of instructions, in time; bodies of loops included
};

// Of the first processor: the step whose time is the median. UserError for a text that is not a trace of Weft.
Step step_of(const std::string& trace);

// What the style sheet and legends call an instruction: "product", "attention", "loss", "other" or "wire".
std::string style_of(const Span& span);

}  // namespace weft::report
