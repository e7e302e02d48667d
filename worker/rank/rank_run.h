// One rank in one group epoch: builds, connects, loads, runs steps as tickets allow, has its part
// of checkpoints saved, and ends when told to. Everything slow happens on its own step thread;
// nothing of it outlives the object.
//
// Thread-safety: the public functions belong to the control thread.
#ifndef TROUPE_WORKER_RANK_RANK_RUN_H_
#define TROUPE_WORKER_RANK_RANK_RUN_H_

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
  StatusOr<std::unique_ptr<kernels::Backend>> MakeBackend(int threads);
  Status MakeSaver(const std::vector<int>& cores);
  // Runs steps as tickets allow and saves what is due, up to the last step or a stop.
  Status TakeSteps();
  Status AgreeOnTicket(StepOrder* order);
  Status SubmitStep();
  Status CollectStep(StepOrder* order);
  // `intent` is taken once the state is that after `step`.
  void TakeLater(v1::CheckpointIntent intent, int64_t step, StepOrder* order);
  void TakeCheckpoint(const v1::CheckpointIntent& intent, int64_t step);
  void WriteManifestFile(const v1::WriteManifest& request);
  // `checkpoint_attempt`: what begins after the step; 0: nothing.
  void Report(const StepResult& result, int64_t checkpoint_attempt);
  void ReportMetrics();
  void ReportFailure(const Status& status);
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

  const v1::BeginRank begin_;
  const RankSurroundings around_;
  Directives directives_;
  std::string bad_checkpoint_path_;  // set where restoring failed because of what is there
  bool load_failed_ = false;
  bool ready_ = false;               // all is loaded and every collective was agreed on
  std::vector<OwnedRows> owned_;     // of this rank in every checkpoint
  TraceDesk traces_;
  StepReportMaker reports_;
  MonotonicTime metrics_due_;
  v1::RankEnvironment environment_;
  int64_t loaded_step_ = 0;  // the step after which the parameters were taken
  std::deque<bool> saving_;  // of steps on their way: a save was in flight when the step began
  std::map<int64_t, std::vector<v1::CheckpointIntent>> due_checkpoints_;  // by the step after which they are taken
  int64_t last_attempt_ = 0;  // highest attempt that was taken
  StepCommunication communication_;
  CoreWait core_wait_;
  std::mutex parts_mutex_;  // of these pointers: Abort comes from the control thread
  std::unique_ptr<CollectiveNetwork> network_;
  std::unique_ptr<CheckpointSaver> saver_;
  // The step thread's.
  std::optional<RankProgram> built_;
  std::optional<Dataset> dataset_;
  std::unique_ptr<kernels::Backend> backend_;
  std::unique_ptr<Executor> executor_;
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RANK_RUN_H_
