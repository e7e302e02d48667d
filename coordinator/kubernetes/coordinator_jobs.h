// The jobs of this coordinator for the controller of TroupeJobs: changes are calls of its own
// services on an in-process channel, so that they pass the checks, limits and records of a user's
// calls; facts are read from the engine's state and from the catalog.
#ifndef TROUPE_COORDINATOR_KUBERNETES_COORDINATOR_JOBS_H_
#define TROUPE_COORDINATOR_KUBERNETES_COORDINATOR_JOBS_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/open_calls.h"
#include "base/store/store.h"
#include "coordinator/engine/engine.h"
#include "coordinator/kubernetes/job_calls.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {

struct CoordinatorJobsOptions {
  Engine* engine = nullptr;  // outlives the jobs, like store
  const Store* store = nullptr;
  std::shared_ptr<grpc::Channel> channel;  // in-process
  std::string secret;                      // that of the internal caller
  // Counts a call until gRPC has released everything of it.
  std::function<std::shared_ptr<void>()> begin_call;
  std::function<void()> wake;  // called on a thread of gRPC when a call has ended
};

// At most kMostCalls calls are in flight, which is fewer than the plans of one user that may wait.
class CoordinatorJobs final : public JobCalls {
 public:
  static constexpr int kMostCalls = 8;

  explicit CoordinatorJobs(CoordinatorJobsOptions options);
  ~CoordinatorJobs() override;

  StatusOr<std::vector<std::optional<JobFacts>>> Look(
      const std::vector<JobOfObject>& objects) override;
  bool HasRoom() const override;
  void Create(const std::string& uid, const v1::JobSpec& job) override;
  void Cancel(const std::string& uid, const std::string& job, bool checkpoint) override;
  void Resume(const std::string& uid, const std::string& job) override;
  void Delete(const std::string& uid, const std::string& job) override;
  std::vector<JobOutcome> TakeOutcomes() override;

 private:
  struct Ended;
  template <typename Request, typename Response>
  struct Call;

  // Begins `call`; an end after its deadline counts as one without error if `may_last`.
  template <typename Request, typename Response, typename Begin>
  void Start(const std::string& uid, const Request& request, Duration limit, bool may_last,
             Begin begin);

  const CoordinatorJobsOptions options_;
  const std::unique_ptr<v1::JobService::Stub> stub_;
  const std::shared_ptr<Ended> ended_;
  int in_flight_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_KUBERNETES_COORDINATOR_JOBS_H_
