// The directories of `troupe certs`: that of an authority (authority.pem, authority.key, and
// ca.pem, the authorities that holders of its certificates trust), and the TLS directories that it
// fills (base/security/tls_files.h). Files of keys can be read by their owner only.
#ifndef TROUPE_BASE_SECURITY_AUTHORITY_FILES_H_
#define TROUPE_BASE_SECURITY_AUTHORITY_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/security/certificate.h"
#include "base/security/identity.h"
#include "base/status.h"

namespace troupe {

// Makes an authority for `cluster` in `directory`, which is empty or does not exist; its parents
// are made too. A new directory appears with all of its files. ALREADY_EXISTS if it has contents.
Status WriteNewAuthority(const std::string& directory, const std::string& cluster,
                         int64_t now_seconds);

struct IssueRequest {
  Role role = Role::kViewer;
  std::string name;
  int days = 0;                    // from now
  std::vector<std::string> hosts;  // alternative names of a server
};

// Signs a certificate with the authority in `authority_directory` and writes it, its key and
// ca.pem to `output`, which is new, empty, or holds a certificate of the same identity. Returns its
// facts. INVALID_ARGUMENT if the authority or the request is unusable; ALREADY_EXISTS if `output`
// holds anything else.
//
// A certificate of the same identity is renewed while processes use it: each file is replaced
// atomically, the key first. Between two of these renames the pair does not match; a process that
// reads it then keeps its former pair (TlsWatch) and reads the new one a second later. A process
// that starts then, or after a crash in between, is refused, and repeating the command repairs the
// directory.
StatusOr<CertificateFacts> IssueTlsDirectory(const std::string& authority_directory,
                                             const IssueRequest& request, const std::string& output,
                                             int64_t now_seconds);

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_AUTHORITY_FILES_H_
