// The join tokens of a cluster in the catalog: the hash of each secret, until when it is valid, and
// whether it was used. A token can be used once, also across restarts and by concurrent callers,
// because the record of its use is durable before anybody learns of a success.
#ifndef TROUPE_COORDINATOR_ACCESS_JOIN_LEDGER_H_
#define TROUPE_COORDINATOR_ACCESS_JOIN_LEDGER_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/security/join_token.h"
#include "base/status.h"
#include "base/store/store.h"
#include "coordinator/access/failure_limit.h"
#include "troupe/v1/catalog.pb.h"

namespace troupe {

inline constexpr int64_t kDefaultJoinTokenSeconds = 600;
inline constexpr int64_t kMostJoinTokenSeconds = 86400;
// Tokens that are valid at a time.
inline constexpr size_t kMostJoinTokens = 4096;

// PERMISSION_DENIED unless the token of this record may be used now; `token` has the right secret.
Status CheckUsable(const v1::JoinTokenRecord& record, const JoinToken& token, int64_t now_seconds);

// Returns the name of the worker that joins: that of the token, else `requested`.
// PERMISSION_DENIED if they differ, INVALID_ARGUMENT if there is none or no worker can have it.
StatusOr<std::string> NameOfJoiner(const v1::JoinTokenRecord& record, std::string_view requested);

// Thread-safe. Its calls wait for the disk.
class JoinLedger {
 public:
  // `store` and `clock` outlive it.
  JoinLedger(Store& store, const Clock& clock) : store_(store), clock_(clock) {}

  // Records a token until `record.expire_seconds()`; removes those that expired more than a day
  // ago. RESOURCE_EXHAUSTED if too many are valid.
  Status Add(const JoinToken& token, v1::JoinTokenRecord record);

  // Returns what `sign` makes for the name of the worker that joins, after the token's use is
  // durable. A token that is refused, or for which `sign` fails, is not used. PERMISSION_DENIED if
  // the token is not known, has another secret, has expired or was used; the errors of
  // NameOfJoiner. After ten tokens in a minute that are not known or have another secret, further
  // ones are RESOURCE_EXHAUSTED; tokens with their secrets are not affected, so that nobody can
  // keep workers out.
  using Sign = std::function<StatusOr<std::string>(const std::string& name)>;
  StatusOr<std::string> Redeem(const JoinToken& token, std::string_view requested_name,
                               const Sign& sign);

 private:
  StatusOr<v1::JoinTokenRecord> Authenticate(const JoinToken& token);
  Status RefuseGuess(const JoinToken& token);
  Status RemoveOld(int64_t now_seconds);

  Store& store_;
  const Clock& clock_;
  std::mutex mutex_;  // held by each call, so that no two use a token
  FailureLimit guesses_{10, std::chrono::minutes(1)};
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ACCESS_JOIN_LEDGER_H_
