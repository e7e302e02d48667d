#include "base/security/tls_reader.h"

#include <utility>

#include "base/log.h"

namespace troupe {

TlsReader::TlsReader(TlsFiles files, Use use) : files_(std::move(files)), use_(std::move(use)) {}

Status TlsReader::Read(int64_t now_seconds) {
  const Status status = ReadOnce(now_seconds);
  const std::string error = status.ok() ? "" : std::string(Message(status));
  if (error != reported_ && !error.empty()) {
    LogWarning("security", "the former certificates stay in use: {}", error);
  } else if (error != reported_) {
    LogInfo("security", "the certificates in use are those of the files again");
  }
  reported_ = error;
  return status;
}

Status TlsReader::ReadOnce(int64_t now_seconds) {
  TROUPE_ASSIGN_OR_RETURN(TlsContents contents, ReadTlsContents(files_));
  if (contents == used_) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const Identity identity, CheckTlsContents(files_, contents, now_seconds));
  if (identity != files_.identity) {
    return InvalidArgument("{}: the identity is {}, and this process began as {}: restart it",
                           files_.certificate, ToUri(identity), ToUri(files_.identity));
  }
  TROUPE_RETURN_IF_ERROR(use_(contents));
  const bool is_first = used_.authority.empty();
  used_ = std::move(contents);
  if (is_first) return OkStatus();
  if (files_.has_certificate()) {
    LogInfo("security", "the new certificates of {} are in use", ToUri(identity));
  } else {
    LogInfo("security", "the new authorities of {} are in use", files_.authority);
  }
  return OkStatus();
}

}  // namespace troupe
