#include "name_rules.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "weft/error.h"

namespace weft::tools {

namespace {

[[noreturn]] void refuse(ErrorCode code, const std::string& path, const std::string& what) {
  throw UserError(
      {.code = code,
       .what = what,
       .where = path,
       .fix = "write a list of {\"from\": \"regular expression\", \"to\": \"name with $1\"}, with \"sizes\" and "
              "\"transpose\" where needed"});
}

}  // namespace

NameRules NameRules::read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse("name-rules.unreadable-file", path, "cannot read the rules '" + path + "'");
  return parse(path, {std::istreambuf_iterator<char>(file), {}});
}

NameRules NameRules::parse(const std::string& path, const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_array()) refuse("name-rules.not-a-list", path, "the rules are no JSON list");
  NameRules rules;
  for (const auto& each : json) {
    const std::string of = "rule " + std::to_string(rules.rules_.size() + 1);
    if (!each.is_object() || !each.contains("from") || !each["from"].is_string() || !each.contains("to") ||
        !(each["to"].is_string() || each["to"].is_null()))
      refuse("name-rules.missing-key", path, of + " has no \"from\" or no \"to\"");
    Rule rule;
    for (const auto& [key, value] : each.items()) {
      if (key == "sizes" && value.is_array()) {
        for (const auto& size : value) {
          if (!size.is_number_integer() || size.get<std::int64_t>() < -1)
            refuse("name-rules.bad-sizes", path, of + " has odd sizes");
          rule.to.sizes.push_back(size.get<std::int64_t>());
        }
      } else if (key == "transpose" && value.is_boolean()) {
        rule.to.transpose = value.get<bool>();
      } else if (key != "from" && key != "to") {
        refuse("name-rules.unknown-key", path, of + " has no use for \"" + key + "\"");
      }
    }
    if (each["to"].is_string()) rule.to.name = each["to"].get<std::string>();
    try {
      rule.from = std::regex(each["from"].get<std::string>());
    } catch (const std::regex_error& error) {
      refuse("name-rules.bad-pattern", path, of + ", \"from\", is no regular expression: " + error.what());
    }
    rules.rules_.push_back(std::move(rule));
  }
  return rules;
}

Renamed NameRules::operator()(const std::string& name) const {
  for (const Rule& rule : rules_) {
    std::smatch match;
    if (!std::regex_match(name, match, rule.from)) continue;
    Renamed out = rule.to;
    if (out.name) out.name = match.format(*out.name);
    return out;
  }
  return {.name = name};
}

std::vector<std::int64_t> reshaped(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& to,
                                   const std::string& name) {
  if (to.empty()) return sizes;
  std::vector<std::int64_t> out = to;
  std::int64_t elements = 1, known = 1;
  for (const std::int64_t size : sizes) elements *= size;
  std::int64_t* rest = nullptr;
  for (std::size_t d = 0; d < out.size(); ++d) {
    if (out[d] == 0 && d < sizes.size()) out[d] = sizes[d];
    if (out[d] == -1 && !rest) rest = &out[d];
    else if (out[d] < 1 || __builtin_mul_overflow(known, out[d], &known)) known = 0;
    if (known == 0) break;
  }
  if (rest && known > 0) {
    *rest = elements / known;
    known *= *rest;
  }
  if (known != elements)
    throw UserError({.code = "name-rules.sizes-do-not-fit",
                     .what = "tensor '" + name + "' " + sizes_text(sizes) + " cannot have the sizes " + sizes_text(to),
                     .where = "--map",
                     .fix = "give sizes with as many elements; 0 stands for the size at that place, -1 for the rest"});
  return out;
}

std::vector<std::string> qkv_parts(const std::string& name) {
  const std::string slashed = "/" + name + "/";
  const std::size_t at = slashed.find("/qkv/");
  if (at == std::string::npos) return {};
  std::vector<std::string> parts;
  for (const char* part : {"q", "k", "v"}) parts.push_back(std::string(name).replace(at, 3, part));
  return parts;
}

std::string sizes_text(const std::vector<std::int64_t>& sizes) {
  std::ostringstream out;
  for (std::size_t i = 0; i < sizes.size(); ++i) out << (i == 0 ? "[" : " ") << sizes[i];
  return sizes.empty() ? "[]" : out.str() + "]";
}

}  // namespace weft::tools
