// The coordinator dies between a durable write and the effects that follow it, at each event of a
// job's life in turn, and the next coordinator brings the job to its end. The played workers behave
// like worker/: they continue, and resend what is not finalised.
#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <set>

#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

constexpr int kRanks = 2;
constexpr int64_t kSteps = 4;

std::string WorkerOf(int rank) { return fmt::format("worker-{}", rank); }

// One worker with one rank of job "a".
struct Player {
  uint64_t epoch = 0;  // 0: no rank
  bool booked = false;
  bool ticketed = false;
  int64_t restored = 0;
  int64_t step = 0;
  int64_t ticket_end = 0;
  int64_t durable = 0;
  std::map<int64_t, v1::CheckpointIntent> intents;  // by step
  std::map<int64_t, v1::ShardDone> open_votes;      // by attempt
  std::map<int64_t, v1::ManifestDone> manifests;    // by attempt
};

class Play {
 public:
  // Dies after the `deadly`-th event; -1: never.
  explicit Play(int deadly) : deadly_(deadly) {
    for (int rank = 0; rank < kRanks; ++rank) cluster_.Connect(WorkerOf(rank));
    v1::JobSpec spec = TestSpec("a", kRanks, kSteps);
    spec.mutable_checkpoint()->set_interval(2);
    CreateJobCall call{1, {}};
    *call.request.mutable_job() = spec;
    call.request.set_request_id("r");
    Do(call);
  }

  TestCluster& cluster() { return cluster_; }
  int events() const { return events_; }

  void Run() {
    for (int round = 0; round < 200 && !Done(); ++round) {
      // A client that got no answer repeats its request.
      if (!cluster_.state().jobs.contains("a")) cluster_.Submit(TestSpec("a", kRanks, kSteps), "r");
      for (int rank = 0; rank < kRanks; ++rank) Read(rank);
      Train();
      cluster_.Heartbeat();
      cluster_.Pass(std::chrono::milliseconds(250));
    }
  }

 private:
  bool Done() {
    return cluster_.state().jobs.contains("a") && HasEnded(cluster_.job("a")) &&
           cluster_.state().fleet.leases.empty();
  }

  void Do(decltype(Event::what) what) {
    if (events_++ != deadly_) {
      cluster_.Do(std::move(what));
      return;
    }
    cluster_.DoAndDie(std::move(what));
    for (int rank = 0; rank < kRanks; ++rank) Redial(rank);
  }

  void Send(int rank, v1::WorkerMessage message) {
    Do(WorkerReported{cluster_.worker(WorkerOf(rank)).session, std::move(message)});
  }

  void Redial(int rank) {
    const Player& player = players_[rank];
    TestWorker& worker = cluster_.worker(WorkerOf(rank));
    worker.held.clear();
    if (player.epoch != 0) {
      v1::HeldGroup& held = worker.held.emplace_back();
      held.set_job("a");
      held.set_group_epoch(player.epoch);
      held.add_ranks(rank);
      held.set_step(player.step);
      held.set_ticket_end_step(player.ticket_end);
    }
    cluster_.Reconnect(worker.name);
    if (player.epoch == 0) return;
    if (!player.booked) SayAddress(rank);
    if (player.booked && !player.ticketed) SayReady(rank);
    for (int64_t step = player.durable + 1; rank == 0 && step <= player.step; ++step)
      SayReport(rank, step);
    for (const auto& [attempt, vote] : player.open_votes) SayVote(rank, vote);
    for (const auto& [attempt, manifest] : player.manifests) SayManifest(rank, manifest);
  }

  template <typename Message>
  void Fill(int rank, Message* message) {
    message->set_job("a");
    message->set_group_epoch(players_[rank].epoch);
  }

  void SayAddress(int rank) {
    v1::WorkerMessage message;
    Fill(rank, message.mutable_rank_address());
    message.mutable_rank_address()->set_rank(rank);
    message.mutable_rank_address()->set_address("address");
    Send(rank, message);
  }

  void SayReady(int rank) {
    v1::WorkerMessage message;
    Fill(rank, message.mutable_rank_ready());
    message.mutable_rank_ready()->set_rank(rank);
    message.mutable_rank_ready()->set_step(players_[rank].restored);
    Send(rank, message);
  }

  void SayReport(int rank, int64_t step) {
    v1::WorkerMessage message;
    Fill(rank, message.mutable_step_report());
    message.mutable_step_report()->set_rank(rank);
    message.mutable_step_report()->set_step(step);
    message.mutable_step_report()->set_step_seconds(0.1);
    Send(rank, message);
  }

  void SayVote(int rank, const v1::ShardDone& vote) {
    v1::WorkerMessage message;
    *message.mutable_shard_done() = vote;
    Send(rank, message);
  }

  void SayManifest(int rank, const v1::ManifestDone& manifest) {
    v1::WorkerMessage message;
    *message.mutable_manifest_done() = manifest;
    Send(rank, message);
  }

  void Read(int rank) {
    std::vector<v1::CoordinatorMessage> inbox =
        std::exchange(cluster_.worker(WorkerOf(rank)).inbox, {});
    for (const v1::CoordinatorMessage& message : inbox) Deliver(rank, message);
  }

  void Deliver(int rank, const v1::CoordinatorMessage& message) {
    Player& player = players_[rank];
    if (message.has_start_ranks()) {
      player = Player{};
      player.epoch = message.start_ranks().group_epoch();
      const std::string& path = message.start_ranks().restore_path();
      if (!path.empty()) player.restored = std::stoll(path.substr(path.find("step-") + 5, 8));
      player.step = player.durable = player.restored;
      SayAddress(rank);
    } else if (message.has_address_book() && message.address_book().group_epoch() == player.epoch) {
      player.booked = true;
      SayReady(rank);
    } else if (message.has_ticket() && message.ticket().group_epoch() == player.epoch) {
      player.ticketed = true;
      player.ticket_end = std::max(player.ticket_end, message.ticket().end_step());
      for (const v1::CheckpointIntent& intent : message.ticket().intents())
        player.intents[intent.step()] = intent;
    } else if (message.has_write_manifest() &&
               message.write_manifest().group_epoch() == player.epoch) {
      v1::ManifestDone& done = player.manifests[message.write_manifest().manifest().attempt()];
      Fill(rank, &done);
      done.set_attempt(message.write_manifest().manifest().attempt());
      SayManifest(rank, v1::ManifestDone(done));
    } else if (message.has_checkpoint_finalized()) {
      player.open_votes.erase(message.checkpoint_finalized().attempt());
      player.manifests.erase(message.checkpoint_finalized().attempt());
    } else if (message.has_reports_durable() &&
               message.reports_durable().group_epoch() == player.epoch) {
      player.durable = message.reports_durable().step();
    } else if (message.has_stop_ranks() && message.stop_ranks().group_epoch() == player.epoch) {
      v1::WorkerMessage stopped;
      Fill(rank, stopped.mutable_rank_stopped());
      stopped.mutable_rank_stopped()->set_rank(rank);
      player = Player{};
      Send(rank, stopped);
    }
  }

  // Runs one step on both ranks if both may: no rank is ahead of the other.
  void Train() {
    const bool together = players_[0].epoch != 0 && players_[0].epoch == players_[1].epoch &&
                          players_[0].step == players_[1].step;
    const int64_t step = players_[0].step + 1;
    if (!together || step > std::min(players_[0].ticket_end, players_[1].ticket_end)) return;
    const bool due = players_[0].intents.contains(step) && players_[1].intents.contains(step);
    for (int rank = 0; rank < kRanks; ++rank) players_[rank].step = step;
    for (int rank = 0; rank < kRanks; ++rank) {
      const uint64_t epoch = players_[rank].epoch;
      SayReport(rank, step);
      if (!due || players_[rank].epoch != epoch) continue;
      const int64_t attempt = players_[rank].intents.at(step).attempt();
      v1::ShardDone& vote = players_[rank].open_votes[attempt];
      Fill(rank, &vote);
      vote.set_rank(rank);
      vote.set_attempt(attempt);
      vote.set_step(step);
      vote.set_incarnation(cluster_.worker(WorkerOf(rank)).incarnation);
      vote.mutable_state()->set_step(step);
      SayVote(rank, v1::ShardDone(vote));
    }
  }

  TestCluster cluster_;
  const int deadly_;
  int events_ = 0;
  Player players_[kRanks];
};

TEST(Restart, TheCoordinatorMayDieBetweenAnyWriteAndWhatFollowsIt) {
  Play undisturbed(-1);
  undisturbed.Run();
  ASSERT_EQ(undisturbed.cluster().job("a").record.state(), v1::JOB_STATE_SUCCEEDED);
  ASSERT_GT(undisturbed.events(), 15);
  for (int deadly = 0; deadly < undisturbed.events(); ++deadly) {
    Play play(deadly);
    play.Run();
    ASSERT_TRUE(play.cluster().state().jobs.contains("a")) << "died at event " << deadly;
    const Job& job = play.cluster().job("a");
    EXPECT_EQ(job.record.state(), v1::JOB_STATE_SUCCEEDED) << "died at event " << deadly;
    EXPECT_EQ(job.record.restarts(), 0) << "died at event " << deadly;
    ASSERT_NE(NewestCommit(job), nullptr) << "died at event " << deadly;
    EXPECT_EQ(NewestCommit(job)->step(), kSteps) << "died at event " << deadly;
    const auto rows = ReadHistory(play.cluster().store(), "a", 1, 10);
    ASSERT_TRUE(rows.ok());
    EXPECT_EQ(rows->size(), static_cast<size_t>(kSteps)) << "died at event " << deadly;
    EXPECT_TRUE(play.cluster().state().fleet.leases.empty()) << "died at event " << deadly;
  }
}

}  // namespace
}  // namespace troupe
