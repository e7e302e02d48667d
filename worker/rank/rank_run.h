// One rank in one group epoch: builds, connects, loads, runs steps as tickets allow, has its part
// of checkpoints saved, and ends when told to. Everything slow happens on its own step thread;
// nothing of it outlives the object.
//
// Thread-safety: the public functions belong to the control thread.
#ifndef TROUPE_WORKER_RANK_RANK_RUN_H_
#define TROUPE_WORKER_RANK_RANK_RUN_H_

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/serial_executor.h"
#include "base/status.h"
#include "checkpoint/ownership.h"
#include "collective/network.h"
#include "collective/transport.h"
#include "troupe/v1/rank.pb.h"
#include "worker/executor/executor.h"
#include "worker/executor/rank_program.h"
#include "worker/executor/step_order.h"
#include "worker/executor/step_progress.h"
#include "worker/rank/checkpoint_saver.h"
#include "worker/rank/core_wait.h"
#include "worker/rank/directives.h"
#include "worker/rank/folder_proof.h"
#include "worker/rank/rank_backend.h"
#include "worker/rank/step_report.h"
#include "worker/rank/trace_desk.h"

namespace troupe {

struct RankSurroundings {
  FileSystem* files = nullptr;
  const Clock* clock = nullptr;
  StepProgress* progress = nullptr;
  std::function<StatusOr<std::unique_ptr<Transport>>()> make_transport;
  std::string transport;  // what it is, for the receipt
  std::function<StatusOr<std::unique_ptr<kernels::Backend>>(const RankBackendOptions&)> make_backend =
      MakeRankBackend;
  // To the daemon; from any thread.
  std::function<void(const v1::RankReport&)> send;
  // How long another host's file may take to be seen here.
  Duration folder_limit = std::chrono::seconds(10);
  // Whose operation a crash is to name; null: nobody's.
  std::function<void(kernels::Executable*)> note_executable;
};

class RankRun {
 public:
  // Starts the step thread. At its end, which comes only after StopRanks, it says RankStopped and
  // RankIdle.
  RankRun(v1::BeginRank begin, RankSurroundings surroundings);
  // Waits for the step thread. REQUIRES: StopRanks was taken.
  ~RankRun();
  RankRun(const RankRun&) = delete;
  RankRun& operator=(const RankRun&) = delete;

  // address_book, ticket, checkpoint_request, write_manifest and stop_ranks of this very job and
  // epoch; others have no effect.
  void Take(const v1::CoordinatorMessage& message);

  // The process was moved to `cores`: waits spin only on cores that are no other rank's.
  void ShareCores(const v1::CoreSet& cores);

  // Ends the rank's work if its ticket's lifetime is over.
  void CheckTicket(MonotonicTime now);
  std::optional<MonotonicTime> ticket_expires_at() const { return directives_.expires_at(); }

 private:
  void Run();
  Status RunSteps();
  // Fills parameters from checkpoint or seed; returns the step they are of.
  StatusOr<int64_t> Load();
  // From the checkpoint; DATA_LOSS for one that lacks a file, NOT_FOUND where its folder is not
  // seen.
  StatusOr<int64_t> Restore();
  // Restores, once more after a pause where it could not be read, and notes a checkpoint that is
  // bad. What cannot be read twice says nothing about the checkpoint: UNAVAILABLE, with cause
  // STORAGE.
  StatusOr<int64_t> RestoreOrDoubt();
  // Completes environment_. REQUIRES: the network is connected.
  void DescribeEnvironment(int threads, int cores_on_host);
  // Lines of what is not the best there is, "OPERATION WHERE: WHY": of its program and its messages.
  std::vector<std::string> Fallbacks() const;
  StatusOr<std::unique_ptr<kernels::Backend>> MakeBackend(int threads);
  Status MakeSaver();
  // Runs steps as tickets allow and saves what is due, up to the last step or a stop.
  Status TakeSteps();
  Status AgreeOnTicket(StepOrder* order);
  Status SubmitStep();
  Status CollectStep(StepOrder* order);
  // `intent` is taken once the state is that after `step`.
  void TakeLater(v1::CheckpointIntent intent, int64_t step, StepOrder* order);
  void TakeCheckpoint(const v1::CheckpointIntent& intent, int64_t step);
  // Writes the whole state of this rank into its worker's data directory and says where.
  void SaveImage(int64_t step);
  StatusOr<std::string> WriteImage(const std::string& directory, int64_t step);
  // From this rank's image.
  StatusOr<int64_t> RestoreImage();
  // Sees every shard, then writes the manifest and says so, or why not.
  void WriteManifestFile(const v1::WriteManifest& request);
  // Seconds of all collectives so far, by purpose, those of the device in steps in flight included.
  std::array<PurposeSeconds, kPurposes> CollectiveSeconds() const;
  Patience patience() const;
  // `checkpoint_attempt`: what begins after the step; 0: nothing.
  void Report(const StepResult& result, int64_t checkpoint_attempt);
  void ReportMetrics();
  // A collective did not finish within its limit, of a rank that ran.
  bool Hung(const Status& status) const;
  // Sends how far this rank is in its collectives. From any thread.
  void TellFlight();
  void ReportFailure(const Status& status);
  // "; in flight on the device: …", of its own collectives; empty where there are none.
  std::string InFlightOnDevice() const;
  void Abort(const Status& cause);
  // Closes the transport and ends the save in flight, then frees what they may have read or
  // written.
  Status TearDown();
  void WriteFlightRecord();
  // UNAVAILABLE once parts of this rank are gone.
  StatusOr<v1::RankTrace> Remember(const StepTrace& trace, int64_t first_step, int64_t last_step);
  // For requests that come after this rank's end.
  void WriteTrace();
  void WriteBesideLog(const std::string& path, const std::string& bytes);
  void Send(v1::WorkerMessage message);

  static constexpr size_t kManifestsWaitingMax = 64;

  const v1::BeginRank begin_;
  const RankSurroundings around_;
  Directives directives_;
  FolderProof folder_proof_;
  std::string bad_checkpoint_path_;  // set where restoring failed because of what is there
  bool load_failed_ = false;
  bool meets_others_ = false;        // all of its own is ready; what it waits for are other ranks
  std::atomic<bool> ready_ = false;  // all is loaded and every collective was agreed on
  std::vector<OwnedRows> owned_;     // of this rank in every checkpoint
  std::vector<OwnedRows> whole_;     // everything that this rank holds
  TraceDesk traces_;
  StepReportMaker reports_;
  MonotonicTime metrics_due_;
  v1::RankEnvironment environment_;
  std::vector<std::string> host_fallbacks_;  // those of links and cores
  PreparationReport preparation_;
  int64_t loaded_step_ = 0;  // the step after which the parameters were taken
  std::deque<bool> saving_;  // of steps on their way: a save was in flight when the step began
  std::map<int64_t, std::vector<v1::CheckpointIntent>> due_checkpoints_;  // by the step after which they are taken
  int64_t last_attempt_ = 0;  // highest attempt that was taken
  StepCommunication communication_;
  CoreWait core_wait_;
  std::mutex parts_mutex_;            // of these: Abort and ShareCores come from the control thread
  std::optional<bool> shared_cores_;  // absent: not known
  std::unique_ptr<CollectiveNetwork> network_;
  std::unique_ptr<CheckpointSaver> saver_;
  // A thread of its own: to see the files of other hosts may take a while.
  SerialExecutor manifest_writer_{kManifestsWaitingMax};
  // The step thread's.
  std::optional<RankProgram> built_;
  std::optional<Dataset> dataset_;
  std::unique_ptr<kernels::Backend> backend_;
  std::unique_ptr<Executor> executor_;
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RANK_RUN_H_
