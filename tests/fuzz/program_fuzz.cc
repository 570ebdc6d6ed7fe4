// Program text: whatever it is, it is refused with a UserError or it parses, prints back, and, once verified and if it is
// small, runs on its mesh to the end.
#include <algorithm>
#include <optional>

#include "fuzz/target.h"
#include "program/cost.h"
#include "program/text.h"
#include "program/verify.h"
#include "weft/detail/stored_program.h"

namespace weft::fuzz {
namespace {

constexpr std::int64_t kMostElements = 1 << 14;
constexpr double kMostWork = 1e6;

bool is_small(const Program& program) {
  if (program.mesh.size() > 4 || program.body.size() > 200) return false;
  std::int64_t elements = 0;
  for (const Value& value : program.values) {
    if (value.shape.elements() > kMostElements) return false;
    elements += value.shape.elements();
  }
  if (elements > kMostElements) return false;
  const ProgramCost cost = summarize(program);
  return cost.flops + cost.bytes < kMostWork;
}

void prints_back(const Program& program) {
  const std::string text = to_text(program);
  std::optional<Program> again;
  demand(accepts([&] { again = parse_program(text); }), "what to_text prints does not parse");
  demand(to_text(*again) == text, "a program's text parses to another program");
  demand(find_breach(*again).has_value() == find_breach(program).has_value(), "a breach is lost in the text");
}

void run(std::string_view text) {
  std::optional<StoredProgram> program;
  if (!accepts([&] { program = StoredProgram::parse(text); })) return;
  const StoredRunOptions options{.steps = 2,
                                 .random_inputs = 1,
                                 .random_variables = 2,
                                 .deadline_seconds = 30,
                                 .most_bytes = 1 << 24,
                                 .print = [](const std::string&) {}};
  accepts([&] { program->run({}, options); });
}

}  // namespace
}  // namespace weft::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  const std::string_view text = fuzz::text_of(data, size);
  std::optional<Program> program;
  if (!fuzz::accepts([&] { program = parse_program(text); })) return 0;
  fuzz::prints_back(*program);
  if (!find_breach(*program) && fuzz::is_small(*program)) fuzz::run(text);
  return 0;
}
