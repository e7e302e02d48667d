// The lines of an audit log. Each is a JSON object that contains the hash of the line before it and
// ends with the SHA-256 hash of its own text, so that a line that is removed, added, moved or
// changed breaks the chain. Pure.
//
//   {"sequence":1,"wall_time_ns":…,"identity":"spiffe://lab/viewer/ann",
//    "rpc":"/troupe.v1.JobService/CancelJob","outcome":"DENIED","target":"","reason":"…",
//    "previous":"<64 hexadecimal digits>","hash":"<64 hexadecimal digits>"}
//
// `hash` is that of the bytes of the line before `,"hash"`. The chain has no key: it does not
// protect from someone who can write the file and computes all later hashes anew, and a log without
// its last lines is a valid log. Both are detected by who has noted a later hash elsewhere.
#ifndef TROUPE_BASE_AUDIT_AUDIT_CHAIN_H_
#define TROUPE_BASE_AUDIT_AUDIT_CHAIN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

enum class AuditOutcome {
  kAllowed,   // the caller may do this; whether it succeeded is not recorded
  kDenied,    // refused, with the reason
  kRepaired,  // the log itself was repaired
};

struct AuditRecord {
  int64_t wall_time_ns = 0;
  std::string identity;  // URI of the certificate; without TLS the address of the peer
  std::string rpc;       // full path of the method; empty for kRepaired
  AuditOutcome outcome = AuditOutcome::kAllowed;
  std::string target;  // job or path of the request; empty if it was refused unread
  std::string reason;  // for kDenied and kRepaired
};

// The end of a chain. The first line of a log follows a head of this default.
struct AuditHead {
  int64_t sequence = 0;
  std::string hash = std::string(64, '0');

  bool operator==(const AuditHead&) const = default;
};

// Upper bound of the bytes of a line with its newline; longer texts of a record are cut.
inline constexpr size_t kMostAuditLineBytes = 16384;

// Returns the line that follows `head`, with its newline, and moves `head` to it.
std::string AuditLine(const AuditRecord& record, AuditHead* head);

// Returns the sequence number and the hash of `line`, which has no newline. DATA_LOSS, with the
// relation that fails, unless it is a line whose hash is that of its text.
StatusOr<AuditHead> CheckAuditLine(std::string_view line);

// Returns the head that `line`, which has no newline, follows. DATA_LOSS unless CheckAuditLine
// accepts it.
StatusOr<AuditHead> HeadBefore(std::string_view line);

// Moves `head` to `line`, which has no newline. DATA_LOSS unless CheckAuditLine accepts it and it
// follows `head`.
Status FollowAuditLine(std::string_view line, AuditHead* head);

}  // namespace troupe

#endif  // TROUPE_BASE_AUDIT_AUDIT_CHAIN_H_
