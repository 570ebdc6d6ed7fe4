// Names and shapes of tensors in the files of other tools: the rules of `weft export` and `weft import`, and q/k/v.
#pragma once

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <vector>

namespace weft::tools {

// The result for a tensor; without a name the tensor is left out.
struct Renamed {
  std::optional<std::string> name;
  std::vector<std::int64_t> sizes =
      {};                  // the shape to reshape to; 0: the size at that position, -1: the rest; empty: unchanged
  bool transpose = false;  // the two dims of a matrix: after the reshape on export, before it on import
};

// A list of {"from": regular expression, "to": text with $1, "sizes": […], "transpose": true}. The first rule whose
// expression matches the complete name counts; a tensor without a rule keeps its name; "to": null leaves it out.
class NameRules {
 public:
  NameRules() = default;                           // every name is kept
  static NameRules read(const std::string& path);  // UserError if the file holds no valid list
  static NameRules parse(const std::string& path, const std::string& text);

  Renamed operator()(const std::string& name) const;

 private:
  struct Rule {
    std::regex from;
    Renamed to;
  };
  std::vector<Rule> rules_;
};

// The sizes that a rule gives a tensor. UserError, with its name, if the number of elements differs.
std::vector<std::int64_t> reshaped(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& to,
                                   const std::string& name);

// "a/qkv/kernel" -> "a/q/kernel", "a/k/kernel", "a/v/kernel"; empty if no part of the name, between slashes, is "qkv".
std::vector<std::string> qkv_parts(const std::string& name);

std::string sizes_text(const std::vector<std::int64_t>& sizes);  // "[2 3]"

}  // namespace weft::tools
