// Measures local messages per second of the actor runtime; prints one JSON line per case.
//
//   pairs: P pairs of actors; each pair exchanges W messages in flight.
//   fan_in: S senders, each with a window of W unacknowledged messages, to one receiver that
//   acknowledges each.
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "actor/system.h"
#include "base/check.h"
#include "base/flag_parser.h"

namespace troupe {
namespace {

struct Ball {
  static constexpr std::string_view kMessageName = "ball";
  Address from;
};

// Counts the players that are not done yet; main waits until there are none.
class Score {
 public:
  explicit Score(int players) : players_left_(players) {}
  void PlayerIsDone() {
    std::lock_guard lock(mutex_);
    if (--players_left_ == 0) done_.notify_all();
  }
  bool Wait(Duration limit) {
    std::unique_lock lock(mutex_);
    return done_.wait_for(lock, limit, [&] { return players_left_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  int players_left_;
};

// Serves `window` balls to `opponent` (if it has one), then returns every ball until it has handled
// `target` of them.
class Player final : public Actor {
 public:
  Player(Address opponent, int window, int64_t target, Score& score)
      : opponent_(opponent), window_(window), target_(target), score_(score) {}

  Status Start(Context& context) override {
    for (int i = 0; opponent_ && i < window_; ++i) {
      TROUPE_RETURN_IF_ERROR(context.Send(opponent_, AnyMessage(Ball{context.self()})));
    }
    return OkStatus();
  }

  Status Handle(AnyMessage message, Context& context) override {
    if (++handled_ == target_) score_.PlayerIsDone();
    // Each direction uses a new message, as in real use: allocated here, freed by the reader.
    return handled_ <= target_
               ? context.Send(message.As<Ball>()->from, AnyMessage(Ball{context.self()}))
               : OkStatus();
  }

 private:
  const Address opponent_;
  const int window_;
  const int64_t target_;
  Score& score_;
  int64_t handled_ = 0;
};

void Report(std::string_view name, int actors, int window, int threads, int64_t messages,
            double seconds) {
  fmt::print(
      "{{\"bench\": \"actor\", \"case\": \"{}\", \"actors\": {}, \"window\": {}, \"threads\": {}, "
      "\"messages\": {}, \"seconds\": {:.3f}, \"messages_per_second\": {:.0f}}}\n",
      name, actors, window, threads, messages, seconds, messages / seconds);
}

// Lets `servers` actors play against `receivers` others: server i against receiver i modulo
// `receivers`.
void Measure(std::string_view name, int receivers, int servers, int window, int threads,
             int64_t messages) {
  SystemClock clock;
  Score score(servers);
  ActorSystem system(clock, {.threads = threads});
  std::vector<Address> opponents;
  for (int i = 0; i < receivers; ++i) {
    auto receiver =
        system.Spawn("receiver", std::make_unique<Player>(Address{}, 0, INT64_MAX, score),
                     {.mailbox_capacity = static_cast<size_t>(window) * servers});
    TROUPE_CHECK_OK(receiver.status());
    opponents.push_back(*receiver);
  }
  const int64_t each = messages / 2 / servers;
  const MonotonicTime start = clock.Now();
  for (int i = 0; i < servers; ++i) {
    auto server = system.Spawn(
        "server", std::make_unique<Player>(opponents[i % receivers], window, each, score),
        {.mailbox_capacity = static_cast<size_t>(window)});
    TROUPE_CHECK_OK(server.status());
  }
  TROUPE_CHECK(score.Wait(std::chrono::minutes(2)), "{} did not end within 2 minutes", name);
  const double seconds = ToSeconds(clock.Now() - start);
  Report(name, receivers + servers, window, threads, each * servers * 2, seconds);
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  troupe::FlagParser parser({.name = "troupe-bench-actor",
                             .usage = "troupe-bench-actor",
                             .summary = "Measures how many messages per second actors exchange; "
                                        "prints JSON lines."});
  if (const std::optional<int> ended = parser.ParseMain(argc, argv)) return *ended;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int threads = std::min(cores, 4);
  troupe::Measure("pairs", 64, 64, 16, threads, 8'000'000);
  troupe::Measure("fan_in", 1, 16, 64, threads, 4'000'000);
  troupe::Measure("one_ball", 1, 1, 1, threads, 400'000);
  return 0;
}
