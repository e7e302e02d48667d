// The contents of a TLS directory that a process uses while the files are replaced: the last ones
// that passed the checks. Not thread-safe.
#ifndef TROUPE_BASE_SECURITY_TLS_READER_H_
#define TROUPE_BASE_SECURITY_TLS_READER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "base/security/tls_files.h"

namespace troupe {

class TlsReader {
 public:
  // Receives new contents that passed the checks. After an error of it, the former ones stay in
  // use.
  using Use = std::function<Status(const TlsContents& contents)>;

  // REQUIRES: `files` is from CheckTlsDirectory or CheckAuthorityIn.
  TlsReader(TlsFiles files, Use use);

  // Reads the files, and uses contents that are new, are accepted by CheckTlsContents and have the
  // identity of `files`. The error, which is also in the log if it is new, is the reason for which
  // the former contents stay in use.
  Status Read(int64_t now_seconds);

 private:
  Status ReadOnce(int64_t now_seconds);

  const TlsFiles files_;
  const Use use_;
  TlsContents used_;
  std::string reported_;  // the last error in the log
};

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_TLS_READER_H_
