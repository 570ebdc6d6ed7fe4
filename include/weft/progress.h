// What a person sees of long work: numbers in units, and a line on the terminal that is drawn over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weft {

std::string count_text(double count);        // "12.3 M"; numbers below 1000 as whole ones
std::string bytes_text(std::int64_t bytes);  // "12.3 MiB"
std::string duration_text(double seconds);   // "2 h 05 min", "3 min 20 s", "12 s"
std::string seconds_text(double seconds);    // "1.54 s", "12.3 ms", "45.6 us"

// A part of a line. Where not all parts fit, those of the highest rank are left out, the last of equal ones first.
struct LinePart {
  std::string text;
  int rank = 0;
};

// The parts with two spaces between them, in at most `columns` characters; a part of rank 0 is cut rather than left out.
std::string fitted(const std::vector<LinePart>& parts, std::size_t columns);

// The columns of the terminal that the file descriptor is, as wide as it is now; 80 if that is unknown, 0 if it is no
// terminal.
std::size_t terminal_columns(int descriptor);

// The line on standard error that says how far some work is. On a terminal it is drawn over, ten times a second at most,
// and never wider than the terminal is at that moment. Elsewhere it is a plain line every `plain_seconds`; 0: none.
class ProgressLine {
 public:
  // `shown`: whether this process speaks.
  explicit ProgressLine(bool shown, double plain_seconds = 30);
  ~ProgressLine();  // wipes the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // `fraction` of the work is done: a bar in what room the parts leave.
  void draw(double fraction, const std::vector<LinePart>& parts);
  // A line that stays, on standard output.
  void say(const std::string& line);
  void clear();

 private:
  bool shown_, terminal_;
  double plain_seconds_, drawn_at_;
  bool is_drawn_ = false;
};

}  // namespace weft
