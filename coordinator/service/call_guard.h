// Decides which jobs a caller may use, where their paths may be, how many streams it may open, and
// how many of its plans may wait. Refusals are recorded in the audit log.
//
// Without TLS a caller has no identity: it may use every job, and no limit of a user holds. Roots
// and quotas of namespaces hold for it too. A caller has the same identity with a certificate and
// with a token.
#ifndef TROUPE_COORDINATOR_SERVICE_CALL_GUARD_H_
#define TROUPE_COORDINATOR_SERVICE_CALL_GUARD_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/security/identity.h"
#include "base/status.h"
#include "coordinator/machine/views.h"
#include "coordinator/service/call_audit.h"
#include "coordinator/service/user_counts.h"
#include "coordinator/state/namespaces.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

class CallGuard;

// Limits of one identity at a time.
struct UserLimits {
  int streams = 64;        // that are open
  int waiting_plans = 16;  // the pool admits 64 of all users
};

// One call of a handler; it can be kept after the handler has returned.
struct GuardedCall {
  GuardedCall(const CallGuard& guard, const grpc::CallbackServerContext& context,
              std::string_view method);

  Status access;  // UNAUTHENTICATED: that of the caller has ended since the call began
  std::optional<Identity> identity;  // absent without TLS
  std::string caller;                // as audit records name it
  std::string rpc;

  // The identity as the catalog and the limits of users have it; empty: there is none.
  std::string user() const { return identity ? ToUri(*identity) : std::string(); }
};

// Thread-safe.
class CallGuard {
 public:
  // `audit` outlives the guard.
  CallGuard(std::shared_ptr<const Namespaces> namespaces, const UserLimits& limits,
            const CallAudit& audit);

  const CallAudit& audit() const { return audit_; }

  void SetNamespaces(std::shared_ptr<const Namespaces> namespaces);

  // PERMISSION_DENIED unless the caller may use the job with this name or id. The answer does not
  // depend on whether the job exists. These functions return call.access if it is an error.
  Status CheckJob(const GuardedCall& call, const std::string& job) const;

  // As CheckJob; also INVALID_ARGUMENT if the namespace of the job does not exist or does not allow
  // a path of `spec`, or of the whole request.
  Status CheckSpec(const GuardedCall& call, const std::string& job, const v1::JobSpec& spec) const;
  Status CheckRebuild(const GuardedCall& call, const v1::RebuildJobRequest& request) const;

  // The jobs that the caller may see, for lists.
  StatusOr<JobFilter> SeenBy(const GuardedCall& call) const;

  // Returns `status`, and records it as a refusal if it is one by a quota or a limit, or a path
  // that leaves its root. For what is found out only after the call was admitted.
  Status RecordIfRefused(const GuardedCall& call, Status status) const;

  // RESOURCE_EXHAUSTED if the caller has too many streams; recorded.
  StatusOr<UserTicket> OpenStream(const GuardedCall& call) const;

  // RESOURCE_EXHAUSTED if too many plans and checks of data of the caller wait; recorded.
  StatusOr<UserTicket> AwaitPlan(const GuardedCall& call) const;

 private:
  std::shared_ptr<const Namespaces> namespaces() const;
  Status Recorded(const GuardedCall& call, Status status) const;
  StatusOr<UserTicket> Count(const GuardedCall& call, const UserCounts& counts) const;
  template <typename Confined>
  Status CheckPathsOf(const GuardedCall& call, const std::string& job,
                      const Confined& confined) const;

  const CallAudit& audit_;
  const UserCounts streams_;
  const UserCounts waiting_plans_;
  mutable std::mutex mutex_;  // guards the member below
  std::shared_ptr<const Namespaces> namespaces_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_CALL_GUARD_H_
