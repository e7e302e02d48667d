#include "worker/daemon/coordinator_link.h"

#include <utility>

#include "base/failpoint.h"
#include "base/log.h"
#include "worker/daemon/event_sender.h"

namespace troupe {
namespace {

// An event of a stream, from gRPC's threads.
struct StreamEvent {
  static constexpr std::string_view kMessageName = "coordinator.event";
  SessionWhat what;
  std::shared_ptr<void> turn;
};

class CoordinatorLink final : public Actor {
 public:
  CoordinatorLink(DialStream dial, std::shared_ptr<ActorGate> gate)
      : dial_(std::move(dial)), gate_(std::move(gate)) {}

  Status Start(Context& context) override {
    events_ =
        std::make_unique<EventSender>([gate = gate_, owner = context.owner()](AnyMessage message) {
          return gate->Send(owner, std::move(message));
        });
    return OkStatus();
  }

  Status Handle(AnyMessage message, Context& context) override {
    if (auto* event = message.As<StreamEvent>()) {
      events_->Add(std::move(event->what), std::move(event->turn));
      return events_->Offer(context);
    }
    if (auto* send = message.As<SendOnStream>()) {
      if (!stream_ || send->stream != number_) return OkStatus();
      for (v1::WorkerMessage& one : send->messages) stream_->Send(std::move(one));
      return OkStatus();
    }
    if (auto* dial = message.As<DialCoordinator>()) {
      Dial(std::move(*dial), context.self());
      return OkStatus();
    }
    if (message.As<HangUpCoordinator>()) {
      stream_.reset();
      return OkStatus();
    }
    if (message.As<OfferAgain>()) return events_->OfferLater(context);
    return Internal("the coordinator's link received {}", message.name());
  }

 private:
  void Dial(DialCoordinator dial, Address self) {
    number_ = dial.stream;
    // A stream's last events may arrive after the link's end; nobody receives them then.
    stream_ = dial_({
        .on_message =
            [gate = gate_, self, number = number_](v1::CoordinatorMessage message,
                                                   std::shared_ptr<void> turn) {
              return gate->Send(
                  self, AnyMessage(StreamEvent{session::StreamMessage{number, std::move(message)},
                                               std::move(turn)}));
            },
        .on_closed =
            [gate = gate_, self, number = number_](StreamEnd end) {
              const Status sent = gate->Send(
                  self, AnyMessage(StreamEvent{session::StreamClosed{number, std::move(end.reason),
                                                                     end.access_refused},
                                               {}}));
              // The session hangs up when it has heard nothing for the length of a lease.
              if (sent.code() == StatusCode::kResourceExhausted)
                LogWarning("worker", "the end of stream {} is noticed late: {}", number,
                           Message(sent));
            },
    });
    if (const Status hit = HitFailpoint("session.before_hello"); !hit.ok()) {
      LogWarning("worker", "{}", ToString(hit));
    }
    stream_->Send(std::move(dial.hello));
  }

  const DialStream dial_;
  const std::shared_ptr<ActorGate> gate_;
  std::unique_ptr<EventSender> events_;
  std::unique_ptr<CoordinatorStream> stream_;
  uint64_t number_ = 0;  // the number of stream_
};

}  // namespace

std::unique_ptr<Actor> MakeCoordinatorLink(DialStream dial, std::shared_ptr<ActorGate> gate) {
  return std::make_unique<CoordinatorLink>(std::move(dial), std::move(gate));
}

}  // namespace troupe
