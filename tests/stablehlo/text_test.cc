// Text in, text out: cases/NAME.weft is a program, cases/NAME.mlir the module that it gives. All instructions have a case.
// A case cuda_… is for NVIDIA cards. WEFT_WRITE_CASES=1 writes the modules anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "program/verify.h"
#include "stablehlo/emit.h"

namespace weft::stablehlo_text_test {
namespace {

namespace fs = std::filesystem;

fs::path folder() { return fs::path(WEFT_TEST_DATA) / "stablehlo" / "cases"; }

std::string read(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> all_cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder()))
    if (entry.path().extension() == ".weft") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class StableHloText : public ::testing::TestWithParam<std::string> {};

TEST_P(StableHloText, GivesItsModule) {
  const Program program = parse_verified(read(folder() / (GetParam() + ".weft")));
  const bool is_cuda = GetParam().starts_with("cuda_");
  const std::string text =
      stablehlo::emit(program, {.platform = is_cuda ? stablehlo::Platform::kCuda : stablehlo::Platform::kAny}).text;
  const fs::path path = folder() / (GetParam() + ".mlir");
  if (std::getenv("WEFT_WRITE_CASES") != nullptr) std::ofstream(path) << text;
  EXPECT_EQ(text, read(path)) << path;
}

INSTANTIATE_TEST_SUITE_P(Cases, StableHloText, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param; });

template <class... Kinds>
std::set<std::string> names_of_all(const std::variant<Kinds...>*) {
  return {Kinds::kName...};
}

void add_kinds(const Program& program, std::set<std::string>& seen) {
  for (const Instr& instr : program.body) {
    seen.insert(name_of(instr));
    if (const Program* body = body_of(instr)) add_kinds(*body, seen);
  }
}

TEST(StableHloCases, HaveEveryInstruction) {
  std::set<std::string> seen;
  for (const std::string& name : all_cases()) add_kinds(parse_verified(read(folder() / (name + ".weft"))), seen);
  EXPECT_EQ(seen, names_of_all(static_cast<const Operation*>(nullptr)));
}

}  // namespace
}  // namespace weft::stablehlo_text_test
