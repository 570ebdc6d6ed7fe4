// The text of an optimizer's rules.
#pragma once

#include <string>

#include "weft/optim.h"

namespace weft::train {

// "PATTERN: rate 0.1, decay 0" or "PATTERN: frozen". UserError, at `where`, for anything else.
optim::Rule parse_rule(const std::string& text, const std::string& where);
std::string text_of(const optim::Rule& rule);

}  // namespace weft::train
