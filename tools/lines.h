// Files of lines, and lines of pairs.
#pragma once

#include <string>
#include <vector>

namespace weft::tools {

// UserError if the file cannot be read; "-" is standard input.
std::vector<std::string> read_lines(const std::string& path);
// RunError, naming the option, if it cannot be written.
void write_text(const std::string& path, const std::string& text, const std::string& option);

// The two sides of "inputs<TAB>targets". UserError for a line without a tab.
std::string source_of(const std::string& line, const std::string& path);
std::string target_of(const std::string& line);  // the whole line if it has no tab

}  // namespace weft::tools
