#include "coordinator/access/join_ledger.h"

#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/security/certificate.h"
#include "base/security/identity.h"

namespace troupe {
namespace {

constexpr std::string_view kPrefix = "join_token/";
// Time for which a token that has expired is still known by name.
constexpr int64_t kKeptAfterExpiry = 86400;

std::string KeyOf(std::string_view id) { return fmt::format("{}{}", kPrefix, id); }

StatusOr<v1::JoinTokenRecord> Decode(std::string_view key, std::string_view value) {
  v1::JoinTokenRecord record;
  if (record.ParseFromArray(value.data(), static_cast<int>(value.size()))) return record;
  return DataLoss("catalog: the value of {} ({} bytes) is not a JoinTokenRecord", key,
                  value.size());
}

}  // namespace

Status CheckUsable(const v1::JoinTokenRecord& record, const JoinToken& token, int64_t now_seconds) {
  if (record.used_seconds() != 0) {
    return PermissionDenied("the join token {} was used at {}: it is good for one worker", token.id,
                            UtcText(record.used_seconds()));
  }
  if (now_seconds >= record.expire_seconds()) {
    return PermissionDenied("the join token {} expired at {}, and it is {}", token.id,
                            UtcText(record.expire_seconds()), UtcText(now_seconds));
  }
  return OkStatus();
}

StatusOr<std::string> NameOfJoiner(const v1::JoinTokenRecord& record, std::string_view requested) {
  if (record.worker().empty() && requested.empty())
    return InvalidArgument("the join token is for any worker: state the name of this one");
  if (!record.worker().empty() && !requested.empty() && record.worker() != requested) {
    return PermissionDenied("the join token is for the worker \"{}\", not for \"{}\"",
                            record.worker(), requested);
  }
  std::string name = record.worker().empty() ? std::string(requested) : record.worker();
  TROUPE_RETURN_IF_ERROR(CheckIdentityName("the worker's name", name));
  return name;
}

Status JoinLedger::Add(const JoinToken& token, v1::JoinTokenRecord record) {
  const std::lock_guard lock(mutex_);
  TROUPE_RETURN_IF_ERROR(RemoveOld(WallSeconds(clock_)));
  TROUPE_ASSIGN_OR_RETURN(*record.mutable_secret_hash(), SecretHash(token));
  WriteBatch batch;
  batch.Put(KeyOf(token.id), record.SerializeAsString());
  return store_.Write(batch, Durability::kSynced);
}

Status JoinLedger::RemoveOld(int64_t now_seconds) {
  WriteBatch old;
  size_t valid = 0;
  Status status;
  TROUPE_RETURN_IF_ERROR(
      ScanPrefix(store_, kPrefix, [&](std::string_view key, std::string_view value) {
        const auto record = Decode(key, value);
        status = record.status();
        if (!status.ok()) return false;
        if (now_seconds < record->expire_seconds()) {
          if (record->used_seconds() == 0) ++valid;
        } else if (now_seconds - record->expire_seconds() >= kKeptAfterExpiry) {
          old.Delete(std::string(key));
        }
        return true;
      }));
  TROUPE_RETURN_IF_ERROR(status);
  if (valid >= kMostJoinTokens)
    return ResourceExhausted("{} join tokens are valid, the most that may be", valid);
  return old.empty() ? OkStatus() : store_.Write(old, Durability::kUnsynced);
}

Status JoinLedger::RefuseGuess(const JoinToken& token) {
  if (!guesses_.Admit(clock_.Now()))
    return ResourceExhausted("too many join tokens were wrong: try again in a minute");
  return PermissionDenied(
      "the join token {} is not one of this coordinator: it is not known, or its secret is wrong",
      token.id);
}

StatusOr<v1::JoinTokenRecord> JoinLedger::Authenticate(const JoinToken& token) {
  const std::string key = KeyOf(token.id);
  const auto value = store_.Get(key);
  if (value.status().code() == StatusCode::kNotFound) return RefuseGuess(token);
  TROUPE_RETURN_IF_ERROR(value.status());
  TROUPE_ASSIGN_OR_RETURN(v1::JoinTokenRecord record, Decode(key, *value));
  TROUPE_ASSIGN_OR_RETURN(const std::string hash, SecretHash(token));
  if (!SameHash(hash, record.secret_hash())) return RefuseGuess(token);
  return record;
}

StatusOr<std::string> JoinLedger::Redeem(const JoinToken& token, std::string_view requested_name,
                                         const Sign& sign) {
  const std::lock_guard lock(mutex_);
  TROUPE_ASSIGN_OR_RETURN(v1::JoinTokenRecord record, Authenticate(token));
  const int64_t now_seconds = WallSeconds(clock_);
  TROUPE_RETURN_IF_ERROR(CheckUsable(record, token, now_seconds));
  TROUPE_ASSIGN_OR_RETURN(const std::string name, NameOfJoiner(record, requested_name));
  TROUPE_ASSIGN_OR_RETURN(std::string made, sign(name));
  record.set_used_seconds(now_seconds);
  WriteBatch batch;
  batch.Put(KeyOf(token.id), record.SerializeAsString());
  TROUPE_RETURN_IF_ERROR(store_.Write(batch, Durability::kSynced));
  return made;
}

}  // namespace troupe
