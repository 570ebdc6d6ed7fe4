// The language models of `weft bench lm` as configs of a run, for `weft bench decode`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace weft::tools {

// The text of a config by the name of a language model, in any case; empty if there is no such model. `positions`: rows of
// its table of positions, if decoding needs more than training. Models for cards decode with copies in bf16.
std::optional<std::string> lm_config(const std::string& name, std::int64_t positions);

}  // namespace weft::tools
