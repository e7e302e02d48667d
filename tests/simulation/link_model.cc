#include "tests/simulation/link_model.h"

#include <utility>

#include "worker/daemon/coordinator_link.h"

namespace troupe::simulation {

Status LinkModel::Start(Context& context) {
  events_ = MakeEventSender(world_, context);
  return OkStatus();
}

Status LinkModel::Handle(AnyMessage message, Context& context) {
  SimulatedNetwork& network = world_.system.network();
  if (auto* dial = message.As<DialCoordinator>()) {
    network.Close(stream_, context.self(), Cancelled("another stream is dialled"));
    number_ = dial->stream;
    hello_ = std::move(dial->hello);
    stream_ = network.Dial(node_, context.self(), coordinator_);
    return OkStatus();
  }
  if (message.As<HangUpCoordinator>()) {
    network.Close(stream_, context.self(), Cancelled("hung up"));
    stream_ = {};
    return OkStatus();
  }
  if (const auto* send = message.As<SendOnStream>()) {
    if (send->stream != number_) return OkStatus();
    for (const v1::WorkerMessage& one : send->messages) Write(one, context);
    return OkStatus();
  }
  if (const auto* opened = message.As<StreamOpened>()) {
    if (opened->stream == stream_) Write(hello_, context);
    return OkStatus();
  }
  if (const auto* data = message.As<StreamData>()) {
    if (data->stream != stream_) return OkStatus();
    session::StreamMessage received{number_, {}};
    if (!received.message.ParseFromString(data->bytes))
      return Internal("the coordinator's message does not parse");
    return events_->Report(std::move(received), context);
  }
  if (const auto* closed = message.As<StreamClosed>()) {
    if (closed->stream != stream_) return OkStatus();
    return events_->Report(session::StreamClosed{number_, ToString(closed->cause)}, context);
  }
  if (message.As<OfferAgain>()) return events_->OfferLater(context);
  return Internal("the link received {}", message.name());
}

void LinkModel::Write(const v1::WorkerMessage& message, Context& context) {
  // UNAVAILABLE: the stream is over and StreamClosed is in flight.
  world_.system.network().Write(stream_, context.self(), message.SerializeAsString()).IgnoreError();
}

}  // namespace troupe::simulation
