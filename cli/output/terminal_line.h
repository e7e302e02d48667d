// A line on standard error that is drawn again and again, if that is a terminal. Not thread-safe.
#ifndef TROUPE_CLI_OUTPUT_TERMINAL_LINE_H_
#define TROUPE_CLI_OUTPUT_TERMINAL_LINE_H_

#include <cstddef>
#include <string>

namespace troupe {

class TerminalLine {
 public:
  // Draws only if stderr is a terminal that can redraw; uses colour unless NO_COLOR is set.
  TerminalLine();
  // Ends the line, so that what follows is below it.
  ~TerminalLine();

  bool draws() const { return draws_; }
  bool shows_colours() const { return shows_colours_; }
  // The number of columns that a line may have now: one less than the terminal has.
  size_t columns() const;
  // Replaces the line by `text`, cut to columns(). Nothing if it does not draw.
  void Draw(const std::string& text);
  // Removes the line.
  void Clear();

 private:
  bool draws_ = false;
  bool shows_colours_ = false;
  bool is_drawn_ = false;
};

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_TERMINAL_LINE_H_
