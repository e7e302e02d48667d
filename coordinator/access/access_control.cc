#include "coordinator/access/access_control.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/security/user_token.h"
#include "coordinator/access/access.h"

namespace troupe {
namespace {

// Returns the token of "Bearer TOKEN"; the scheme may be written in any case.
StatusOr<std::string_view> BearerOf(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  const bool has_scheme =
      authorization.size() > kScheme.size() &&
      std::ranges::equal(authorization.substr(0, kScheme.size()), kScheme, {},
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (has_scheme) return authorization.substr(kScheme.size());
  return Unauthenticated("the metadata authorization of this call is not \"Bearer TOKEN\"");
}

}  // namespace

std::string ClaimedToken(std::span<const std::string> authorizations) {
  if (authorizations.size() != 1) return "";
  const auto bearer = BearerOf(authorizations.front());
  const auto parts = bearer.ok() ? ParseUserToken(*bearer) : bearer.status();
  return parts.ok() ? "token:" + parts->id : "";
}

StreamGuard::~StreamGuard() { access_.RemoveStream(number_); }

StatusOr<std::unique_ptr<AccessControl>> AccessControl::Open(const std::string& cluster,
                                                             Store& store, const Clock& clock,
                                                             AuditLog& audit) {
  TROUPE_ASSIGN_OR_RETURN(AccessRecords records, ReadAccessRecords(store));
  std::unique_ptr<AccessControl> access(new AccessControl(cluster, store, clock, audit));
  for (v1::UserTokenRecord& record : records.tokens) access->tokens_.Put(std::move(record));
  for (v1::Revocation& revocation : records.revocations)
    access->revocations_.Put(std::move(revocation));
  return access;
}

StatusOr<Caller> AccessControl::Authenticate(std::string_view certificate_pem,
                                             std::span<const std::string> authorizations) const {
  if (certificate_pem.empty() && authorizations.empty()) return Caller{};
  if (!certificate_pem.empty() && !authorizations.empty()) {
    return Unauthenticated(
        "the call has a certificate and a token; one of them must name the caller, and not both");
  }
  if (authorizations.size() > 1)
    return Unauthenticated("the call has {} tokens, and may have one", authorizations.size());
  const int64_t now = WallSeconds(clock_);
  if (certificate_pem.empty()) {
    TROUPE_ASSIGN_OR_RETURN(const std::string_view token, BearerOf(authorizations.front()));
    const std::shared_lock lock(mutex_);
    return tokens_.Authenticate(token, now);
  }
  TROUPE_ASSIGN_OR_RETURN(const CertificateFacts certificate,
                          troupe::Authenticate(certificate_pem, cluster_, now));
  const std::shared_lock lock(mutex_);
  TROUPE_RETURN_IF_ERROR(revocations_.Check(certificate));
  return CallerWith(certificate);
}

Status AccessControl::CheckHasTls() const {
  if (!cluster_.empty()) return OkStatus();
  return FailedPrecondition(
      "this coordinator has no TLS, so it checks neither tokens nor certificates (--tls-dir)");
}

StatusOr<v1::UserToken> AccessControl::CreateToken(const v1::CreateUserTokenRequest& request,
                                                   const UserTokenParts& parts,
                                                   const std::string& by) {
  TROUPE_RETURN_IF_ERROR(CheckHasTls());
  const int64_t now = WallSeconds(clock_);
  const std::lock_guard change(changes_);
  // Only a thread that holds `changes_` changes the tables, so they are read without `mutex_`.
  TROUPE_ASSIGN_OR_RETURN(const v1::UserTokenRecord record,
                          tokens_.NewRecord(request, parts, by, now));
  const std::vector<std::string> forgotten = tokens_.ForgottenIds(now);
  CatalogBatch batch;
  for (const std::string& id : forgotten) batch.DeleteUserToken(id);
  batch.PutUserToken(record);
  TROUPE_RETURN_IF_ERROR(WriteCatalog(batch, &store_));
  const std::lock_guard lock(mutex_);
  for (const std::string& id : forgotten) tokens_.Remove(id);
  tokens_.Put(record);
  return record.token();
}

StatusOr<v1::UserToken> AccessControl::RevokeToken(const std::string& id, const std::string& by) {
  TROUPE_RETURN_IF_ERROR(CheckHasTls());
  v1::UserTokenRecord record;
  {
    const std::lock_guard change(changes_);
    TROUPE_ASSIGN_OR_RETURN(record, tokens_.RevokedRecord(id, by, WallSeconds(clock_)));
    CatalogBatch batch;
    batch.PutUserToken(record);
    TROUPE_RETURN_IF_ERROR(WriteCatalog(batch, &store_));
    const std::lock_guard lock(mutex_);
    tokens_.Put(record);
  }
  EndRefusedStreams();
  return record.token();
}

StatusOr<v1::Revocation> AccessControl::RevokeCertificate(
    const v1::RevokeCertificateRequest& request, const std::string& by) {
  TROUPE_RETURN_IF_ERROR(CheckHasTls());
  v1::Revocation revocation;
  {
    const std::lock_guard change(changes_);
    TROUPE_ASSIGN_OR_RETURN(revocation,
                            revocations_.NewRevocation(request, by, WallSeconds(clock_)));
    CatalogBatch batch;
    batch.PutRevocation(revocation);
    TROUPE_RETURN_IF_ERROR(WriteCatalog(batch, &store_));
    const std::lock_guard lock(mutex_);
    revocations_.Put(revocation);
  }
  EndRefusedStreams();
  return revocation;
}

int64_t AccessControl::WhenRevoked(const Identity& identity) const {
  const std::shared_lock lock(mutex_);
  return revocations_.WhenRevoked(identity);
}

std::vector<v1::UserToken> AccessControl::ListTokens() const {
  const std::shared_lock lock(mutex_);
  return tokens_.List();
}

std::vector<v1::Revocation> AccessControl::ListRevocations() const {
  const std::shared_lock lock(mutex_);
  return revocations_.List();
}

// REQUIRES: `mutex_` is locked.
Status AccessControl::CheckStillValid(const Caller& caller, int64_t now) const {
  if (!caller.identity) return Unauthenticated("an anonymous caller may not open a stream");
  if (!caller.certificate) return tokens_.CheckStillValid(caller.token_id, now);
  TROUPE_RETURN_IF_ERROR(troupe::CheckStillValid(*caller.certificate, now));
  return revocations_.Check(*caller.certificate);
}

StatusOr<std::unique_ptr<StreamGuard>> AccessControl::Guard(OpenStream stream) {
  const std::lock_guard lock(mutex_);
  TROUPE_RETURN_IF_ERROR(CheckStillValid(stream.caller, WallSeconds(clock_)));
  return std::make_unique<StreamGuard>(*this, streams_.Add(std::move(stream)));
}

void AccessControl::EndExpiredStreams() {
  {
    const std::shared_lock lock(mutex_);
    if (!streams_.HasExpired(WallSeconds(clock_))) return;
  }
  EndRefusedStreams();
}

void AccessControl::EndRefusedStreams() {
  std::vector<RefusedStream> refused;
  {
    const std::lock_guard lock(mutex_);
    refused = streams_.RemoveRefused([this, now = WallSeconds(clock_)](const Caller& caller) {
      return CheckStillValid(caller, now);
    });
  }
  for (const auto& [stream, reason] : refused) {
    audit_.AppendRefusal(AuditNameOf(stream.caller), stream.rpc, std::string(Message(reason)));
    stream.end(reason);
  }
}

void AccessControl::RemoveStream(uint64_t number) {
  const std::lock_guard lock(mutex_);
  streams_.Remove(number);
}

}  // namespace troupe
