#include "base/security/tls_reader.h"

#include <string>
#include <utility>

#include "base/log.h"

namespace troupe {
namespace {

// Identifies what the files hold, or the reason for which they cannot be read. The error itself has
// the time in it if a certificate is not valid now.
size_t CauseOf(const TlsFiles& files) {
  const StatusOr<TlsContents> contents = ReadTlsContents(files);
  return std::hash<std::string>()(contents.ok()
                                      ? contents->authority + contents->certificate + contents->key
                                      : std::string(Message(contents.status())));
}

}  // namespace

TlsReader::TlsReader(TlsFiles files, Use use) : files_(std::move(files)), use_(std::move(use)) {}

Status TlsReader::Read(int64_t now_seconds) {
  Status status = ReadOnce(now_seconds);
  Report(status);
  return status;
}

void TlsReader::Report(const Status& status) {
  const std::optional<size_t> cause = status.ok() ? std::nullopt : std::optional(CauseOf(files_));
  if (std::exchange(reported_, cause) == cause) return;
  if (cause) {
    LogWarning("security", "the former certificates stay in use: {}", Message(status));
  } else {
    LogInfo("security", "the certificates in use are those of the files again");
  }
}

Status TlsReader::ReadOnce(int64_t now_seconds) {
  const auto same = ReadTlsContents(files_);
  const bool is_valid = !files_.has_certificate() || CheckValidAt(used_facts_, now_seconds).ok();
  if (same.ok() && *same == used_ && is_valid) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(UsableTls usable, ReadUsableTls(files_, now_seconds));
  if (usable.contents == used_) return usable.fault;
  if (usable.identity != files_.identity) {
    return InvalidArgument("{}: the identity is {}, and this process began as {}: restart it",
                           files_.certificate, ToUri(usable.identity), ToUri(files_.identity));
  }
  CertificateFacts facts;
  if (files_.has_certificate()) {
    TROUPE_ASSIGN_OR_RETURN(facts, ReadCertificate(usable.contents.certificate));
  }
  TROUPE_RETURN_IF_ERROR(use_(usable.contents));
  used_facts_ = std::move(facts);
  const bool is_first = used_.authority.empty();
  used_ = std::move(usable.contents);
  if (is_first || !usable.fault.ok()) return usable.fault;
  if (files_.has_certificate()) {
    LogInfo("security", "the new certificates of {} are in use", ToUri(usable.identity));
  } else {
    LogInfo("security", "the new authorities of {} are in use", files_.authority);
  }
  return OkStatus();
}

}  // namespace troupe
