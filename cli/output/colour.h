// The colours of states on a terminal. Pure but for ShowsColours.
#ifndef TROUPE_CLI_OUTPUT_COLOUR_H_
#define TROUPE_CLI_OUTPUT_COLOUR_H_

#include <string>
#include <string_view>

#include "troupe/v1/service.pb.h"

namespace troupe {

enum class Colour { kNone, kGreen, kYellow, kRed, kCyan, kGrey };

// Whether `descriptor` is a terminal that can move its cursor: TERM is set, and not to "dumb".
bool IsCapableTerminal(int descriptor);

// Whether texts on `descriptor` have colours: it is a capable terminal, and NO_COLOR is not set, or
// empty (no-color.org).
bool ShowsColours(int descriptor);

// Returns `text` between the sequences that set and reset the colour; for kNone `text` itself.
std::string InColour(Colour colour, std::string_view text);

// Green: runs or has succeeded; cyan: is to begin; yellow: recovers or moves; red: has failed;
// grey: was cancelled.
Colour ColourOf(v1::JobState state);
Colour ColourOf(const v1::Job& job);  // yellow while it moves
// The same for the name of a state, as events have it; kNone for any other word.
Colour ColourOfStateWord(const std::string& word);
// `state`: one of base/worker_state.h.
Colour ColourOfWorker(std::string_view state);
Colour ColourOf(v1::CheckpointState state);

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_COLOUR_H_
