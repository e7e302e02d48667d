#include "worker/daemon/event_sender.h"

#include <gtest/gtest.h>

#include <memory>

#include "worker/daemon/testing/session_probe.h"

namespace troupe {
namespace {

struct ReportMany {
  static constexpr std::string_view kMessageName = "test.report_many";
  int first = 0;
  int count = 0;
};

// Reports faults of devices `first` to `first + count - 1`.
class Source final : public Actor {
 public:
  explicit Source(std::shared_ptr<ActorGate> gate) : gate_(std::move(gate)) {}
  Status Start(Context& context) override {
    events_ =
        std::make_unique<EventSender>([gate = gate_, owner = context.owner()](AnyMessage message) {
          return gate->Send(owner, std::move(message));
        });
    return OkStatus();
  }
  Status Handle(AnyMessage message, Context& context) override {
    if (message.As<OfferAgain>()) return events_->OfferLater(context);
    const auto* many = message.As<ReportMany>();
    for (int i = many->first; i < many->first + many->count; ++i)
      TROUPE_RETURN_IF_ERROR(events_->Report(session::DeviceFault{i, false, {}}, context));
    return OkStatus();
  }

 private:
  const std::shared_ptr<ActorGate> gate_;
  std::unique_ptr<EventSender> events_;
};

TEST(EventSenderTest, EventsWithoutRoomAreKeptInTheirOrder) {
  SessionProbe probe(/*capacity=*/2);
  const Address source = probe.Own(std::make_unique<Source>(probe.gate()));
  probe.Hold();
  ASSERT_TRUE(probe.Send(source, ReportMany{0, 100}).ok());
  ASSERT_TRUE(probe.Send(source, ReportMany{100, 3}).ok());
  probe.Release();
  for (int i = 0; i < 103; ++i) EXPECT_EQ(probe.log().NextOf<session::DeviceFault>().device, i);
}

TEST(EventSenderTest, ASenderWithTooManyEventsEndsAndItsOwnerLearnsWhy) {
  SessionProbe probe(/*capacity=*/2);
  const Address source = probe.Own(std::make_unique<Source>(probe.gate()));
  probe.Hold();
  ASSERT_TRUE(probe.Send(source, ReportMany{0, static_cast<int>(EventSender::kKeptMax) + 3}).ok());
  // Only an actor that has ended refuses messages.
  while (probe.Send(source, ReportMany{}).code() != StatusCode::kNotFound) {
  }
  probe.Release();
  EXPECT_EQ(probe.log().NextEnd().code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace troupe
