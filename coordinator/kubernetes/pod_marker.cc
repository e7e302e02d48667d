#include "coordinator/kubernetes/pod_marker.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "coordinator/kubernetes/requests.h"

namespace troupe {
namespace {

constexpr Duration kMarkInterval = std::chrono::seconds(1);
constexpr Duration kFirstMarkPause = std::chrono::seconds(1);
constexpr Duration kLastMarkPause = std::chrono::seconds(60);

// Whether the requests about other pods would fail too.
bool RefusesAllPods(const ApiAnswer& answer) {
  return answer.code == 0 || answer.code == HttpCode::kUnauthorized ||
         answer.code == HttpCode::kForbidden || answer.code == HttpCode::kTooManyRequests ||
         answer.code >= HttpCode::kServerErrors;
}

}  // namespace

PodMarker::PodMarker(std::string space, ApiServer& api, ReadUses read_uses, const Clock& clock)
    : space_(std::move(space)),
      api_(api),
      read_uses_(std::move(read_uses)),
      clock_(clock),
      pause_(kFirstMarkPause, kLastMarkPause) {}

void PodMarker::Turn() {
  api_.ReadWatch(kMarkInterval);  // there is no watch: this is a wait that a stop ends
  if (pause_.Waits(clock_.Now())) return;
  const StatusOr<std::vector<WorkerUse>> uses = read_uses_();
  if (!uses.ok()) return;  // the engine is overloaded; the next turn asks again
  std::vector<PodWrite> due = DuePodWrites(*uses, clock_.Now(), &marks_);
  if (due.size() > kMostPodWrites) due.resize(kMostPodWrites);
  for (const PodWrite& write : due)
    if (!Write(write)) return;
}

bool PodMarker::Write(const PodWrite& write) {
  const ApiAnswer answer = api_.Call(MarkPodRequest(space_, write.pod, write.is_busy));
  const MonotonicTime now = clock_.Now();
  if (RefusesAllPods(answer)) {
    const double asked = answer.retry_after_seconds.value_or(0);
    pause_.Fail(now, FromSeconds(std::clamp(asked, 0.0, ToSeconds(kLastMarkPause))));
    Complain(fmt::format("pods cannot be marked as busy or idle: {}", ErrorText(answer)));
    return false;
  }
  pause_.Reset();
  if (answer.ok()) {
    NotePodAnswer(write, PodAnswer::kWritten, now, &marks_);
    if (!complaint_.empty()) LogInfo("kubernetes", "pods are marked as busy or idle again");
    complaint_.clear();
  } else if (answer.code == HttpCode::kNotFound) {
    NotePodAnswer(write, PodAnswer::kNoPod, now, &marks_);
    LogInfo("kubernetes", "worker {} has no pod in namespace {}", write.pod, space_);
  } else {
    NotePodAnswer(write, PodAnswer::kRefused, now, &marks_);
    Complain(
        fmt::format("pod {} cannot be marked as busy or idle: {}", write.pod, ErrorText(answer)));
  }
  return true;
}

// Logs `text` unless it is the last complaint.
void PodMarker::Complain(const std::string& text) {
  if (text == complaint_) return;
  complaint_ = text;
  LogWarning("kubernetes", "{}", text);
}

}  // namespace troupe
