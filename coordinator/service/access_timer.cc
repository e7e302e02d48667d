#include "coordinator/service/access_timer.h"

#include <chrono>
#include <string_view>

namespace troupe {
namespace {

constexpr std::chrono::seconds kExpiryInterval{1};

struct ExpiryCheck {
  static constexpr std::string_view kMessageName = "access_timer.expiry_check";
};

}  // namespace

Status AccessTimer::Start(Context& context) {
  context.SetTimer(kExpiryInterval, AnyMessage(ExpiryCheck{}));
  return OkStatus();
}

Status AccessTimer::Handle(AnyMessage message, Context& context) {
  context.SetTimer(kExpiryInterval, AnyMessage(ExpiryCheck{}));
  access_.EndExpiredStreams();
  return OkStatus();
}

}  // namespace troupe
