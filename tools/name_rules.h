// How tensors are called, and lie, in other tools' files: the rules of `weft export` and `weft import`, and q/k/v.
#pragma once

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <vector>

namespace weft::tools {

// What becomes of a tensor: nothing without a name.
struct Renamed {
  std::optional<std::string> name;
  std::vector<std::int64_t> sizes =
      {};                  // that it is reshaped to; 0: the size at that place, -1: the rest; empty: its own
  bool transpose = false;  // then, or on import before: the two dims of a matrix
};

// A list of {"from": regular expression, "to": text with $1, "sizes": […], "transpose": true}. The first whose expression
// is the whole name counts; a tensor without one keeps its name; "to": null leaves it out.
class NameRules {
 public:
  NameRules() = default;                           // every name stays
  static NameRules read(const std::string& path);  // UserError for what is no such list
  static NameRules parse(const std::string& path, const std::string& text);

  Renamed operator()(const std::string& name) const;

 private:
  struct Rule {
    std::regex from;
    Renamed to;
  };
  std::vector<Rule> rules_;
};

// The sizes that a rule asks of a tensor. UserError, with its name, if they have not its elements.
std::vector<std::int64_t> reshaped(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& to,
                                   const std::string& name);

// "a/qkv/kernel" -> "a/q/kernel", "a/k/kernel", "a/v/kernel"; empty if no part of the name, between slashes, is "qkv".
std::vector<std::string> qkv_parts(const std::string& name);

std::string sizes_text(const std::vector<std::int64_t>& sizes);  // "[2 3]"

}  // namespace weft::tools
