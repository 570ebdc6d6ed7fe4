// The parts of a run that a checkpoint keeps besides the weights: its config and a copy of its vocabulary. With them
// the checkpoint can be used from any folder, after it was moved, and over any wire.
#pragma once

#include <string>
#include <vector>

#include "weft/detail/train_parts.h"

namespace weft::train {

// The config as TOML, without the lines of these settings.
std::string text_without(const Config& config, const std::vector<std::string>& keys);

// The path of the checkpoint's copy of its vocabulary; "" if it has none.
std::string vocabulary_copy(const Checkpoint& checkpoint);

// UserError if the config's vocabulary is not the one that the checkpoint was trained with, or is not there.
void check_vocabulary(const Checkpoint& checkpoint, const Config& config);

}  // namespace weft::train
