// The directories of `troupe certs`: that of an authority (authority.pem, authority.key, and
// ca.pem, the authorities that holders of its certificates trust), and the TLS directories that it
// fills (base/security/tls_files.h). Files of keys can be read by their owner only.
#ifndef TROUPE_BASE_SECURITY_AUTHORITY_FILES_H_
#define TROUPE_BASE_SECURITY_AUTHORITY_FILES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/security/authority.h"
#include "base/security/certificate.h"
#include "base/security/identity.h"
#include "base/security/tls_files.h"
#include "base/status.h"

namespace troupe {

// An authority that can sign.
struct Authority {
  CertifiedKey signer;    // authority.pem and authority.key
  std::string trusted;    // ca.pem
  std::string cluster;    // ClusterOf(signer)
  std::string hash;       // CertificateHash(signer.certificate)
  int64_t not_after = 0;  // end of the signer's certificate
};

// Reads the authority in `directory`. INVALID_ARGUMENT names the file that is absent, unreadable or
// empty, or the relation that fails: a key that does not belong to the certificate, a certificate
// that is none of `troupe certs init`, or a ca.pem without it.
StatusOr<Authority> ReadAuthority(const std::string& directory);

// Logs a warning if all users may read the key of the authority in `directory`.
void WarnIfOthersMaySign(const std::string& directory);

// Makes an authority for `cluster` in `directory`, which is empty or does not exist; its parents
// are made too. A new directory appears with all of its files. ALREADY_EXISTS if it has contents.
Status WriteNewAuthority(const std::string& directory, const std::string& cluster,
                         int64_t now_seconds);

struct IssueRequest {
  Role role = Role::kViewer;
  std::string name;
  int days = 0;                    // from now
  std::vector<std::string> hosts;  // alternative names of a server
  bool from_now = false;           // valid from now instead of from kMostClockSkew ago
};

// Signs a certificate with the authority in `authority_directory` and writes it, its key and
// ca.pem to `output`, which is new, empty, or holds a certificate of the same identity. Returns its
// facts, and warns as WarnIfOthersMaySign does. INVALID_ARGUMENT if the authority or the request is
// unusable; ALREADY_EXISTS if `output` holds anything else.
//
// A certificate of the same identity is renewed while processes use it, as StoreTlsDirectory does.
StatusOr<CertificateFacts> IssueTlsDirectory(const std::string& authority_directory,
                                             const IssueRequest& request, const std::string& output,
                                             int64_t now_seconds);

// Writes the certificate of `identity`, its key and the authorities to `output`, which is new,
// empty, or holds a certificate of the same identity. Returns the certificate's facts.
// INVALID_ARGUMENT, with nothing written, unless `contents` pass the check of those who will use
// them (CheckTlsContents); ALREADY_EXISTS if `output` holds anything else.
//
// If it replaces files, the pair that is replaced goes to former.pem, by the rule of
// base/security/former_pairs.h: if the clock is ahead now, a pair there is what remains once it is
// set right.
//
// If it replaces files, each is replaced atomically, the key first. Between two of these renames
// the pair does not match; a process that reads it then keeps its former pair (TlsWatch) and reads
// the new one a second later. Of several calls at a time each replaces all files, one after the
// other, unless the file system has no locks of directories. A process that starts then, or after a
// crash in between, is refused, unless it calls FinishTlsDirectory first; repeating the replacement
// repairs the directory too.
StatusOr<CertificateFacts> StoreTlsDirectory(const std::string& output, const Identity& identity,
                                             const TlsContents& contents, int64_t now_seconds);

// Checks, before a certificate is requested, that StoreTlsDirectory can write one to `output`.
// Returns the identity of the certificate that it holds; nothing if it is new or empty.
// ALREADY_EXISTS if it holds anything else, INVALID_ARGUMENT if nothing can be written there.
StatusOr<std::optional<Identity>> CheckTlsOutput(const std::string& output);

// Completes a replacement that a crash ended between the key and the certificate: if key.pem does
// not belong to cert.pem, but to the certificate that was to replace it, this is renamed. Any other
// directory is left as it is.
Status FinishTlsDirectory(const std::string& directory);

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_AUTHORITY_FILES_H_
