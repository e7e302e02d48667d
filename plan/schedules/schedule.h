// A pipeline schedule as data: for every pipe rank the ordered compute actions of one step. Sends
// and receives follow from the actions (an action waits for its input from the neighbouring chunk).
// Tests can read a schedule as text.
//
// The types are values; thread-safe.
#ifndef TROUPE_PLAN_SCHEDULES_SCHEDULE_H_
#define TROUPE_PLAN_SCHEDULES_SCHEDULE_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace troupe {

enum class ActionKind : char {
  kForward = 'F',
  kInputGradient = 'I',
  kWeightGradient = 'W',
  kBackward = 'B',  // I then W
};

struct Action {
  ActionKind kind = ActionKind::kForward;
  int chunk = 0;  // global chunk number, in model order
  int microbatch = 0;
  // The forward overlaps the backward directly after it. A device that cannot run both at once runs
  // the forward, sends its output, and then runs the backward.
  bool overlaps_next = false;
  bool operator==(const Action&) const = default;
};

// The dimensions for which a schedule is made.
struct PipelineShape {
  int stages = 1;            // pipe ranks
  int chunks_per_stage = 1;  // chunks (virtual stages) per pipe rank
  int microbatches = 1;      // microbatches per step
  int chunks() const { return stages * chunks_per_stage; }
};

struct Schedule {
  std::string name;
  int microbatches = 0;
  std::vector<std::vector<int>> chunks;      // by pipe rank, ascending
  std::vector<std::vector<Action>> actions;  // by pipe rank, in order
};

// "F0.1": forward of chunk 0, microbatch 1.
std::string ToText(const Action& action);
// One text for each action, except for an overlapped pair, which has one: "F0.4|B7.1".
std::vector<std::string> ToTexts(const std::vector<Action>& actions);

// The inverse of ToText and of an entry of ToTexts: one action, or the two of a pair.
// INVALID_ARGUMENT for any other text.
StatusOr<Action> ParseAction(std::string_view text);
StatusOr<std::vector<Action>> ParseActions(std::string_view text);

// Rank r holds chunks r, r + stages, r + 2·stages …
std::vector<std::vector<int>> LoopedChunks(const PipelineShape& shape);
// Two chunks per rank: rank r holds r and 2·stages - 1 - r, so that the last rank passes its first
// chunk's output to its own second chunk, and the first rank has both ends of the model.
// REQUIRES: shape.chunks_per_stage == 2.
std::vector<std::vector<int>> VShapedChunks(const PipelineShape& shape);

}  // namespace troupe

#endif  // TROUPE_PLAN_SCHEDULES_SCHEDULE_H_
