#include "actor/work_pool.h"

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"

namespace troupe {
namespace {

struct Request {
  static constexpr std::string_view kMessageName = "pool.request";
  std::shared_ptr<WorkPool::Work> work;
};
// Work for one worker.
struct Assignment {
  static constexpr std::string_view kMessageName = "pool.assignment";
  std::shared_ptr<WorkPool::Work> work;
};
struct Idle {
  static constexpr std::string_view kMessageName = "pool.idle";
  Address worker;
};

class Worker final : public Actor {
 public:
  Status Handle(AnyMessage message, Context& context) override {
    {
      const std::shared_ptr<WorkPool::Work> work = std::move(message.As<Assignment>()->work);
      (*work)(OkStatus());
    }
    // The pool waits for this answer to its assignment.
    return context.SendAdmitted(context.owner(), AnyMessage(Idle{context.self()}));
  }
};

class Pool final : public Actor {
 public:
  explicit Pool(WorkPoolOptions options) : options_(std::move(options)) {}

  Status Start(Context& context) override {
    for (int i = 0; i < options_.workers; ++i) {
      TROUPE_ASSIGN_OR_RETURN(const Address worker,
                              context.Spawn(fmt::format("{}.{}", options_.name, i),
                                            std::make_unique<Worker>(), {.mailbox_capacity = 1}));
      idle_.push_back(worker);
    }
    return OkStatus();
  }

  Status Handle(AnyMessage message, Context& context) override {
    if (const auto* idle = message.As<Idle>()) {
      idle_.push_back(idle->worker);
    } else {
      Admit(std::move(message.As<Request>()->work), context.Now());
    }
    return AssignWaiting(context);
  }

 private:
  struct Waiting {
    MonotonicTime since;
    std::shared_ptr<WorkPool::Work> work;
  };

  void Admit(std::shared_ptr<WorkPool::Work> work, MonotonicTime now) {
    // Work that an idle worker takes does not wait.
    if (waiting_.size() >= options_.max_waiting + idle_.size()) {
      (*work)(ResourceExhausted("{} {} wait, at most {} may: try again", waiting_.size(),
                                options_.name, options_.max_waiting));
      return;
    }
    waiting_.push_back({now, std::move(work)});
  }

  Status AssignWaiting(Context& context) {
    while (!waiting_.empty() && !idle_.empty()) {
      const Waiting next = std::move(waiting_.front());
      waiting_.pop_front();
      if (context.Now() - next.since > options_.limit) {
        (*next.work)(
            DeadlineExceeded("{} wait for their turn: this one did not come within {:.0f} s",
                             options_.name, ToSeconds(options_.limit)));
        continue;
      }
      TROUPE_RETURN_IF_ERROR(context.Send(idle_.back(), AnyMessage(Assignment{next.work})));
      idle_.pop_back();
    }
    return OkStatus();
  }

  const WorkPoolOptions options_;
  std::vector<Address> idle_;
  std::deque<Waiting> waiting_;
};

}  // namespace

StatusOr<WorkPool> WorkPool::Spawn(ActorSystem& system, const WorkPoolOptions& options) {
  TROUPE_CHECK(options.workers >= 1);
  TROUPE_ASSIGN_OR_RETURN(const Address address,
                          system.Spawn(options.name, std::make_unique<Pool>(options),
                                       {.mailbox_capacity = options.max_waiting +
                                                            static_cast<size_t>(options.workers)}));
  return WorkPool(system, address, options);
}

void WorkPool::Run(Work work) const {
  const auto shared = std::make_shared<Work>(std::move(work));
  const Status sent = system_->Send(address_, AnyMessage(Request{shared}));
  if (sent.ok()) return;
  (*shared)(
      sent.code() == StatusCode::kResourceExhausted
          ? ResourceExhausted("too many {} wait, at most {} may: try again", name_, max_waiting_)
          : sent);
}

}  // namespace troupe
