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

}  // namespace

StatusOr<ActionList> MakeActions(const std::vector<std::string>& schedule,
                                 const std::vector<int>& chunks, int chunk_count,
                                 int microbatches) {
  ActionList list;
  std::vector<ChunkProgress> progress(chunks.size());
  for (ChunkProgress& chunk : progress) {
    chunk.microbatches.assign(microbatches, Progress::kNothing);
    chunk.buffer_of.assign(microbatches, 0);
  }
  for (const std::string& text : schedule) {
    TROUPE_ASSIGN_OR_RETURN(const Action parsed, ParseAction(text));
    const auto found = std::find(chunks.begin(), chunks.end(), parsed.chunk);
    if (found == chunks.end())
      return InvalidArgument("schedule action \"{}\": the chunk is not this rank's", text);
    if (parsed.microbatch >= microbatches) {
      return InvalidArgument("schedule action \"{}\": microbatch {} is not below {}", text,
                             parsed.microbatch, microbatches);
    }
    RankAction action;
    action.chunk = parsed.chunk;
    action.chunk_index = static_cast<int>(found - chunks.begin());
    action.microbatch = parsed.microbatch;
    ChunkProgress& chunk = progress[action.chunk_index];
    Progress& state = chunk.microbatches[action.microbatch];
    Progress wanted = Progress::kNothing;
    Progress reached = Progress::kForwardDone;
    switch (parsed.kind) {
      case ActionKind::kForward:
        action.piece = Piece::kForward;
        action.receives = action.chunk > 0;
        action.sends = action.chunk + 1 < chunk_count;
        break;
      case ActionKind::kBackward:
      case ActionKind::kInputGradient:
        action.piece =
            parsed.kind == ActionKind::kBackward ? Piece::kBackward : Piece::kInputGradient;
        action.receives = action.chunk + 1 < chunk_count;
        action.sends = action.chunk > 0;
        wanted = Progress::kForwardDone;
        reached =
            parsed.kind == ActionKind::kBackward ? Progress::kDone : Progress::kInputGradientDone;
        list.split_backward |= parsed.kind == ActionKind::kInputGradient;
        break;
      case ActionKind::kWeightGradient:
        action.piece = Piece::kWeightGradient;
        wanted = Progress::kInputGradientDone;
        reached = Progress::kDone;
        break;
    }
    if (state != wanted)
      return InvalidArgument("schedule action \"{}\" is out of order or doubled", text);
    state = reached;
    if (action.piece == Piece::kForward) chunk.buffer_of[action.microbatch] = chunk.TakeBuffer();
    action.buffer = chunk.buffer_of[action.microbatch];
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
  }
  return list;
}

std::string ToText(const RankAction& action) {
  const char letter = action.piece == Piece::kForward         ? 'F'
                      : action.piece == Piece::kBackward      ? 'B'
                      : action.piece == Piece::kInputGradient ? 'I'
                                                              : 'W';
  return fmt::format("{}{}{}.{} b{}{}", action.receives ? "R " : "", letter, action.chunk,
                     action.microbatch, action.buffer, action.sends ? " S" : "");
}

}  // namespace troupe
