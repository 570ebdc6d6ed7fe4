// Where files lie that may be made again: compiled kernels, executables, tuned choices.
#pragma once

#include <string>

namespace weft {

// The value of the variable `setting` if it is set; else weft/NAME in the user's folder of caches. "off": no files.
std::string cache_folder(const char* setting, const std::string& name);

// 64 bits of a text, as 16 hexadecimal digits; `salt` gives several of them.
std::string hash_text(const std::string& text, int salt);

// Writes a file so that readers see all of it or none. False if it cannot be written.
bool write_whole(const std::string& file, const std::string& bytes);

}  // namespace weft
