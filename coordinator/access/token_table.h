// The tokens of users: which ones there are, and which of them a call may use. Pure: the time is an
// argument, and all of it is the coordinator's.
//
// A token that is unknown and one whose secret is wrong are refused in the same time and with the
// same words, so that a caller does not learn which ids exist.
#ifndef TROUPE_COORDINATOR_ACCESS_TOKEN_TABLE_H_
#define TROUPE_COORDINATOR_ACCESS_TOKEN_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/security/user_token.h"
#include "base/status.h"
#include "coordinator/access/caller.h"
#include "troupe/v1/access.pb.h"
#include "troupe/v1/catalog.pb.h"

namespace troupe {

inline constexpr size_t kMostUserTokens = 4096;
inline constexpr int64_t kMostTokenSeconds = int64_t{3650} * 86400;
// A token is listed for this time after it has expired.
inline constexpr int64_t kForgetTokenSeconds = int64_t{30} * 86400;

// Not thread-safe.
class TokenTable {
 public:
  explicit TokenTable(std::string cluster) : cluster_(std::move(cluster)) {}

  // Returns the record of the new token `parts`; Put adds it. INVALID_ARGUMENT names the field that
  // is wrong: a name that CheckIdentityName refuses, a role that no user has, a lifetime out of
  // [1, kMostTokenSeconds]. RESOURCE_EXHAUSTED if there are kMostUserTokens.
  StatusOr<v1::UserTokenRecord> NewRecord(const v1::CreateUserTokenRequest& request,
                                          const UserTokenParts& parts, const std::string& by,
                                          int64_t now) const;

  // Returns the record of a token as revoked; Put replaces it. A token that was revoked before
  // stays as it is. `id` is a whole id, or its end of at least four digits. INVALID_ARGUMENT if it
  // is shorter or the end of several ids, NOT_FOUND if it is that of none.
  StatusOr<v1::UserTokenRecord> RevokedRecord(const std::string& id, const std::string& by,
                                              int64_t now) const;

  // Returns the ids of the tokens that need not be listed any more.
  std::vector<std::string> ForgottenIds(int64_t now) const;

  void Put(v1::UserTokenRecord record);
  void Remove(const std::string& id);

  // Returns the holder of the token. UNAUTHENTICATED if the text has not the form of a token, is
  // one of another cluster, or is that of no token that is valid at `now`.
  StatusOr<Caller> Authenticate(std::string_view text, int64_t now) const;

  // UNAUTHENTICATED unless the token, which was authenticated before, is valid at `now`.
  Status CheckStillValid(const std::string& id, int64_t now) const;

  // Returns all tokens, oldest first.
  std::vector<v1::UserToken> List() const;

 private:
  const std::string cluster_;
  std::map<std::string, v1::UserTokenRecord> records_;  // by id
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ACCESS_TOKEN_TABLE_H_
