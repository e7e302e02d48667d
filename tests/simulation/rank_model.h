// A model of a rank process and of the actor that owns it (worker/daemon/rank_actor.h). It follows
// the protocol of rank processes (rank.proto): it joins its group, loads or restores, runs steps as
// far as its ticket allows, takes part in checkpoints as the control word states, and stops when
// asked to.
//
// It "trains" the state of truth.h and checks itself against it.
#ifndef TROUPE_TESTS_SIMULATION_RANK_MODEL_H_
#define TROUPE_TESTS_SIMULATION_RANK_MODEL_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "actor/actor.h"
#include "tests/simulation/world.h"
#include "troupe/v1/rank.pb.h"
#include "worker/daemon/event_sender.h"

namespace troupe::simulation {

// A message to itself: a save is complete.
struct SaveOver {
  static constexpr std::string_view kMessageName = "rank.save_over";
  uint64_t rank = 0;  // the world's number of the rank
  uint64_t save = 0;
};
// Messages to itself: a manifest, or the loss of a peer, waits until its writes no longer block.
struct ManifestAgain {
  static constexpr std::string_view kMessageName = "rank.manifest_again";
  uint64_t rank = 0;
  v1::WriteManifest write;
};
struct PeerLost {
  static constexpr std::string_view kMessageName = "rank.peer_lost";
  uint64_t rank = 0;
};
// Handles CommandRank and KillRank, and reports RankReported, DeviceFault and one RankExited to its
// owner.
class RankModel final : public Actor {
 public:
  RankModel(World& world, NodeId node, std::string worker, int device)
      : world_(world), node_(node), worker_(std::move(worker)), device_(device) {}

  Status Start(Context& context) override;
  Status Handle(AnyMessage message, Context& context) override;

 private:
  enum class Phase {
    kStarting,  // the process starts
    kIdle,
    kLaunching,
    kAddressed,  // waits for the address book
    kJoining,    // waits for its peers
    kLoading,
    kReady,  // waits for a ticket
    kComputing,
    kReducing,  // in the step's reduction
    kWriting,   // writes a shard between two steps, or waits for the save in flight
    kFailed,    // waits to be stopped
    kStopping,
    kDead,  // killed, or about to exit
    kGone,  // has reported its exit
  };

  // The process runs now, unless it has been killed.
  void Up(Context& context);
  // Begins the end of the process; it does nothing more.
  void Kill(Context& context);
  // Ends its rank and returns how long the process outlives that, blocked in a write.
  Duration EndRank();
  // The process has ended; a write in which it was blocked takes effect.
  void Gone(Context& context);
  void Exit(int signal, Context& context);

  void OnCommand(const v1::RankCommand& command, Context& context);
  // Handles a message to the rank `number`, unless that has ended.
  void OnMessage(const AnyMessage& message, Context& context);
  void OnTicketOver(Context& context);
  bool HasEnded() const;
  // Reports what the rank does, or which reduction it waits in, as it was asked because of a hang.
  void ReportFlight(Context& context);
  void Begin(const v1::BeginRank& begin, Context& context);
  void OnTicket(const v1::Ticket& ticket, Context& context);
  void OnAlarm(Context& context);
  void OnReduced(const Word& word, Context& context);
  void OnPeerLost(Context& context);
  void Load(Context& context);
  StatusOr<Restored> Restore() const;
  // --- The folder of checkpoints (rank_folder.cc).
  // Puts its worker's token into the folder and reports the folder's identity.
  Status BeginFolderProof(v1::RankAddress& address);
  // Checks that rank 0 and the other workers see each other's tokens; the error names who does not.
  Status FinishFolderProof(const v1::AddressBook& book);
  Status CheckFolder(const std::string& path, const std::string& id) const;
  void BeginStep(Context& context);
  // Whether its host or chance ends it before the next step.
  bool Breaks(Context& context);
  void Arrive();

  // --- Checkpoints (rank_checkpoints.cc).
  // Starts the pending saves as far as possible, then continues with the next step.
  void Proceed(Context& context);
  // The save in flight is complete: sends its vote.
  void EndSave(Context& context);
  Status WriteShard(v1::ShardDone& done);
  // Whether writes of its host block; then `again` is sent once they no longer do.
  bool Blocks(AnyMessage again, Context& context);
  // Whether a blocked save holds up the thread that steps, so that the rank answers nothing.
  bool IsHeldUp() const { return is_blocked_ && (!IsAsync() || !to_write_.empty()); }
  void WriteManifest(const v1::WriteManifest& write, Context& context);
  // Saves its state on its worker's own disk if the last checkpoint cannot be written.
  void SaveImage(const v1::SaveImages& order, Context& context);
  StatusOr<Restored> ReadImage() const;
  bool IsAsync() const { return begin_.start().spec().checkpoint().async_mode() == "async"; }

  // The folder is not the expected one here.
  void FailFolder(const Status& cause, Context& context);
  void Fail(const Status& cause, bool secondary, const std::string& bad_path, Context& context);
  // The rank is over; the process is idle again.
  void Stopped(const std::string& why, Context& context);
  void Wake(Duration delay, Context& context);
  void ReportToDaemon(v1::WorkerMessage message, Context& context);
  void ReportIdle(Context& context);
  template <typename What>
  void Report(What what, Context& context);
  // Sets the identity of the sender.
  template <typename Body>
  Body& Sign(Body& body) const {
    body.set_job(group_.job);
    body.set_group_epoch(group_.epoch);
    body.set_rank(rank_);
    return body;
  }

  World& world_;
  const NodeId node_;
  const std::string worker_;
  const int device_;
  std::unique_ptr<EventSender> events_;

  Phase phase_ = Phase::kStarting;
  v1::BeginRank begin_;
  GroupName group_;
  int rank_ = 0;
  int ranks_ = 0;
  uint64_t number_ = 0;  // in the world; also its pid
  uint64_t wake_ = 0;    // only the newest alarm counts
  int64_t step_ = 0;
  int64_t steps_done_ = 0;  // in this epoch
  uint64_t entered_ = 0;    // reductions in which it has arrived in this epoch
  uint64_t training_state_ = 0;
  int64_t ticket_end_ = 0;
  MonotonicTime ticket_deadline_;
  std::map<int64_t, v1::CheckpointIntent> due_;       // by step
  std::map<int64_t, v1::CheckpointIntent> requests_;  // by attempt
  int64_t last_request_ = 0;
  int64_t last_request_done_ = 0;
  int64_t last_taken_ = 0;  // highest attempt in which it took part
  std::deque<v1::CheckpointIntent> to_write_;
  // The save in flight; it runs concurrently with steps if the job saves asynchronously.
  struct Save {
    v1::CheckpointIntent intent;
    int64_t step = 0;
    uint64_t state = 0;
  };
  std::optional<Save> save_;
  uint64_t save_number_ = 0;
  bool is_blocked_ = false;                    // the save in flight blocks
  bool hangs_ = false;                         // it never arrives at the next reduction
  std::optional<v1::SaveImages> image_order_;  // waits until it is no longer held up
  bool then_stop_ = false;
  std::string folder_id_;      // identity of the folder as rank 0 has read or created it
  std::string blamed_worker_;  // the worker whose host caused the failure, if not this rank's
};

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_RANK_MODEL_H_
