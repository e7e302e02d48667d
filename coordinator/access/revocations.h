// The certificates that are refused before they expire. Pure.
//
// A serial number is refused whatever authority gave it, and with it all certificates of its line:
// those with which its holder has renewed it, and those that it renewed. An identity is refused in
// each certificate that began to be valid when it was revoked, or before: a certificate that is
// issued later is accepted. Many authorities date a certificate back, `troupe certs issue` by five
// minutes, so one that is issued within that time of the revocation is still refused: nothing shows
// that it was not issued before. The coordinator's own certificates for workers that join are dated
// back no further than to the revocation (EnrollmentService).
#ifndef TROUPE_COORDINATOR_ACCESS_REVOCATIONS_H_
#define TROUPE_COORDINATOR_ACCESS_REVOCATIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/security/certificate.h"
#include "base/security/identity.h"
#include "base/status.h"
#include "troupe/v1/access.pb.h"

namespace troupe {

inline constexpr size_t kMostRevocations = 16384;

// INVALID_ARGUMENT if the request has the serial number of `own`, the certificate of this
// coordinator: a revocation of it would have no effect. The numbers of other coordinators are not
// known here.
Status CheckIsNotOwn(const v1::RevokeCertificateRequest& request, const CertificateFacts& own);

// Not thread-safe.
class Revocations {
 public:
  explicit Revocations(std::string cluster) : cluster_(std::move(cluster)) {}

  // Returns the revocation; Put adds it. INVALID_ARGUMENT if the request has neither a serial
  // number in hexadecimal digits nor an identity of this cluster whose certificates the coordinator
  // checks; RESOURCE_EXHAUSTED if there are kMostRevocations.
  StatusOr<v1::Revocation> NewRevocation(const v1::RevokeCertificateRequest& request,
                                         const std::string& by, int64_t now) const;

  void Put(v1::Revocation revocation);

  // UNAUTHENTICATED if the certificate is revoked.
  Status Check(const CertificateFacts& certificate) const;

  // Returns the Unix time in seconds at which the identity was last revoked; 0: never.
  int64_t WhenRevoked(const Identity& identity) const;

  // Returns all revocations, oldest first.
  std::vector<v1::Revocation> List() const;

 private:
  StatusOr<v1::Revocation> RevocationOf(const v1::RevokeCertificateRequest& request) const;

  const std::string cluster_;
  std::map<std::string, v1::Revocation, std::less<>> serials_;
  std::map<std::string, std::string, std::less<>> lines_;  // a revoked serial number of each line
  std::map<std::string, v1::Revocation, std::less<>> identities_;  // by URI
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ACCESS_REVOCATIONS_H_
