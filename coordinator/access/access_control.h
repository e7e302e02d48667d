// The access that a running coordinator grants: it authenticates callers by certificate or token,
// keeps tokens and revocations in memory and in the catalog, and ends the open streams of callers
// whose access has ended.
//
// A change is durable before the function returns. The rules are in TokenTable, Revocations and
// OpenStreams; this class adds the lock, the clock and the catalog.
#ifndef TROUPE_COORDINATOR_ACCESS_ACCESS_CONTROL_H_
#define TROUPE_COORDINATOR_ACCESS_ACCESS_CONTROL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/store/store.h"
#include "coordinator/access/audit_log.h"
#include "coordinator/access/caller.h"
#include "coordinator/access/open_streams.h"
#include "coordinator/access/revocations.h"
#include "coordinator/access/token_table.h"
#include "coordinator/state/catalog.h"
#include "troupe/v1/access.pb.h"

namespace troupe {

class AccessControl;

// Returns "token:ID" if these values of the metadata "authorization" are one token, whose secret
// nobody has checked; else nothing. It names the caller of a call that is refused.
std::string ClaimedToken(std::span<const std::string> authorizations);

// A stream of AccessControl, which forgets it when the guard is destroyed.
class StreamGuard {
 public:
  StreamGuard(AccessControl& access, uint64_t number) : access_(access), number_(number) {}
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  AccessControl& access_;
  const uint64_t number_;
};

// Thread-safe.
class AccessControl {
 public:
  // Reads the catalog. `cluster` is that of the server's certificate, empty without TLS. The other
  // arguments outlive the object. DATA_LOSS if the catalog is damaged.
  static StatusOr<std::unique_ptr<AccessControl>> Open(const std::string& cluster, Store& store,
                                                       const Clock& clock, AuditLog& audit);

  const std::string& cluster() const { return cluster_; }

  // Returns the caller of a call with this certificate (PEM; empty: none) and these values of the
  // metadata "authorization". With neither the caller is anonymous. UNAUTHENTICATED if the call has
  // more than one of them, or if it is not valid now.
  StatusOr<Caller> Authenticate(std::string_view certificate_pem,
                                std::span<const std::string> authorizations) const;

  // These are called for a caller whom the audit log names `by`. FAILED_PRECONDITION without TLS,
  // and the errors of TokenTable, Revocations and Store. Creates the token `parts`, which is one of
  // MakeUserToken(cluster()).
  StatusOr<v1::UserToken> CreateToken(const v1::CreateUserTokenRequest& request,
                                      const UserTokenParts& parts, const std::string& by);
  StatusOr<v1::UserToken> RevokeToken(const std::string& id, const std::string& by);
  StatusOr<v1::Revocation> RevokeCertificate(const v1::RevokeCertificateRequest& request,
                                             const std::string& by);

  // Returns the Unix time in seconds at which the identity was last revoked; 0: never.
  int64_t WhenRevoked(const Identity& identity) const;

  std::vector<v1::UserToken> ListTokens() const;
  std::vector<v1::Revocation> ListRevocations() const;

  // Calls stream.end once, on any thread, if the access of its caller ends while the guard lives,
  // and records that in the audit log; the call may still run when the guard is destroyed.
  // UNAUTHENTICATED if the access has ended already, or the caller is anonymous.
  StatusOr<std::unique_ptr<StreamGuard>> Guard(OpenStream stream);

  // Ends the streams whose certificates or tokens have expired. To be called about once a second.
  void EndExpiredStreams();

 private:
  friend class StreamGuard;

  AccessControl(const std::string& cluster, Store& store, const Clock& clock, AuditLog& audit)
      : cluster_(cluster),
        store_(store),
        clock_(clock),
        audit_(audit),
        tokens_(cluster),
        revocations_(cluster) {}

  Status CheckHasTls() const;
  Status CheckStillValid(const Caller& caller, int64_t now) const;
  void EndRefusedStreams();
  void RemoveStream(uint64_t number);

  const std::string cluster_;
  Store& store_;
  const Clock& clock_;
  AuditLog& audit_;
  std::mutex changes_;               // one change at a time; locked before mutex_
  mutable std::shared_mutex mutex_;  // guards the members below
  TokenTable tokens_;
  Revocations revocations_;
  OpenStreams streams_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ACCESS_ACCESS_CONTROL_H_
