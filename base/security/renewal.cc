#include "base/security/renewal.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/security/authority.h"

namespace troupe {
namespace {

constexpr int64_t kHour = 3600;
constexpr int64_t kLongestPause = 300;
// A pause takes at most this part of the life that is left, so that several tries fit.
constexpr int64_t kPausesInRest = 8;

bool NobodySigns(const Status& failure) {
  return failure.code() == StatusCode::kFailedPrecondition ||
         failure.code() == StatusCode::kUnimplemented;
}

}  // namespace

int64_t WhenToRenew(int64_t not_before, int64_t not_after, int64_t now, double uniform) {
  if (now < not_before) return now;
  const int64_t begin = std::min(not_before + kMostClockSkew, not_after);
  const auto life = static_cast<double>(not_after - begin);
  const double part = 2.0 / 3 - uniform / 20;
  return std::max(now, begin + std::lround(part * life));
}

int64_t SecondsUntilRetry(int failures, int64_t longest, double uniform) {
  constexpr int kMostDoublings = 30;
  const int64_t doubled = int64_t{1} << std::clamp(failures - 1, 0, kMostDoublings);
  const auto pause = static_cast<double>(std::min(doubled, longest));
  return std::max<int64_t>(1, static_cast<int64_t>(pause * (1 - uniform / 2)));
}

bool Renewal::IsDue(const CertificateFacts& certificate, int64_t now) {
  const bool is_set_back = now < std::exchange(asked_, now);
  if (!due_ || certificate.serial != certificate_.serial || is_set_back) {
    certificate_ = certificate;
    due_ = WhenToRenew(certificate.not_before, certificate.not_after, now, uniform_());
    failures_ = 0;
    warned_.reset();
    unsigned_ = false;
  }
  return now >= *due_;
}

std::string Renewal::Failed(const Status& failure, int64_t now) {
  if (failures_++ == 0) failing_since_ = now;
  if (NobodySigns(failure)) {
    due_ = now + kHour;
    if (std::exchange(unsigned_, true)) return "";
    return fmt::format("the certificate of {} is not renewed automatically: {}; it expires at {}",
                       ToUri(certificate_.identity), Message(failure),
                       UtcText(certificate_.not_after));
  }
  const int64_t rest = std::max<int64_t>(0, certificate_.not_after - now);
  const int64_t longest =
      rest == 0 ? kLongestPause : std::clamp<int64_t>(rest / kPausesInRest, 1, kLongestPause);
  due_ = now + SecondsUntilRetry(failures_, longest, uniform_());
  unsigned_ = false;
  if (warned_ && now - *warned_ < kHour) return "";
  warned_ = now;
  return fmt::format(
      "the certificate of {} could not be renewed since {}: {}; it expires at {}, and then the "
      "coordinator refuses this worker and its ranks end",
      ToUri(certificate_.identity), UtcText(failing_since_), Message(failure),
      UtcText(certificate_.not_after));
}

}  // namespace troupe
