// The directory that --tls-dir names: ca.pem (one or more authorities), cert.pem (the certificate,
// then the intermediate ones, if any) and key.pem. Thread-safe.
//
// former.pem, if it is there, has pairs that these two replaced (base/security/former_pairs.h): of
// each the certificate, then its key. One that is valid is used while they are not: a pair that was
// signed while a clock was ahead is not valid once the clock is right again.
#ifndef TROUPE_BASE_SECURITY_TLS_FILES_H_
#define TROUPE_BASE_SECURITY_TLS_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/security/identity.h"
#include "base/status.h"

namespace troupe {

// The paths of the files, and the identity of the certificate when they were checked. The client of
// a user who holds a token has no certificate: `certificate` and `key` are empty, and `identity`
// has the token's cluster alone.
struct TlsFiles {
  std::string authority;
  std::string certificate;
  std::string key;
  Identity identity;

  bool has_certificate() const { return !certificate.empty(); }
};

// The contents of the files.
struct TlsContents {
  std::string authority;
  std::string certificate;
  std::string key;

  bool operator==(const TlsContents&) const = default;
};

// Returns the paths in `directory`, without an identity. Opens no file.
TlsFiles TlsFilesIn(const std::string& directory);

// Returns the path of the former pairs of the files.
std::string FormerPathOf(const TlsFiles& files);

// INVALID_ARGUMENT names the file that is absent, unreadable or empty.
StatusOr<TlsContents> ReadTlsContents(const TlsFiles& files);

// Returns the identity of the certificate. INVALID_ARGUMENT names the file and the relation that
// fails: a file that is not PEM, a certificate that has expired, is not yet valid, has no identity,
// or is not signed by an authority of ca.pem, a key that does not belong to the certificate.
StatusOr<Identity> CheckTlsContents(const TlsFiles& files, const TlsContents& contents,
                                    int64_t now_seconds);

// Returns the pairs in former.pem in the order of the file, each under `authorities`; none if the
// file is absent or unreadable, and no pair without a key. They are not checked.
std::vector<TlsContents> ReadFormerPairs(const TlsFiles& files, const std::string& authorities);

// Contents that a process may use.
struct UsableTls {
  TlsContents contents;
  Identity identity;
  Status fault;  // the error of the files for which these are the former contents; or OK
};

// Returns the contents of the files or, if their certificate is not valid now, the first former
// ones of the same identity that pass CheckTlsContents. INVALID_ARGUMENT of ReadTlsContents and
// CheckTlsContents for the files; it also states why the newest pair of former.pem cannot be used.
StatusOr<UsableTls> ReadUsableTls(const TlsFiles& files, int64_t now_seconds);

// Logs a warning if all users may read the private key in the file.
void WarnIfOthersMayRead(const std::string& key);

// Checks the files of the directory as ReadUsableTls does, and returns their paths and the
// identity. Logs a warning if all users may read the key.
StatusOr<TlsFiles> CheckTlsDirectory(const std::string& directory, int64_t now_seconds);

// Checks ca.pem of the directory alone, and returns the files of the client of a user who holds a
// token of `cluster`.
StatusOr<TlsFiles> CheckAuthorityIn(const std::string& directory, const std::string& cluster);

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_TLS_FILES_H_
