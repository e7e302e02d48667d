#include "cli/output/colour.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "base/worker_state.h"

namespace troupe {
namespace {

// Returns the number of the colour in the sequence "select graphic rendition" (ECMA-48).
int NumberOf(Colour colour) {
  switch (colour) {
    case Colour::kNone:
      return 0;
    case Colour::kGreen:
      return 32;
    case Colour::kYellow:
      return 33;
    case Colour::kRed:
      return 31;
    case Colour::kCyan:
      return 36;
    case Colour::kGrey:
      return 90;
  }
  return 0;
}

}  // namespace

bool IsCapableTerminal(int descriptor) {
  const char* const terminal = std::getenv("TERM");
  return isatty(descriptor) != 0 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

bool ShowsColours(int descriptor) {
  const char* const no_colour = std::getenv("NO_COLOR");
  return IsCapableTerminal(descriptor) && (no_colour == nullptr || *no_colour == '\0');
}

std::string InColour(Colour colour, std::string_view text) {
  if (colour == Colour::kNone) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", NumberOf(colour), text);
}

Colour ColourOf(v1::JobState state) {
  switch (state) {
    case v1::JOB_STATE_QUEUED:
    case v1::JOB_STATE_STARTING:
      return Colour::kCyan;
    case v1::JOB_STATE_RUNNING:
    case v1::JOB_STATE_CHECKPOINTING:
    case v1::JOB_STATE_SUCCEEDED:
      return Colour::kGreen;
    case v1::JOB_STATE_RECOVERING:
      return Colour::kYellow;
    case v1::JOB_STATE_FAILED:
      return Colour::kRed;
    case v1::JOB_STATE_CANCELLED:
      return Colour::kGrey;
    default:
      return Colour::kNone;
  }
}

Colour ColourOf(const v1::Job& job) {
  return job.moving().empty() ? ColourOf(job.state()) : Colour::kYellow;
}

Colour ColourOfStateWord(const std::string& word) {
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  return v1::JobState_Parse("JOB_STATE_" + word, &state) ? ColourOf(state) : Colour::kNone;
}

Colour ColourOfWorker(std::string_view state) {
  if (state == worker_state::kReady) return Colour::kGreen;
  if (state == worker_state::kDraining) return Colour::kYellow;
  return state == worker_state::kLost ? Colour::kRed : Colour::kNone;
}

Colour ColourOf(v1::CheckpointState state) {
  if (state == v1::CHECKPOINT_STATE_COMMITTED) return Colour::kGreen;
  return state == v1::CHECKPOINT_STATE_QUARANTINED ? Colour::kRed : Colour::kNone;
}

}  // namespace troupe
