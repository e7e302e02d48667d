// Decides when a process renews its certificate, when it tries again, and what it warns of. Times
// are Unix seconds. Pure.
#ifndef TROUPE_BASE_SECURITY_RENEWAL_H_
#define TROUPE_BASE_SECURITY_RENEWAL_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/security/certificate.h"
#include "base/status.h"

namespace troupe {

// Returns the time at which a certificate is to be renewed: after two thirds of its life, or up to
// a twentieth of the life earlier, so that holders whose certificates were made together do not
// renew together. `uniform` is from [0, 1). Never before `now`. The life begins with the signature,
// kMostClockSkew after `not_before`. A certificate that is not valid yet was signed while a clock
// was ahead, and is to be renewed now.
int64_t WhenToRenew(int64_t not_before, int64_t not_after, int64_t now, double uniform);

// Returns the pause after the failure of this number, from 1: it doubles from a second, up to
// `longest`, and is shortened by up to a half at random.
int64_t SecondsUntilRetry(int failures, int64_t longest, double uniform);

// The renewals of one certificate directory. Not thread-safe.
class Renewal {
 public:
  // `uniform` returns random numbers from [0, 1).
  explicit Renewal(std::function<double()> uniform) : uniform_(std::move(uniform)) {}

  // Returns whether to renew this certificate, that of the files, now. Another certificate than in
  // the last call, and a clock that was set back since, end the pauses of failures.
  bool IsDue(const CertificateFacts& certificate, int64_t now);

  // Takes note of a failure at `now`, after IsDue. Returns the warning to log, which is empty if
  // the last one was less than an hour ago. A certificate that has expired renews nothing: its
  // pauses are the longest. If nobody signs (FAILED_PRECONDITION, and UNIMPLEMENTED
  // of an older coordinator), it warns once for the certificate, and IsDue is true hourly.
  std::string Failed(const Status& failure, int64_t now);

 private:
  const std::function<double()> uniform_;
  CertificateFacts certificate_;
  std::optional<int64_t> due_;
  int64_t asked_ = 0;  // the time of the last call of IsDue
  int failures_ = 0;
  int64_t failing_since_ = 0;
  std::optional<int64_t> warned_;
  bool unsigned_ = false;  // the last warning was that nobody signs
};

}  // namespace troupe

#endif  // TROUPE_BASE_SECURITY_RENEWAL_H_
