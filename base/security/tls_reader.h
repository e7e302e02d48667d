// The contents of a TLS directory that a process uses while the files are replaced: the last ones
// that passed the checks. Not thread-safe.
#ifndef TROUPE_BASE_SECURITY_TLS_READER_H_
#define TROUPE_BASE_SECURITY_TLS_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/security/certificate.h"
#include "base/security/tls_files.h"

namespace troupe {

class TlsReader {
 public:
  // Receives new contents that passed the checks. After an error of it, the former ones stay in
  // use.
  using Use = std::function<Status(const TlsContents& contents)>;

  // REQUIRES: `files` is from CheckTlsDirectory or CheckAuthorityIn.
  TlsReader(TlsFiles files, Use use);

  // Reads the files, and uses contents that are new, are accepted by ReadUsableTls and have the
  // identity of `files`. The error is the reason for which former contents stay in use, or those of
  // former.pem; it is also in the log, once for the same contents of the files.
  Status Read(int64_t now_seconds);

 private:
  Status ReadOnce(int64_t now_seconds);
  void Report(const Status& status);

  const TlsFiles files_;
  const Use use_;
  TlsContents used_;
  CertificateFacts used_facts_;     // those of its certificate, if there is one
  std::optional<size_t> reported_;  // identifies the cause of the last error, which the log has
};

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_TLS_READER_H_
