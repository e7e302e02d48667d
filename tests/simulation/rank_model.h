// A rank process as a model that keeps to the protocol of rank processes (rank.proto): it joins its
// group, loads or restores, runs steps as far as its ticket goes, takes part in checkpoints as the
// control word says, stops when told.
//
// It "trains" the state of truth.h and checks itself against it.
#ifndef TROUPE_TESTS_SIMULATION_RANK_MODEL_H_
#define TROUPE_TESTS_SIMULATION_RANK_MODEL_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "actor/actor.h"
#include "tests/simulation/world.h"
#include "troupe/v1/rank.pb.h"

namespace troupe::simulation {

// What its daemon's actor gets from it.
struct RankSays {
  static constexpr std::string_view kMessageName = "rank.says";
  int device = 0;
  uint64_t life = 0;
  v1::RankReport report;
};
struct RankCrashed {
  static constexpr std::string_view kMessageName = "rank.crashed";
  int device = 0;
  uint64_t life = 0;
};

class RankModel {
 public:
  RankModel(World& world, NodeId node, std::string worker, int device, uint64_t life)
      : world_(world), node_(node), worker_(std::move(worker)), device_(device), life_(life) {}

  void OnCommand(const v1::RankCommand& command, Context& context);
  // An alarm or the fate of a group; false if it is not for this rank.
  bool OnMessage(const AnyMessage& message, Context& context);
  // The process is being killed: it does nothing more.
  void Killed();

 private:
  enum class Phase {
    kIdle,
    kLaunching,
    kAddressed,  // waits for the address book
    kJoining,    // waits for its peers
    kLoading,
    kReady,  // waits for a ticket
    kComputing,
    kReducing,  // in the step's reduction
    kWriting,   // a shard
    kFailed,    // waits to be stopped
    kStopping,
    kDead,
  };

  void Begin(const v1::BeginRank& begin, Context& context);
  void OnTicket(const v1::Ticket& ticket, Context& context);
  void OnAlarm(Context& context);
  void OnReduced(const Word& word, Context& context);
  void Load(Context& context);
  void BeginStep(Context& context);
  void Arrive();
  // Writes the next shard that it owes, or goes on with the next step.
  void Proceed(Context& context);
  void WriteShard(Context& context);
  void WriteManifest(const v1::WriteManifest& write, Context& context);
  void Fail(const Status& cause, bool secondary, const std::string& bad_path, Context& context);
  // The rank is over, the process is idle again.
  void Stopped(const std::string& why, Context& context);
  void Wake(Duration delay, Context& context);
  void Say(v1::WorkerMessage message, Context& context);
  // Fills in whose message it is.
  template <typename Body>
  Body& Sign(Body& body) const;

  World& world_;
  const NodeId node_;
  const std::string worker_;
  const int device_;
  const uint64_t life_;

  Phase phase_ = Phase::kIdle;
  v1::BeginRank begin_;
  GroupName group_;
  int rank_ = 0;
  int ranks_ = 0;
  uint64_t number_ = 0;  // in the world, also its pid
  uint64_t wake_ = 0;    // only the newest alarm counts
  int64_t step_ = 0;
  int64_t steps_done_ = 0;  // in this epoch
  uint64_t training_state_ = 0;
  int64_t ticket_end_ = 0;
  MonotonicTime ticket_deadline_;
  std::map<int64_t, v1::CheckpointIntent> due_;       // by step
  std::map<int64_t, v1::CheckpointIntent> requests_;  // asked for, by attempt
  int64_t last_request_ = 0;
  int64_t last_request_done_ = 0;
  int64_t last_taken_ = 0;  // highest attempt that it took part in
  std::deque<v1::CheckpointIntent> to_write_;
  bool then_stop_ = false;
};

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_RANK_MODEL_H_
