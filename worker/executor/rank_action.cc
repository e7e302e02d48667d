#include "worker/executor/rank_action.h"

#include <algorithm>

#include "plan/schedules/schedule.h"

namespace troupe {
namespace {

using model::Piece;

enum class Progress { kNothing, kForwardDone, kInputGradientDone, kDone };

// What one chunk has done so far.
struct ChunkProgress {
  std::vector<Progress> microbatches;
  std::vector<int> buffer_of;  // by microbatch, while alive
  std::vector<bool> in_use;    // by buffer
  bool piece_seen[model::kNumPieces] = {};

  int TakeBuffer() {
    const auto free = std::find(in_use.begin(), in_use.end(), false);
    const int buffer = static_cast<int>(free - in_use.begin());
    if (free == in_use.end()) {
      in_use.push_back(true);
    } else {
      *free = true;
    }
    return buffer;
  }
};

// The schedule's actions, with B as I and W where any I and W are apart.
StatusOr<std::vector<Action>> ParseSchedule(const std::vector<std::string>& schedule, bool* split) {
  std::vector<Action> parsed;
  *split = false;
  for (const std::string& text : schedule) {
    TROUPE_ASSIGN_OR_RETURN(const std::vector<Action> actions, ParseActions(text));
    for (const Action& action : actions) {
      parsed.push_back(action);
      *split |= action.kind == ActionKind::kInputGradient;
    }
  }
  if (!*split) return parsed;
  std::vector<Action> apart;
  for (const Action& action : parsed) {
    apart.push_back(action);
    if (action.kind != ActionKind::kBackward) continue;
    apart.back().kind = ActionKind::kInputGradient;
    apart.push_back(action);
    apart.back().kind = ActionKind::kWeightGradient;
  }
  return apart;
}

// How many of `actions` from `next` on are one backward: I and its W, or B.
int BackwardActions(const std::vector<Action>& actions, size_t next) {
  if (next >= actions.size()) return 0;
  const Action& first = actions[next];
  const bool has_w = first.kind == ActionKind::kInputGradient && next + 1 < actions.size() &&
                     actions[next + 1].kind == ActionKind::kWeightGradient &&
                     actions[next + 1].chunk == first.chunk &&
                     actions[next + 1].microbatch == first.microbatch;
  return has_w ? 2 : 1;
}

}  // namespace

StatusOr<ActionList> MakeActions(const std::vector<std::string>& schedule,
                                 const std::vector<int>& chunks, int chunk_count,
                                 int microbatches) {
  ActionList list;
  list.posts_gradient_receives = chunks.size() > 1;
  std::vector<ChunkProgress> progress(chunks.size());
  for (ChunkProgress& chunk : progress) {
    chunk.microbatches.assign(microbatches, Progress::kNothing);
    chunk.buffer_of.assign(microbatches, 0);
  }
  TROUPE_ASSIGN_OR_RETURN(const std::vector<Action> parsed_schedule,
                          ParseSchedule(schedule, &list.split_backward));
  for (size_t next = 1; next <= parsed_schedule.size(); ++next) {
    const Action& parsed = parsed_schedule[next - 1];
    const auto found = std::find(chunks.begin(), chunks.end(), parsed.chunk);
    if (found == chunks.end()) {
      return InvalidArgument("schedule action \"{}\": the chunk is not this rank's",
                             ToText(parsed));
    }
    if (parsed.microbatch >= microbatches) {
      return InvalidArgument("schedule action \"{}\": microbatch {} is not below {}",
                             ToText(parsed), parsed.microbatch, microbatches);
    }
    RankAction action;
    action.chunk = parsed.chunk;
    action.chunk_index = static_cast<int>(found - chunks.begin());
    action.microbatch = parsed.microbatch;
    ChunkProgress& chunk = progress[action.chunk_index];
    // Neighbouring chunks of this rank.
    const ChunkProgress* below = nullptr;
    const ChunkProgress* above = nullptr;
    if (found != chunks.begin() && *(found - 1) == parsed.chunk - 1) below = &chunk - 1;
    if (found + 1 != chunks.end() && *(found + 1) == parsed.chunk + 1) above = &chunk + 1;
    Progress& state = chunk.microbatches[action.microbatch];
    Progress wanted = Progress::kNothing;
    Progress reached = Progress::kForwardDone;
    bool neighbour_done = true;
    switch (parsed.kind) {
      case ActionKind::kForward:
        action.piece = Piece::kForward;
        if (parsed.overlaps_next) action.overlaps = BackwardActions(parsed_schedule, next);
        action.receives = action.chunk > 0 && below == nullptr;
        action.sends = action.chunk + 1 < chunk_count && above == nullptr;
        neighbour_done =
            below == nullptr || below->microbatches[action.microbatch] >= Progress::kForwardDone;
        break;
      case ActionKind::kBackward:
      case ActionKind::kInputGradient:
        action.piece =
            parsed.kind == ActionKind::kBackward ? Piece::kBackward : Piece::kInputGradient;
        action.receives = action.chunk + 1 < chunk_count && above == nullptr;
        action.sends = action.chunk > 0 && below == nullptr;
        wanted = Progress::kForwardDone;
        reached =
            parsed.kind == ActionKind::kBackward ? Progress::kDone : Progress::kInputGradientDone;
        neighbour_done = above == nullptr ||
                         above->microbatches[action.microbatch] >= Progress::kInputGradientDone;
        break;
      case ActionKind::kWeightGradient:
        action.piece = Piece::kWeightGradient;
        wanted = Progress::kInputGradientDone;
        reached = Progress::kDone;
        break;
    }
    if (state != wanted) {
      return InvalidArgument("schedule action \"{}\" is out of order or doubled", ToText(parsed));
    }
    if (!neighbour_done) {
      return InvalidArgument("schedule action \"{}\" is out of order: it comes before that of the "
                             "neighbouring chunk on this rank",
                             ToText(parsed));
    }
    state = reached;
    if (action.piece == Piece::kForward) chunk.buffer_of[action.microbatch] = chunk.TakeBuffer();
    action.buffer = chunk.buffer_of[action.microbatch];
    if (below != nullptr && action.piece != Piece::kWeightGradient) {
      action.buffer_below = below->buffer_of[action.microbatch];
    }
    if (reached == Progress::kDone) chunk.in_use[action.buffer] = false;
    bool& seen = chunk.piece_seen[static_cast<int>(action.piece)];
    action.first_microbatch = !seen;
    seen = true;
    list.actions.push_back(action);
  }
  for (size_t c = 0; c < chunks.size(); ++c) {
    for (int m = 0; m < microbatches; ++m) {
      if (progress[c].microbatches[m] != Progress::kDone) {
        return InvalidArgument("schedule: chunk {} leaves microbatch {} unfinished", chunks[c], m);
      }
    }
    list.buffers.push_back(static_cast<int>(progress[c].in_use.size()));
    const auto last = std::find_if(
        list.actions.rbegin(), list.actions.rend(), [&](const RankAction& action) {
          return action.chunk == chunks[c] && (action.piece == Piece::kBackward ||
                                               action.piece == Piece::kWeightGradient);
        });
    if (last != list.actions.rend()) last->last_microbatch = true;
  }
  return list;
}

std::string ToText(const RankAction& action) {
  const char letter = action.piece == Piece::kForward         ? 'F'
                      : action.piece == Piece::kBackward      ? 'B'
                      : action.piece == Piece::kInputGradient ? 'I'
                                                              : 'W';
  const std::string below =
      action.buffer_below < 0 ? "" : fmt::format("L{} ", action.buffer_below);
  const std::string pair = action.overlaps > 0 ? fmt::format(" |{}", action.overlaps) : "";
  return fmt::format("{}{}{}{}.{} b{}{}{}", action.receives ? "R " : "", below, letter,
                     action.chunk, action.microbatch, action.buffer, action.sends ? " S" : "",
                     pair);
}

}  // namespace troupe
