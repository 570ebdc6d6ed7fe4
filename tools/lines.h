// Files of lines.
#pragma once

#include <string>
#include <vector>

namespace weft::tools {

// UserError if the file cannot be read; "-" is standard input.
std::vector<std::string> read_lines(const std::string& path);
// RunError, naming the option, if it cannot be written.
void write_text(const std::string& path, const std::string& text, const std::string& option);

}  // namespace weft::tools
