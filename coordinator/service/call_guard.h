// Decides which jobs a caller may use, where their paths may be, and how many streams it may open.
// Refusals of the first two kinds are recorded in the audit log.
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
#include "coordinator/service/user_streams.h"
#include "coordinator/state/namespaces.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

class CallGuard;

// One call of a handler; it can be kept after the handler has returned.
struct GuardedCall {
  // With a null `guard` there is no identity.
  GuardedCall(const CallGuard* guard, const grpc::CallbackServerContext& context,
              std::string_view method);

  Status access;  // UNAUTHENTICATED: that of the caller has ended since the call began
  std::optional<Identity> identity;  // absent without TLS
  std::string caller;                // as audit records name it
  std::string_view rpc;              // a constant

  // The identity as the catalog and the limits of users have it; empty: there is none.
  std::string user() const { return identity ? ToUri(*identity) : std::string(); }
};

// Thread-safe.
class CallGuard {
 public:
  // `audit` outlives the guard; a null one knows no callers and records nothing.
  CallGuard(std::shared_ptr<const Namespaces> namespaces, int most_user_streams,
            const CallAudit* audit)
      : audit_(audit), streams_(most_user_streams), namespaces_(std::move(namespaces)) {}

  const CallAudit* audit() const { return audit_; }

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

  // RESOURCE_EXHAUSTED if the caller has too many streams.
  StatusOr<StreamTicket> OpenStream(const GuardedCall& call);

 private:
  std::shared_ptr<const Namespaces> namespaces() const;
  Status Recorded(const GuardedCall& call, Status status) const;
  template <typename Confined>
  Status CheckPathsOf(const GuardedCall& call, const std::string& job,
                      const Confined& confined) const;

  const CallAudit* const audit_;
  UserStreams streams_;
  mutable std::mutex mutex_;  // guards the member below
  std::shared_ptr<const Namespaces> namespaces_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_CALL_GUARD_H_
