// The line that `data prepare` redraws on a terminal: the part of the files that is read,
// documents, tokens, tokens/s, time left. Not thread-safe.
#ifndef TROUPE_CLI_OUTPUT_PREPARE_LINE_H_
#define TROUPE_CLI_OUTPUT_PREPARE_LINE_H_

#include <cstddef>
#include <string>

#include "base/clock.h"
#include "cli/output/terminal_line.h"
#include "data/prepare.h"

namespace troupe {

class PrepareLine {
 public:
  // The time begins here. `clock` must outlive the line.
  explicit PrepareLine(const Clock& clock) : clock_(clock), began_(clock.Now()) {}

  bool draws() const { return line_.draws(); }
  // Draws the line, unless that was done a moment ago.
  void Show(const PrepareProgress& progress);
  void Clear() { line_.Clear(); }

  // Returns the line `seconds` after the start, of at most `columns` characters; where that is not
  // enough, documents, tokens and tokens/s are left out in this order. The time left is that of the
  // bytes which are not read yet at the rate so far. Pure.
  static std::string Text(const PrepareProgress& progress, double seconds, size_t columns);

 private:
  TerminalLine line_;
  const Clock& clock_;
  const MonotonicTime began_;
  MonotonicTime drawn_;
};

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_PREPARE_LINE_H_
