// A hook into the writing of checkpoints, for tests of what a killed program leaves on disk. Not part of the API's
// promise: it may change in any release.
#pragma once

#include <functional>
#include <string>

#include "weft/checkpoint.h"

namespace weft::detail {

// Has `hook` called, on the thread that writes, at "save-begun", "mid-shard" (repeatedly), "before-rename" and
// "before-latest" of every save from now on.
void on_phase(Checkpoints& checkpoints, std::function<void(const std::string& phase)> hook);

}  // namespace weft::detail
