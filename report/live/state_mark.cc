#include "report/live/state_mark.h"

#include "base/worker_state.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

// Classes of style.css. The colours are those of `troupe list`: good runs or has succeeded, soon is
// to begin, warn recovers or moves, bad has failed, quiet was cancelled.
constexpr const char* kGood = "state good";
constexpr const char* kSoon = "state soon";
constexpr const char* kWarn = "state warn";
constexpr const char* kBad = "state bad";
constexpr const char* kQuiet = "state quiet";

const char* MarkOfJob(const v1::Job& job) {
  if (!job.moving().empty()) return kWarn;
  switch (job.state()) {
    case v1::JOB_STATE_QUEUED:
    case v1::JOB_STATE_STARTING:
      return kSoon;
    case v1::JOB_STATE_RUNNING:
    case v1::JOB_STATE_CHECKPOINTING:
    case v1::JOB_STATE_SUCCEEDED:
      return kGood;
    case v1::JOB_STATE_RECOVERING:
      return kWarn;
    case v1::JOB_STATE_FAILED:
      return kBad;
    default:
      return kQuiet;
  }
}

const char* MarkOfWorker(std::string_view state) {
  if (state == worker_state::kReady) return kGood;
  if (state == worker_state::kDraining) return kWarn;
  return state == worker_state::kLost ? kBad : kQuiet;
}

const char* MarkOfCheckpoint(v1::CheckpointState state) {
  if (state == v1::CHECKPOINT_STATE_COMMITTED) return kGood;
  return state == v1::CHECKPOINT_STATE_QUARANTINED ? kBad : kQuiet;
}

}  // namespace

void DrawJobState(const v1::Job& job, Markup* page) {
  page->Element("span", {{"class", MarkOfJob(job)}}, StateText(job));
}

void DrawWorkerState(const std::string& state, Markup* page) {
  page->Element("span", {{"class", MarkOfWorker(state)}}, state);
}

void DrawCheckpointState(v1::CheckpointState state, Markup* page) {
  page->Element("span", {{"class", MarkOfCheckpoint(state)}},
                EnumText(*v1::CheckpointState_descriptor(), state));
}

}  // namespace troupe
