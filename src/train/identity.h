// Whether a config gives the weights of a checkpoint the meaning that they were trained with.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "weft/detail/train_parts.h"

namespace weft::train {

// Every setting and its value as TOML.
std::map<std::string, std::string> values_of(const Config& config);

// What the weights are for; the messages say what can be done.
enum class Use { kGoOn, kBeginWith, kDecode };

// UserError if
// - the config's vocabulary, or another of its identity settings (train/settings.h), is not that of the checkpoint's run and
//   not among `allowed`; of kBeginWith, settings of the optimizer do not count;
// - the config's model has other weights than the checkpoint, or weights of other shapes; not asked of kBeginWith;
// - `allowed` has a setting that is none of identity.
// Nothing is said of a checkpoint without a config.
void check_identity(const Checkpoint& checkpoint, const Config& config, const std::vector<std::string>& allowed,
                    Use use);

}  // namespace weft::train
