// Reads files of the system.
#pragma once

#include <string>

namespace weft {

// The text after the colon of the first line of a file that begins with `key`; "unknown" if there is none.
std::string field(const char* path, const std::string& key);

}  // namespace weft
