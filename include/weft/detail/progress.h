// Progress of long work for people: numbers in units, and a line on the terminal that is redrawn.
// Not part of the API's promise: it may change in any release.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weft {

std::string count_text(double count);        // "12.3 M"; numbers below 1000 as integers
std::string bytes_text(std::int64_t bytes);  // "12.3 MiB"
std::string duration_text(double seconds);   // "2 h 05 min", "3 min 20 s", "12 s"
std::string seconds_text(double seconds);    // "1.54 s", "12.3 ms", "45.6 us"

// A part of a line. If not all parts fit, the parts of the highest rank are left out, the last part first.
struct LinePart {
  std::string text;
  int rank = 0;
};

// The parts with two spaces between them, in at most `columns` characters; parts of rank 0 are cut instead of left out.
std::string fitted(const std::vector<LinePart>& parts, std::size_t columns);

// The present width of the terminal behind the file descriptor; 80 if it is unknown, 0 if the descriptor is not a
// terminal.
std::size_t terminal_columns(int descriptor);

// The progress line on standard error. On a terminal it is redrawn, at most ten times a second, and never wider than
// the terminal. Elsewhere it is a plain line every `plain_seconds`; 0: none.
class ProgressLine {
 public:
  // `shown`: whether this process prints.
  explicit ProgressLine(bool shown, double plain_seconds = 30);
  ~ProgressLine();  // clears the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // `fraction` of the work is done: a bar in the space that the parts leave.
  void draw(double fraction, const std::vector<LinePart>& parts);
  // Prints a permanent line to standard output.
  void say(const std::string& line);
  void clear();

 private:
  bool shown_, terminal_;
  double plain_seconds_, drawn_at_;
  bool is_drawn_ = false;
};

}  // namespace weft
