// A state as a word with a coloured mark. Pure.
#ifndef TROUPE_REPORT_LIVE_STATE_MARK_H_
#define TROUPE_REPORT_LIVE_STATE_MARK_H_

#include <string>
#include <string_view>

#include "report/markup.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

// Draws the state of a job as `troupe list` names it: kMovingState while it moves.
void DrawJobState(const v1::Job& job, Markup* page);
// `state`: one of base/worker_state.h.
void DrawWorkerState(const std::string& state, Markup* page);
void DrawCheckpointState(v1::CheckpointState state, Markup* page);

}  // namespace troupe

#endif  // TROUPE_REPORT_LIVE_STATE_MARK_H_
