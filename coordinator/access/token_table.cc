#include "coordinator/access/token_table.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/security/certificate.h"

namespace troupe {
namespace {

constexpr size_t kLeastIdDigits = 4;

Status TokenNotAccepted(std::string_view reason) {
  return Unauthenticated("the token of this call is not accepted: {}", reason);
}

// The words for a token that is unknown and for one with a wrong secret.
Status NoSuchToken() { return TokenNotAccepted("this cluster has no such token"); }

bool MayHoldToken(Role role) {
  return role == Role::kViewer || role == Role::kSubmitter || role == Role::kOperator;
}

Status CheckValidToken(const v1::UserToken& token, int64_t now) {
  if (token.revoked() != 0) {
    return TokenNotAccepted(fmt::format("the token {} of {} was revoked at {}", token.id(),
                                        token.name(), UtcText(token.revoked())));
  }
  if (now >= token.expires()) {
    return TokenNotAccepted(fmt::format("the token {} of {} expired at {}, and it is {}",
                                        token.id(), token.name(), UtcText(token.expires()),
                                        UtcText(now)));
  }
  return OkStatus();
}

}  // namespace

StatusOr<v1::UserTokenRecord> TokenTable::NewRecord(const v1::CreateUserTokenRequest& request,
                                                    const UserTokenParts& parts,
                                                    const std::string& by, int64_t now) const {
  TROUPE_RETURN_IF_ERROR(CheckIdentityName("name", request.name()));
  const auto role = ParseRole(request.role());
  if (!role.ok()) return Annotate(role.status(), "role");
  if (!MayHoldToken(*role)) {
    return InvalidArgument(
        "role is {}, which needs a certificate; tokens are for viewer, submitter and operator",
        request.role());
  }
  if (request.lifetime_seconds() < 1 || request.lifetime_seconds() > kMostTokenSeconds) {
    return InvalidArgument("lifetime_seconds is {}, not in [1, {}]", request.lifetime_seconds(),
                           kMostTokenSeconds);
  }
  if (records_.size() - ForgottenIds(now).size() >= kMostUserTokens)
    return ResourceExhausted("there are {} tokens, the most that are kept", records_.size());
  v1::UserTokenRecord record;
  v1::UserToken& token = *record.mutable_token();
  token.set_id(parts.id);
  token.set_name(request.name());
  token.set_role(request.role());
  token.set_created(now);
  token.set_expires(now + request.lifetime_seconds());
  token.set_created_by(by);
  record.set_secret_hash(HashOfSecret(parts.secret));
  return record;
}

StatusOr<v1::UserTokenRecord> TokenTable::RevokedRecord(const std::string& id,
                                                        const std::string& by, int64_t now) const {
  if (id.size() < kLeastIdDigits) {
    return InvalidArgument("id is \"{}\": it needs the whole id of a token, or its last {} digits",
                           id, kLeastIdDigits);
  }
  const v1::UserTokenRecord* found = nullptr;
  for (const auto& [whole, record] : records_) {
    if (!whole.ends_with(id)) continue;
    if (found != nullptr)
      return InvalidArgument("id is {}, the end of the ids of several tokens: give more of it", id);
    found = &record;
  }
  if (found == nullptr) return NotFound("id is {}: there is no such token", id);
  v1::UserTokenRecord revoked = *found;
  if (revoked.token().revoked() != 0) return revoked;
  revoked.mutable_token()->set_revoked(now);
  revoked.mutable_token()->set_revoked_by(by);
  return revoked;
}

std::vector<std::string> TokenTable::ForgottenIds(int64_t now) const {
  std::vector<std::string> ids;
  for (const auto& [id, record] : records_) {
    if (now >= record.token().expires() + kForgetTokenSeconds) ids.push_back(id);
  }
  return ids;
}

void TokenTable::Put(v1::UserTokenRecord record) {
  std::string id = record.token().id();
  records_.insert_or_assign(std::move(id), std::move(record));
}

void TokenTable::Remove(const std::string& id) { records_.erase(id); }

StatusOr<Caller> TokenTable::Authenticate(std::string_view text, int64_t now) const {
  const auto parts = ParseUserToken(text);
  if (!parts.ok()) return TokenNotAccepted(Message(parts.status()));
  if (parts->cluster != cluster_) {
    return TokenNotAccepted(fmt::format("it is one of the cluster {}, and this is the cluster {}",
                                        parts->cluster, cluster_));
  }
  const auto found = records_.find(parts->id);
  const bool is_known = found != records_.end();
  const std::string hash = HashOfSecret(parts->secret);
  const std::string stored =
      is_known ? found->second.secret_hash() : std::string(hash.size(), '\0');
  if (!AreEqualHashes(hash, stored) || !is_known) return NoSuchToken();
  const v1::UserToken& token = found->second.token();
  TROUPE_RETURN_IF_ERROR(CheckValidToken(token, now));
  const auto role = ParseRole(token.role());
  if (!role.ok() || !MayHoldToken(*role)) return NoSuchToken();  // a later version's
  return Caller{.identity = Identity{.cluster = cluster_, .role = *role, .name = token.name()},
                .token_id = token.id(),
                .expires = token.expires()};
}

Status TokenTable::CheckStillValid(const std::string& id, int64_t now) const {
  const auto found = records_.find(id);
  return found == records_.end() ? NoSuchToken() : CheckValidToken(found->second.token(), now);
}

std::vector<v1::UserToken> TokenTable::List() const {
  std::vector<v1::UserToken> tokens;
  for (const auto& [id, record] : records_) tokens.push_back(record.token());
  std::ranges::stable_sort(tokens, {}, [](const v1::UserToken& token) { return token.created(); });
  return tokens;
}

}  // namespace troupe
