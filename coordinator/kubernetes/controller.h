// Reconciles the TroupeJobs of one namespace of Kubernetes with the jobs of the coordinator: lists
// and watches the objects, decides by Reconcile, and writes their status and events.
//
// It has no thread and no socket of its own: its owner calls Turn again and again, and Turn waits
// in `api` only. Everything that must survive a crash is in the objects and in the catalog.
//
// Overload: at most ControllerOptions.most_objects are followed. The calls in flight are bounded by
// `jobs`, one for each object, and the lines of a watch that wait by `api`.
#ifndef TROUPE_COORDINATOR_KUBERNETES_CONTROLLER_H_
#define TROUPE_COORDINATOR_KUBERNETES_CONTROLLER_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "coordinator/kubernetes/api_server.h"
#include "coordinator/kubernetes/backoff.h"
#include "coordinator/kubernetes/job_calls.h"
#include "coordinator/kubernetes/reconcile.h"
#include "coordinator/kubernetes/requests.h"
#include "coordinator/kubernetes/troupe_job.h"

namespace troupe {

struct ControllerOptions {
  std::string space;     // namespace of Kubernetes
  std::string instance;  // names this coordinator in events
  size_t most_objects = 10'000;
};

class Controller {
 public:
  // `api`, `jobs` and `clock` outlive the controller.
  Controller(ControllerOptions options, ApiServer& api, JobCalls& jobs, const Clock& clock);

  // Does what can be done now, after at most about a second of waiting for news.
  void Turn();

 private:
  struct Tracked {
    TroupeJob object;
    std::string job_name;          // that of spec.job, or the object's
    bool is_busy = false;          // a call is in flight
    bool is_gone = false;          // the object is; its job, if it has ended, is deleted too
    std::optional<int64_t> moves;  // those of its job that events have named
    std::optional<Refusal> refusal;
    Backoff acts;       // after errors of calls for its job
    Backoff writes;     // after errors of requests about the object
    Backoff conflicts;  // after writes that another one preceded
    int64_t conflicts_in_a_row = 0;
    MonotonicTime next_figures = MonotonicTime::min();  // when figures are written again
  };

  // The answer to a request about an object.
  enum class Answer { kDone, kFailed, kPaused };

  void List();
  void OpenWatch();
  void ReadWatch(Duration limit);
  void ReadLine(const std::string& line);
  void LoseWatch(const std::string& reason);

  void Track(TroupeJob object);
  // Takes over a newer version of the object.
  void Replace(Tracked& tracked, TroupeJob object);
  // The object is gone. Its entry stays until its job is.
  void Lose(const std::string& uid);

  void ReadOutcomes();
  void ReconcileAll();
  // Returns false if the API server asks for a pause.
  bool ReconcileOne(Tracked& tracked, const JobFacts* job);
  // Deletes the ended job of an object that is gone. Returns whether nothing is left to do.
  bool DeleteJobOf(Tracked& tracked, const JobFacts* job);
  Answer WriteStatus(Tracked& tracked, TroupeJobStatus status);
  bool Perform(Tracked& tracked, const Decision& decision, const JobFacts* job);
  // Returns whether the object's job may be created, which has no finalizer and no name until then.
  bool Accept(Tracked& tracked);

  Answer Send(Tracked& tracked, const ApiRequest& request);
  // Another writer was faster: waits a little and reads the object.
  Answer Yield(Tracked& tracked);
  // Returns whether the object still exists.
  bool ReadObject(Tracked& tracked);
  void SendEvent(const TroupeJob& object, const ObjectEvent& event);
  void NoteMoves(Tracked& tracked, const JobFacts& job);
  void Pause(const ApiAnswer& answer);
  void Complain(const std::string& text);

  const ControllerOptions options_;
  ApiServer& api_;
  JobCalls& jobs_;
  const Clock& clock_;
  std::map<std::string, Tracked> tracked_;  // by uid
  bool is_listed_ = false;                  // `tracked_` follows the API server
  bool is_watching_ = false;
  MonotonicTime watch_opened_;
  std::string resource_version_;  // up to which the objects are known
  Backoff pause_;                 // after errors that concern all requests
  std::string first_uid_;         // the next look begins with this object, or the one after it
  MonotonicTime next_look_ = MonotonicTime::min();
  std::set<std::string> leaving_;  // names of jobs whose objects are gone
  bool has_news_ = true;           // objects or jobs have changed since the last look
  std::string complaint_;          // the last one in the log
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_KUBERNETES_CONTROLLER_H_
