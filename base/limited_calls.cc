#include "base/limited_calls.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace troupe {
namespace {

// The state that a call shares with the thread that waits for it.
struct Answer {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Status> status;
};

}  // namespace

LimitedCalls::LimitedCalls(int most_unfinished)
    : most_unfinished_(most_unfinished), unfinished_(std::make_shared<std::atomic<int>>(0)) {}

Status LimitedCalls::Run(std::function<Status()> call, Duration limit, std::string_view what) {
  if (++*unfinished_ > most_unfinished_) {
    --*unfinished_;
    return Aborted("{}: {} earlier calls have not returned", what, most_unfinished_);
  }
  const auto answer = std::make_shared<Answer>();
  std::thread([answer, unfinished = unfinished_, call = std::move(call)]() mutable {
    Status status = call();
    call = nullptr;
    --*unfinished;
    const std::lock_guard lock(answer->mutex);
    answer->status = std::move(status);
    answer->changed.notify_all();
  }).detach();
  std::unique_lock lock(answer->mutex);
  if (!answer->changed.wait_for(lock, limit, [&] { return answer->status.has_value(); })) {
    return DeadlineExceeded("{} did not return within {} s", what, ToSeconds(limit));
  }
  return std::move(*answer->status);
}

}  // namespace troupe
