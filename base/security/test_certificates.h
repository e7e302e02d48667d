// Certificates and TLS directories for tests.
#ifndef TROUPE_BASE_SECURITY_TEST_CERTIFICATES_H_
#define TROUPE_BASE_SECURITY_TEST_CERTIFICATES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/security/authority.h"
#include "base/security/tls_files.h"

namespace troupe {

inline constexpr int64_t kTestDay = 86400;  // seconds

// An authority, and certificates that it signs now for a day.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& cluster = "lab");

  const std::string& pem() const { return authority_.certificate; }
  // The certificate of spiffe://CLUSTER/role/name.
  CertifiedKey Issue(Role role, const std::string& name) const;
  // One with these alternative names, valid from `begin` to `end`.
  CertifiedKey IssueWith(const std::vector<std::string>& uris, int64_t begin, int64_t end) const;

 private:
  std::string cluster_;
  CertifiedKey authority_;
};

// Writes ca.pem, cert.pem and key.pem to `directory`, which is made if absent.
void WriteTlsDirectory(const std::string& directory, std::string_view authorities,
                       const CertifiedKey& holder);

// Replaces the file atomically.
void WriteTextFile(const std::string& path, std::string_view text);

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_TEST_CERTIFICATES_H_
