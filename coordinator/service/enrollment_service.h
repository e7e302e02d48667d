// EnrollmentService: the certificates of workers, which the coordinator signs with the authority of
// --authority. A new worker joins with a token that an operator made; one with a certificate renews
// its own.
//
// A certificate has the identity that the token or the caller's certificate states. Of a request
// only the key counts. After a revocation of the identity, which refuses the certificates that
// began to be valid until then, a join gives one that begins later. A renewal never does, so that
// its caller keeps no access if it is revoked meanwhile. For the same reason its serial number
// shows that it descends from the former certificate (base/security/certificate_line.h).
//
// The authority's directory is read again for each new token, join and renewal, so that it may be
// replaced while the coordinator runs.
#ifndef TROUPE_COORDINATOR_SERVICE_ENROLLMENT_SERVICE_H_
#define TROUPE_COORDINATOR_SERVICE_ENROLLMENT_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "actor/work_pool.h"
#include "base/clock.h"
#include "base/security/authority_files.h"
#include "base/status.h"
#include "base/store/store.h"
#include "coordinator/access/join_ledger.h"
#include "coordinator/service/call_audit.h"
#include "coordinator/service/service_pools.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {

struct EnrollmentOptions {
  std::string authority;                        // directory that `troupe certs init` made
  int64_t certificate_seconds = kSecondsOfDay;  // life of the certificates
  TlsFiles tls;                                 // the coordinator's own; the server sets it
};

// Returns the authority of --authority for a coordinator with the certificate in `tls`.
// INVALID_ARGUMENT with the errors of ReadAuthority, or if it is one of another cluster, or has not
// signed the coordinator's certificate: workers that join trust only this authority.
StatusOr<Authority> CheckEnrollment(const std::string& directory, const TlsFiles& tls,
                                    int64_t now_seconds);

// Strangers may call Join and GetAuthority, which therefore get the bytes of a request, and parse
// none that is too large (request_bytes.h).
using EnrollmentBase = v1::EnrollmentService::WithRawCallbackMethod_Join<
    v1::EnrollmentService::WithRawCallbackMethod_GetAuthority<
        v1::EnrollmentService::WithCallbackMethod_CreateJoinToken<
            v1::EnrollmentService::WithCallbackMethod_Renew<v1::EnrollmentService::Service>>>>;

// Thread-safe. `store`, `clock` and what `audit` refers to outlive the service and its calls.
class EnrollmentService final : public EnrollmentBase {
 public:
  // Without `options` every call is refused. `authority` is the one in their directory now. The
  // disk is used in `pools`.
  EnrollmentService(std::optional<EnrollmentOptions> options, Authority authority,
                    const ServicePools& pools, Store& store, const Clock& clock,
                    const CallAudit& audit)
      : options_(std::move(options)),
        pool_(pools.enrollment),
        joins_(pools.joins),
        clock_(clock),
        audit_(audit),
        ledger_(store, clock),
        authority_(std::move(authority)) {}

  grpc::ServerUnaryReactor* CreateJoinToken(grpc::CallbackServerContext* context,
                                            const v1::CreateJoinTokenRequest* request,
                                            v1::CreateJoinTokenResponse* response) override;
  grpc::ServerUnaryReactor* GetAuthority(grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Renew(grpc::CallbackServerContext* context,
                                  const v1::RenewRequest* request,
                                  v1::RenewResponse* response) override;

 private:
  // The bodies of the calls, in the pools.
  Status MakeToken(const v1::CreateJoinTokenRequest& request,
                   v1::CreateJoinTokenResponse* response);
  Status JoinWorker(const grpc::CallbackServerContext& context, const v1::JoinRequest& request,
                    v1::JoinResponse* response);
  Status RenewWorker(const grpc::CallbackServerContext& context, const v1::RenewRequest& request,
                     v1::RenewResponse* response);

  // FAILED_PRECONDITION without --authority.
  Status CheckSigns() const;
  // FAILED_PRECONDITION unless the coordinator's certificate is one of `authority`: a worker that
  // joins with a token trusts only the authority with which it was made.
  Status CheckVouches(const Authority& authority) const;
  // Reads the directory again. UNAVAILABLE if it cannot be used now.
  StatusOr<Authority> ReadNow();
  // Returns it as it was read last.
  Authority LastRead() const;
  // Returns a certificate for the key of `request`, valid from kMostClockSkew ago, but not from
  // before `earliest`. An empty `serial` is a random one.
  StatusOr<std::string> Sign(const Authority& authority, const std::string& worker,
                             const std::string& request, int64_t earliest,
                             const std::string& serial = "") const;

  const std::optional<EnrollmentOptions> options_;
  const WorkPool pool_;   // for callers with a certificate
  const WorkPool joins_;  // for anybody
  const Clock& clock_;
  const CallAudit audit_;
  JoinLedger ledger_;
  mutable std::mutex mutex_;
  Authority authority_;  // as last read; guarded by mutex_
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_ENROLLMENT_SERVICE_H_
