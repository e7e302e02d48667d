#include "worker/daemon/rank_actor.h"

#include <utility>

#include "base/log.h"

namespace troupe {
namespace {

struct SocketReady {
  static constexpr std::string_view kMessageName = "rank.socket_ready";
  unsigned events = 0;
};
struct ProcessEnded {
  static constexpr std::string_view kMessageName = "rank.process_ended";
};

class RankActor final : public Actor {
 public:
  explicit RankActor(RankActorOptions options) : options_(std::move(options)) {}
  ~RankActor() override {
    options_.descriptors->Remove(socket_token_);
    options_.descriptors->Remove(end_token_);
  }

  Status Start(Context& context) override {
    events_ = std::make_unique<EventSender>(
        [gate = options_.gate, owner = context.owner()](AnyMessage message) {
          return gate->Send(owner, std::move(message));
        });
    const auto to_self = [gate = options_.gate, self = context.self()](auto message) {
      return gate->Send(self, AnyMessage(std::move(message)));
    };
    socket_token_ = options_.descriptors->Add(
        child().socket(), [to_self](unsigned events) { return to_self(SocketReady{events}); });
    end_token_ = options_.descriptors->Add(child().end_descriptor(),
                                           [to_self](unsigned) { return to_self(ProcessEnded{}); });
    options_.descriptors->Arm(socket_token_, DescriptorWatch::kReadable);
    options_.descriptors->Arm(end_token_, DescriptorWatch::kReadable);
    return OkStatus();
  }

  Status Handle(AnyMessage message, Context& context) override {
    if (has_ended_ && !message.As<OfferAgain>()) return OkStatus();
    if (const auto* command = message.As<CommandRank>()) {
      child().Send(command->command);
      if (child().wants_write())
        options_.descriptors->Arm(socket_token_, DescriptorWatch::kWritable);
      return OkStatus();
    }
    if (const auto* kill = message.As<KillRank>()) {
      LogWarning("worker", "kills the rank process of device {}: {}", options_.device,
                 kill->reason);
      child().Kill();
      return OkStatus();
    }
    if (const auto* ready = message.As<SocketReady>()) return ServeSocket(ready->events, context);
    if (message.As<ProcessEnded>()) return End(context);
    if (message.As<OfferAgain>()) {
      TROUPE_RETURN_IF_ERROR(events_->OfferLater(context));
      StopWhenReported(context);
      return OkStatus();
    }
    return Internal("a rank's actor received {}", message.name());
  }

 private:
  RankChild& child() { return *options_.child; }

  Status ServeSocket(unsigned events, Context& context) {
    if (events & DescriptorWatch::kWritable) {
      child().Write();
      if (child().wants_write())
        options_.descriptors->Arm(socket_token_, DescriptorWatch::kWritable);
    }
    return events & DescriptorWatch::kReadable ? ReadReports(context) : OkStatus();
  }

  Status ReadReports(Context& context) {
    std::deque<v1::RankReport> reports = child().Read();
    if (!child().is_readable() && reports.empty()) return OkStatus();
    // The socket is read again once all of these have been handled.
    const std::shared_ptr<void> turn(
        nullptr, [descriptors = options_.descriptors, token = socket_token_](void*) {
          descriptors->Arm(token, DescriptorWatch::kReadable);
        });
    for (v1::RankReport& report : reports)
      events_->Add(session::RankReported{options_.device, std::move(report)}, turn);
    return events_->Offer(context);
  }

  // The process's last reports precede its end.
  Status End(Context& context) {
    do {
      for (v1::RankReport& report : child().Read())
        events_->Add(session::RankReported{options_.device, std::move(report)});
    } while (child().has_more());
    const ChildEnd end = child().Reap();
    has_ended_ = true;
    session::RankExited exited{
        options_.device, end.exit_code, end.signal, child().LastOperation(), {}};
    const std::string line = fmt::format(
        "rank process {} of device {} ended: exit code {}, signal {}, last operation: {}",
        child().pid(), options_.device, end.exit_code, end.signal, exited.last_operation);
    if (end.exit_code == 0 && end.signal == 0) {
      LogInfo("worker", "{}", line);
    } else {
      LogWarning("worker", "{}", line);
    }
    TROUPE_RETURN_IF_ERROR(events_->Report(std::move(exited), context));
    StopWhenReported(context);
    return OkStatus();
  }

  void StopWhenReported(Context& context) {
    if (has_ended_ && events_->done()) context.Stop();
  }

  RankActorOptions options_;
  std::unique_ptr<EventSender> events_;
  DescriptorWatch::Token socket_token_ = 0;
  DescriptorWatch::Token end_token_ = 0;
  bool has_ended_ = false;
};

}  // namespace

std::unique_ptr<Actor> MakeRankActor(RankActorOptions options) {
  return std::make_unique<RankActor>(std::move(options));
}

}  // namespace troupe
