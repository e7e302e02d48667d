// Decides which jobs a caller may use, where their paths may be, and how many streams it may open.
// Refusals of the first two kinds are recorded in the audit log.
//
// A caller without a certificate has no identity: as everywhere without TLS it may use every job,
// and no limit of a user holds. Roots and quotas of namespaces hold for it too.
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
#include "coordinator/access/audit_log.h"
#include "coordinator/machine/views.h"
#include "coordinator/service/user_streams.h"
#include "coordinator/state/namespaces.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

// One call of a handler; it can be kept after the handler has returned.
struct GuardedCall {
  GuardedCall(const grpc::CallbackServerContext& context, std::string_view method);

  std::optional<Identity> identity;  // absent without a certificate
  std::string caller;                // as audit records name it
  std::string_view rpc;              // a constant

  // The identity as the catalog and the limits of users have it; empty: there is none.
  std::string user() const { return identity ? ToUri(*identity) : std::string(); }
};

// Thread-safe.
class CallGuard {
 public:
  // A null `audit` records nothing.
  CallGuard(std::shared_ptr<const Namespaces> namespaces, int most_user_streams, AuditLog* audit)
      : audit_(audit), streams_(most_user_streams), namespaces_(std::move(namespaces)) {}

  void SetNamespaces(std::shared_ptr<const Namespaces> namespaces);

  // PERMISSION_DENIED unless the caller may use the job with this name or id. The answer does not
  // depend on whether the job exists.
  Status CheckJob(const GuardedCall& call, const std::string& job) const;

  // As CheckJob; also INVALID_ARGUMENT if the namespace of the job does not exist or does not allow
  // a path of `spec`, or of the whole request.
  Status CheckSpec(const GuardedCall& call, const std::string& job, const v1::JobSpec& spec) const;
  Status CheckRebuild(const GuardedCall& call, const v1::RebuildJobRequest& request) const;

  // The jobs that the caller may see, for lists.
  JobFilter SeenBy(const GuardedCall& call) const;

  // RESOURCE_EXHAUSTED if the caller has too many streams.
  StatusOr<StreamTicket> OpenStream(const GuardedCall& call) { return streams_.Add(call.user()); }

 private:
  std::shared_ptr<const Namespaces> namespaces() const;
  Status Recorded(const GuardedCall& call, Status status) const;
  template <typename Confined>
  Status CheckPathsOf(const GuardedCall& call, const std::string& job,
                      const Confined& confined) const;

  AuditLog* const audit_;
  UserStreams streams_;
  mutable std::mutex mutex_;  // guards the member below
  std::shared_ptr<const Namespaces> namespaces_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_CALL_GUARD_H_
