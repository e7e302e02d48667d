#include "worker/executor/rank_action.h"

#include <algorithm>

#include "plan/schedules/schedule.h"

namespace troupe {
namespace {

using model::Piece;

enum class Progress { kNothing, kForwardDone, kInputGradientDone, kDone };

// The progress of one chunk, and its buffers.
struct ChunkProgress {
  std::vector<Progress> microbatches;
  std::vector<int> buffer_of;  // by microbatch, while in flight
  std::vector<bool> in_use;    // by buffer
  bool piece_seen[model::kNumPieces] = {};

  int AllocateBuffer() {
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

// Parses the schedule. If it has any I and W apart, every B becomes I and W, too.
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

// The number of `actions` from `next` on that form one backward: 2 for I and its W, 1 for B.
int BackwardActions(const std::vector<Action>& actions, size_t next) {
  if (next >= actions.size()) return 0;
  const Action& first = actions[next];
  const bool has_w = first.kind == ActionKind::kInputGradient && next + 1 < actions.size() &&
                     actions[next + 1].kind == ActionKind::kWeightGradient &&
                     actions[next + 1].chunk == first.chunk &&
                     actions[next + 1].microbatch == first.microbatch;
  return has_w ? 2 : 1;
}

// Makes the actions of one rank from its parsed schedule, one by one.
class ActionMaker {
 public:
  ActionMaker(const std::vector<int>& chunks, int chunk_count, int microbatches)
      : chunks_(chunks),
        chunk_count_(chunk_count),
        microbatches_(microbatches),
        progress_(chunks.size()) {
    for (ChunkProgress& chunk : progress_) {
      chunk.microbatches.assign(microbatches, Progress::kNothing);
      chunk.buffer_of.assign(microbatches, 0);
    }
  }

  // Makes the action of `parsed`, which overlaps with the next `overlaps` actions.
  StatusOr<RankAction> Make(const Action& parsed, int overlaps) {
    TROUPE_ASSIGN_OR_RETURN(RankAction action, Locate(parsed));
    action.overlaps = overlaps;
    ChunkProgress& chunk = progress_[action.chunk_index];
    const ChunkProgress* const below = Neighbour(action.chunk_index, -1);
    const ChunkProgress* const above = Neighbour(action.chunk_index, +1);
    const Transition transition = Route(parsed.kind, below, above, &action);
    Progress& state = chunk.microbatches[action.microbatch];
    if (state != transition.wanted) {
      return InvalidArgument("schedule action \"{}\" is out of order or appears twice",
                             ToText(parsed));
    }
    if (!transition.neighbour_done) {
      return InvalidArgument(
          "schedule action \"{}\" is out of order: it precedes that of the neighbouring chunk on "
          "this rank",
          ToText(parsed));
    }
    state = transition.reached;
    if (action.piece == Piece::kForward)
      chunk.buffer_of[action.microbatch] = chunk.AllocateBuffer();
    action.buffer = chunk.buffer_of[action.microbatch];
    if (below != nullptr && action.piece != Piece::kWeightGradient) {
      action.buffer_below = below->buffer_of[action.microbatch];
    }
    if (transition.reached == Progress::kDone) chunk.in_use[action.buffer] = false;
    bool& seen = chunk.piece_seen[static_cast<int>(action.piece)];
    action.first_microbatch = !seen;
    seen = true;
    return action;
  }

  // Refuses unfinished microbatches; marks the last backward of each chunk and counts buffers.
  Status Finish(ActionList* list) const {
    for (size_t c = 0; c < chunks_.size(); ++c) {
      for (int m = 0; m < microbatches_; ++m) {
        if (progress_[c].microbatches[m] != Progress::kDone) {
          return InvalidArgument("schedule: chunk {} does not finish microbatch {}", chunks_[c], m);
        }
      }
      list->buffers.push_back(static_cast<int>(progress_[c].in_use.size()));
      const auto last =
          std::find_if(list->actions.rbegin(), list->actions.rend(), [&](const RankAction& action) {
            return action.chunk == chunks_[c] &&
                   (action.piece == Piece::kBackward || action.piece == Piece::kWeightGradient);
          });
      if (last != list->actions.rend()) last->last_microbatch = true;
    }
    return OkStatus();
  }

 private:
  // Records how an action changes the progress of its microbatch.
  struct Transition {
    Progress wanted = Progress::kNothing;
    Progress reached = Progress::kForwardDone;
    bool neighbour_done = true;  // the value read from a neighbouring chunk of this rank is ready
  };

  StatusOr<RankAction> Locate(const Action& parsed) const {
    const auto found = std::find(chunks_.begin(), chunks_.end(), parsed.chunk);
    if (found == chunks_.end()) {
      return InvalidArgument("schedule action \"{}\": this rank does not have the chunk",
                             ToText(parsed));
    }
    if (parsed.microbatch >= microbatches_) {
      return InvalidArgument("schedule action \"{}\": microbatch {} is not below {}",
                             ToText(parsed), parsed.microbatch, microbatches_);
    }
    RankAction action;
    action.chunk = parsed.chunk;
    action.chunk_index = static_cast<int>(found - chunks_.begin());
    action.microbatch = parsed.microbatch;
    return action;
  }

  // The chunk of this rank that is `step` (-1 or +1) away from that at `index`; null if another
  // rank has it.
  const ChunkProgress* Neighbour(int index, int step) const {
    const int other = index + step;
    if (other < 0 || other >= static_cast<int>(chunks_.size())) return nullptr;
    return chunks_[other] == chunks_[index] + step ? &progress_[other] : nullptr;
  }

  // Sets the action's piece, and where its data come from and go to.
  Transition Route(ActionKind kind, const ChunkProgress* below, const ChunkProgress* above,
                   RankAction* action) const {
    const auto has_reached = [&](const ChunkProgress* chunk, Progress due) {
      return chunk == nullptr || chunk->microbatches[action->microbatch] >= due;
    };
    switch (kind) {
      case ActionKind::kForward:
        action->piece = Piece::kForward;
        action->receives = action->chunk > 0 && below == nullptr;
        action->sends = action->chunk + 1 < chunk_count_ && above == nullptr;
        return {Progress::kNothing, Progress::kForwardDone,
                has_reached(below, Progress::kForwardDone)};
      case ActionKind::kBackward:
      case ActionKind::kInputGradient: {
        const bool whole = kind == ActionKind::kBackward;
        action->piece = whole ? Piece::kBackward : Piece::kInputGradient;
        action->receives = action->chunk + 1 < chunk_count_ && above == nullptr;
        action->sends = action->chunk > 0 && below == nullptr;
        return {Progress::kForwardDone, whole ? Progress::kDone : Progress::kInputGradientDone,
                has_reached(above, Progress::kInputGradientDone)};
      }
      case ActionKind::kWeightGradient:
        action->piece = Piece::kWeightGradient;
        return {Progress::kInputGradientDone, Progress::kDone, true};
    }
    return {};
  }

  const std::vector<int>& chunks_;
  const int chunk_count_;
  const int microbatches_;
  std::vector<ChunkProgress> progress_;
};

}  // namespace

StatusOr<ActionList> MakeActions(const std::vector<std::string>& schedule,
                                 const std::vector<int>& chunks, int chunk_count,
                                 int microbatches) {
  ActionList list;
  list.posts_gradient_receives = chunks.size() > 1;
  TROUPE_ASSIGN_OR_RETURN(const std::vector<Action> parsed,
                          ParseSchedule(schedule, &list.split_backward));
  ActionMaker maker(chunks, chunk_count, microbatches);
  for (size_t i = 0; i < parsed.size(); ++i) {
    const int overlaps = parsed[i].kind == ActionKind::kForward && parsed[i].overlaps_next
                             ? BackwardActions(parsed, i + 1)
                             : 0;
    TROUPE_ASSIGN_OR_RETURN(RankAction action, maker.Make(parsed[i], overlaps));
    list.actions.push_back(action);
  }
  TROUPE_RETURN_IF_ERROR(maker.Finish(&list));
  return list;
}

std::string ToText(const RankAction& action) {
  const char letter = action.piece == Piece::kForward         ? 'F'
                      : action.piece == Piece::kBackward      ? 'B'
                      : action.piece == Piece::kInputGradient ? 'I'
                                                              : 'W';
  const std::string below = action.buffer_below < 0 ? "" : fmt::format("L{} ", action.buffer_below);
  const std::string pair = action.overlaps > 0 ? fmt::format(" |{}", action.overlaps) : "";
  return fmt::format("{}{}{}{}.{} b{}{}{}", action.receives ? "R " : "", below, letter,
                     action.chunk, action.microbatch, action.buffer, action.sends ? " S" : "",
                     pair);
}

}  // namespace troupe
