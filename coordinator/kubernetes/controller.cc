#include "coordinator/kubernetes/controller.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "coordinator/kubernetes/api_answers.h"
#include "coordinator/kubernetes/job_events.h"
#include "coordinator/state/job_state.h"

namespace troupe {
namespace {

constexpr char kArea[] = "kubernetes";

constexpr Duration kTurnLimit = std::chrono::seconds(1);
constexpr Duration kLookInterval = std::chrono::seconds(1);
constexpr Duration kFiguresInterval = std::chrono::seconds(10);
constexpr Duration kShortWatch = std::chrono::seconds(10);
constexpr Duration kFirstWait = std::chrono::milliseconds(500);
constexpr Duration kLastWait = std::chrono::seconds(60);
// A job that starts refuses to be stopped with a checkpoint until it trains.
constexpr Duration kLastActWait = std::chrono::seconds(5);
// The object is read after a conflict, so that the next write hardly fails again, and a state must
// not be shown late where other writers are busy.
constexpr Duration kLastConflictWait = std::chrono::seconds(4);
constexpr int64_t kConflictsToReport = 8;
// A rejected job may become valid, as when its data appear.
constexpr Duration kRejectedWait = std::chrono::minutes(5);
// Thousands of jobs may be above a limit or quota, and each try is recorded in the audit log.
constexpr Duration kExhaustedWait = std::chrono::seconds(30);

// Whether the error lies in the job or in the caller's rights, so that a repetition will hardly
// help.
bool IsFinal(const Status& status) {
  return status.code() == StatusCode::kInvalidArgument ||
         status.code() == StatusCode::kPermissionDenied ||
         status.code() == StatusCode::kAlreadyExists;
}

bool IsOfFinalizer(Act act) { return act == Act::kAddFinalizer || act == Act::kRemoveFinalizer; }

// Returns the error of an act in one line. A newline separates two violations: what others chose of
// a Status has none (ToGrpcStatus, Violations).
std::string RefusalText(const Status& status) {
  std::string text;
  for (const char c : Message(status)) {
    if (c == '\n') {
      text += "; ";
    } else {
      text += c;
    }
  }
  return text;
}

// Takes over the times of conditions whose status has not changed.
void SetTimes(const TroupeJobStatus& former, const std::string& now, TroupeJobStatus* status) {
  for (Condition& condition : status->conditions) {
    const Condition* const before = former.Find(condition.type);
    const bool is_same = before != nullptr && before->status == condition.status;
    condition.since = is_same && !before->since.empty() ? before->since : now;
  }
}

}  // namespace

Controller::Controller(ControllerOptions options, ApiServer& api, JobCalls& jobs,
                       const Clock& clock)
    : options_(std::move(options)),
      api_(api),
      jobs_(jobs),
      clock_(clock),
      pause_(kFirstWait, kLastWait) {}

void Controller::Turn() {
  const MonotonicTime now = clock_.Now();
  const bool pauses = pause_.Waits(now);
  if (!pauses && !is_listed_) List();
  if (is_listed_ && !is_watching_ && !pause_.Waits(clock_.Now())) OpenWatch();
  Duration limit = kTurnLimit;
  if (pauses) limit = std::min(limit, pause_.until() - now);
  if (has_news_ && !pauses && is_listed_) limit = Duration::zero();
  ReadWatch(limit);
  ReadOutcomes();
  if (!is_listed_ || pause_.Waits(clock_.Now())) return;
  if (has_news_ || clock_.Now() >= next_look_) ReconcileAll();
}

void Controller::List() {
  if (std::exchange(is_watching_, false)) api_.CloseWatch();
  const ApiAnswer answer = api_.Call(ListRequest(options_.space));
  const Json list = answer.ok() ? Json::parse(answer.body, nullptr, false) : Json();
  if (!list.is_object() || !list.contains("items") || !list["items"].is_array() ||
      !list.contains("metadata") || !IsPartOfPath(TextOf(list["metadata"], "resourceVersion"))) {
    if (answer.code == HttpCode::kNotFound) {
      Complain(fmt::format("the API server has no resource troupejobs of {}: {}", kTroupeJobVersion,
                           kApplyDefinition));
      pause_.Fail(clock_.Now());
      return;
    }
    return Pause(answer.ok() ? ApiAnswer{.error = "the list of TroupeJobs cannot be read"}
                             : answer);
  }
  std::set<std::string> listed;
  std::vector<TroupeJob> objects;
  for (const Json& item : list["items"]) {
    StatusOr<TroupeJob> object = ParseTroupeJob(item);
    if (!object.ok()) continue;
    listed.insert(object->uid);
    objects.push_back(*std::move(object));
  }
  for (const auto& [uid, tracked] : tracked_)
    if (!listed.contains(uid)) Lose(uid);
  for (TroupeJob& object : objects) Track(std::move(object));
  resource_version_ = TextOf(list["metadata"], "resourceVersion");
  if (!complaint_.empty()) LogInfo(kArea, "the API server answers again");
  complaint_.clear();
  pause_.Reset();
  is_listed_ = true;
  has_news_ = true;
}

void Controller::OpenWatch() {
  api_.OpenWatch(WatchPath(options_.space, resource_version_));
  watch_opened_ = clock_.Now();
  is_watching_ = true;
}

void Controller::ReadWatch(Duration limit) {
  WatchRead read = api_.ReadWatch(limit);
  for (const std::string& line : read.lines) {
    if (!is_watching_) return;  // a line before has ended the watch
    ReadLine(line);
  }
  if (!read.ended || !is_watching_) return;
  is_watching_ = false;
  const MonotonicTime now = clock_.Now();
  const bool is_short = now - watch_opened_ < kShortWatch;
  // A server whose watch has lasted answers: its end is no repeated failure.
  if (!is_short && read.code == HttpCode::kOk && !pause_.Waits(now)) pause_.Reset();
  if (read.code == HttpCode::kGone) {
    is_listed_ = false;
    pause_.Fail(clock_.Now());
  } else if (!read.error.empty() || (read.code != HttpCode::kOk && read.code != 0)) {
    Pause({.code = read.code == HttpCode::kOk ? 0 : read.code, .error = read.error});
    // The reason may be that the resource is gone.
    if (read.code == HttpCode::kNotFound) is_listed_ = false;
  } else if (read.lines.empty() || is_short) {
    pause_.Fail(clock_.Now());  // a server that ends watches at once must not be asked in a loop
  }
}

void Controller::ReadLine(const std::string& line) {
  const Json event = Json::parse(line, nullptr, false);
  const std::string type = TextOf(event, "type");
  if (type.empty() || !event.contains("object"))
    return LoseWatch("a line of the watch is no event");
  const Json& object = event["object"];
  if (type == "ERROR") {
    const int64_t code = WholeOf(object, "code").value_or(0);
    return LoseWatch(code == HttpCode::kGone ? ""
                                             : fmt::format("the watch ended with code {}", code));
  }
  if (type == "BOOKMARK") {
    const std::string version =
        object.contains("metadata") ? TextOf(object["metadata"], "resourceVersion") : "";
    if (IsPartOfPath(version)) resource_version_ = version;
    return;
  }
  StatusOr<TroupeJob> parsed = ParseTroupeJob(object);
  if (!parsed.ok()) return LoseWatch(std::string(Message(parsed.status())));
  pause_.Reset();
  const auto known = tracked_.find(parsed->uid);
  if (known != tracked_.end() &&
      IsOlder(parsed->resource_version, known->second.object.resource_version))
    return;  // the server has sent it before, or it is behind the answer to a write
  resource_version_ = parsed->resource_version;
  has_news_ = true;
  if (type == "DELETED") return Lose(parsed->uid);
  Track(*std::move(parsed));
}

// An empty reason is no error: the version behind which the watch began is too old.
void Controller::LoseWatch(const std::string& reason) {
  api_.CloseWatch();
  is_watching_ = false;
  is_listed_ = false;
  if (reason.empty()) return pause_.Fail(clock_.Now());
  Pause({.error = reason});
}

void Controller::Track(TroupeJob object) {
  auto found = tracked_.find(object.uid);
  if (found == tracked_.end()) {
    if (tracked_.size() >= options_.most_objects) {
      Complain(fmt::format("more than {} TroupeJobs: the others are not reconciled",
                           options_.most_objects));
      return;
    }
    found = tracked_
                .emplace(object.uid, Tracked{.acts = Backoff(kFirstWait, kLastActWait),
                                             .writes = Backoff(kFirstWait, kLastWait),
                                             .conflicts = Backoff(kFirstWait, kLastConflictWait)})
                .first;
  }
  if (!IsOlder(object.resource_version, found->second.object.resource_version))
    Replace(found->second, std::move(object));
}

void Controller::Replace(Tracked& tracked, TroupeJob object) {
  const bool is_changed =
      tracked.job_name.empty() || tracked.object.generation != object.generation ||
      tracked.object.dropped != object.dropped || tracked.object.is_deleted != object.is_deleted;
  tracked.object = std::move(object);
  const Condition* const accepted = tracked.object.status.Find(kAcceptedCondition);
  // An earlier coordinator's rejection holds until the job is tried again.
  if (tracked.job_name.empty() && tracked.object.status.state == kRejected && accepted != nullptr)
    tracked.refusal = Refusal{accepted->message, true};
  if (!is_changed) return;
  tracked.acts.Reset();  // a change is tried at once
  const StatusOr<v1::JobSpec> job = JobOf(tracked.object);
  tracked.job_name = job.ok() ? job->name() : tracked.object.name;
}

void Controller::Lose(const std::string& uid) {
  const auto found = tracked_.find(uid);
  if (found == tracked_.end() || found->second.is_gone) return;
  found->second.is_gone = true;
  found->second.acts.Reset();
  has_news_ = true;
}

void Controller::ReadOutcomes() {
  for (const JobOutcome& outcome : jobs_.TakeOutcomes()) {
    has_news_ = true;
    const auto found = tracked_.find(outcome.uid);
    if (found == tracked_.end()) continue;
    Tracked& tracked = found->second;
    tracked.is_busy = false;
    if (outcome.status.ok()) {
      tracked.refusal.reset();
      tracked.acts.Reset();
      continue;
    }
    const bool is_final = IsFinal(outcome.status);
    tracked.refusal = Refusal{RefusalText(outcome.status), is_final};
    const bool is_exhausted = outcome.status.code() == StatusCode::kResourceExhausted;
    tracked.acts.Fail(clock_.Now(), is_final       ? kRejectedWait
                                    : is_exhausted ? kExhaustedWait
                                                   : Duration::zero());
  }
}

void Controller::ReconcileAll() {
  next_look_ = clock_.Now() + kLookInterval;
  has_news_ = false;
  leaving_.clear();
  std::vector<JobOfObject> objects;
  for (const auto& [uid, tracked] : tracked_) {
    if (tracked.is_gone) leaving_.insert(tracked.job_name);
    const TroupeJobStatus& status = tracked.object.status;
    objects.push_back({.uid = uid,
                       .job_name = tracked.job_name,
                       .known_step = status.loss.empty() ? -1 : status.step.value_or(-1)});
  }
  const auto first = std::ranges::lower_bound(objects, first_uid_, {}, &JobOfObject::uid);
  std::rotate(objects.begin(), first, objects.end());
  const auto facts = jobs_.Look(objects);
  if (!facts.ok()) return;  // the engine is overloaded; the next turn looks again
  for (size_t i = 0; i < objects.size(); ++i) {
    const auto found = tracked_.find(objects[i].uid);
    if (found == tracked_.end()) continue;  // forgotten meanwhile
    const JobFacts* const job = (*facts)[i] ? &*(*facts)[i] : nullptr;
    if (found->second.is_gone) {
      if (!DeleteJobOf(found->second, job)) continue;
      // The next list finds an object that had no room.
      if (tracked_.size() >= options_.most_objects) is_listed_ = false;
      tracked_.erase(found);
      has_news_ = true;  // another object may have its name
      continue;
    }
    if (ReconcileOne(found->second, job)) continue;
    // An object on which the server fails each time must not hold up those behind it.
    first_uid_ = objects[(i + 1) % objects.size()].uid;
    return;
  }
}

bool Controller::ReconcileOne(Tracked& tracked, const JobFacts* job) {
  if (tracked.writes.Waits(clock_.Now()) || tracked.conflicts.Waits(clock_.Now())) return true;
  if (tracked.refusal) tracked.refusal->waits = tracked.acts.Waits(clock_.Now());
  const Decision decision =
      Reconcile(tracked.object, job, tracked.refusal ? &*tracked.refusal : nullptr);
  const TroupeJobStatus& recorded = tracked.object.status;
  // An object that is about to get or has lost the finalizer gets no status: it may be that of
  // another controller's past, or gone.
  const bool is_ours = tracked.object.has_finalizer() ||
                       (decision.act != Act::kAddFinalizer && !tracked.object.is_deleted);
  const bool differs = DiffersInState(decision.status, recorded) ||
                       (clock_.Now() >= tracked.next_figures && Differs(decision.status, recorded));
  if (is_ours && differs) {
    const Answer written = WriteStatus(tracked, decision.status);
    if (written == Answer::kPaused) return false;
    if (written == Answer::kFailed && decision.record_first) return true;
    // The answer shows a new wish, about which the next turn decides at once.
    if (written == Answer::kDone &&
        tracked.object.generation != decision.status.observed_generation)
      return true;
  }
  if (job != nullptr) NoteMoves(tracked, *job);
  if (tracked.is_busy || decision.act == Act::kNone) return true;
  // The errors of calls for the job do not concern the finalizer.
  if (!IsOfFinalizer(decision.act) && tracked.acts.Waits(clock_.Now())) return true;
  return Perform(tracked, decision, job);
}

bool Controller::DeleteJobOf(Tracked& tracked, const JobFacts* job) {
  if (tracked.is_busy) return false;
  if (job == nullptr || job->is_removed) return true;
  const std::string& name = tracked.object.name;
  if (!HasEnded(job->state)) {
    LogWarning(kArea, "TroupeJob {} is gone without its finalizer; its job {} is left as it is",
               name, job->name);
    return true;
  }
  if (tracked.acts.Waits(clock_.Now())) {
    if (!tracked.refusal || !tracked.refusal->is_final) return false;
    LogWarning(kArea, "TroupeJob {} is gone, and its job {} stays in the catalog: {}", name,
               job->name, tracked.refusal->message);
    return true;
  }
  if (!jobs_.HasRoom()) return false;  // the end of a call is news
  tracked.is_busy = true;
  jobs_.Delete(tracked.object.uid, job->name);
  return false;
}

Controller::Answer Controller::WriteStatus(Tracked& tracked, TroupeJobStatus status) {
  const TroupeJobStatus former = tracked.object.status;
  SetTimes(former, UtcText(WallSeconds(clock_)), &status);
  const Answer sent = Send(tracked, StatusRequest(tracked.object, status));
  if (sent != Answer::kDone) return sent;
  tracked.next_figures = clock_.Now() + kFiguresInterval;
  // Without this check, a status that is stored otherwise would be written again and again.
  if (DiffersInState(status, tracked.object.status)) {
    Complain(fmt::format("the API server drops the status of TroupeJobs: {}", kApplyDefinition));
    tracked.writes.Fail(clock_.Now());
    return Answer::kFailed;
  }
  tracked.writes.Reset();
  if (const auto event = EventOfChange(former, status)) SendEvent(tracked.object, *event);
  return Answer::kDone;
}

bool Controller::Perform(Tracked& tracked, const Decision& decision, const JobFacts* job) {
  const TroupeJob& object = tracked.object;
  const bool creates =
      job == nullptr && !object.is_deleted && decision.act != Act::kRemoveFinalizer;
  if (creates && !Accept(tracked)) return true;
  if (IsOfFinalizer(decision.act)) {
    const Answer sent =
        Send(tracked, decision.act == Act::kAddFinalizer ? AddFinalizerRequest(object)
                                                         : RemoveFinalizerRequest(object));
    if (sent == Answer::kDone) tracked.writes.Reset();
    return sent != Answer::kPaused;
  }
  if (!jobs_.HasRoom()) return true;  // the end of a call is news
  tracked.is_busy = true;
  if (decision.act == Act::kCreate) {
    jobs_.Create(object.uid, *JobOf(object));
  } else if (decision.act == Act::kCancel) {
    jobs_.Cancel(object.uid, job->name, decision.checkpoint);
  } else if (decision.act == Act::kResume) {
    jobs_.Resume(object.uid, job->name);
  } else {
    jobs_.Delete(object.uid, job->name);
  }
  return true;
}

bool Controller::Accept(Tracked& tracked) {
  const TroupeJob& object = tracked.object;
  if (leaving_.contains(tracked.job_name)) return false;  // another object had it
  Status status = JobOf(object).status();
  if (status.ok() && !object.dropped.empty()) {
    status = InvalidArgument(
        "{}: correct the keys, or apply the definition of this version; then delete the object and "
        "apply it again",
        DroppedText(object));
  }
  if (status.ok()) return true;
  tracked.refusal = Refusal{.message = RefusalText(status), .is_final = true};
  tracked.acts.Fail(clock_.Now(), kRejectedWait);
  has_news_ = true;
  return false;
}

// Sends a request whose answer is the object.
Controller::Answer Controller::Send(Tracked& tracked, const ApiRequest& request) {
  const ApiAnswer answer = api_.Call(request);
  if (answer.ok()) {
    pause_.Reset();
    tracked.conflicts.Reset();
    tracked.conflicts_in_a_row = 0;
    StatusOr<TroupeJob> object = ParseTroupeJob(Json::parse(answer.body, nullptr, false));
    if (object.ok() && object->uid == tracked.object.uid) Replace(tracked, *std::move(object));
    has_news_ = true;
    return Answer::kDone;
  }
  if (ConcernsAll(answer)) {
    Pause(answer);
    // It may fail on this object alone.
    if (answer.code >= HttpCode::kServerErrors) tracked.writes.Fail(clock_.Now());
    return Answer::kPaused;
  }
  if (answer.code == HttpCode::kConflict) return Yield(tracked);
  tracked.writes.Fail(clock_.Now());
  const bool may_have_changed =
      answer.code == HttpCode::kNotFound || answer.code == HttpCode::kUnprocessable;
  if (may_have_changed && !ReadObject(tracked)) return Answer::kFailed;
  Complain(fmt::format("TroupeJob {} cannot be written: {}", tracked.object.name,
                       ErrorWithAdvice(answer)));
  return Answer::kFailed;
}

Controller::Answer Controller::Yield(Tracked& tracked) {
  tracked.conflicts.Fail(clock_.Now());
  if (++tracked.conflicts_in_a_row % kConflictsToReport == 0) {
    Complain(
        fmt::format("TroupeJob {} cannot be written: {} writes in a row met one of another "
                    "writer (409)",
                    tracked.object.name, tracked.conflicts_in_a_row));
  }
  ReadObject(tracked);
  return Answer::kFailed;
}

// The watch would send the object too, but may be behind.
bool Controller::ReadObject(Tracked& tracked) {
  const ApiAnswer answer = api_.Call(GetRequest(tracked.object));
  if (answer.code == HttpCode::kNotFound)
    is_listed_ = false;  // the next list shows whether it is gone
  if (!answer.ok()) return false;
  StatusOr<TroupeJob> object = ParseTroupeJob(Json::parse(answer.body, nullptr, false));
  const bool is_same = object.ok() && object->uid == tracked.object.uid;
  if (is_same) {
    Replace(tracked, *std::move(object));
  } else {
    is_listed_ = false;  // another object has its name now
  }
  return is_same;
}

void Controller::SendEvent(const TroupeJob& object, const ObjectEvent& event) {
  const ApiAnswer answer =
      api_.Call(EventRequest(object, event, options_.instance, clock_.WallNanoseconds()));
  if (!answer.ok() && !ConcernsAll(answer))
    Complain(fmt::format("an event cannot be written: {}", ErrorText(answer)));
}

void Controller::NoteMoves(Tracked& tracked, const JobFacts& job) {
  const bool has_moved = tracked.moves && *tracked.moves < job.moves;
  tracked.moves = job.moves;
  if (has_moved) SendEvent(tracked.object, EventOfMove(tracked.object.status, job));
}

void Controller::Pause(const ApiAnswer& answer) {
  const double asked = answer.retry_after_seconds.value_or(0);
  pause_.Fail(clock_.Now(), FromSeconds(std::clamp(asked, 0.0, ToSeconds(kLastWait))));
  Complain(fmt::format("the API server refuses or does not answer: {}", ErrorText(answer)));
}

// Logs `text` unless it is the last complaint, which is repeated only after another one or a list.
void Controller::Complain(const std::string& text) {
  if (text == complaint_) return;
  complaint_ = text;
  LogWarning(kArea, "{}", text);
}

}  // namespace troupe
