// One rank in one group epoch: builds, connects, loads, runs steps as tickets allow, saves its
// part of checkpoints, and ends on order. All slow work runs on its own step thread, which ends
// before the object does.
//
// Thread-safety: only the control thread calls the public functions.
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
#include "checkpoint/write/ownership.h"
#include "collective/network.h"
#include "collective/transport.h"
#include "plan/job/job_files.h"
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
#include "worker/rank/rank_data.h"
#include "worker/rank/shared_memory.h"
#include "worker/rank/step_report.h"
#include "worker/rank/trace_requests.h"

namespace troupe {

struct RankSurroundings {
  FileSystem* files = nullptr;  // files of the worker, and of the job where it has no roots
  const Clock* clock = nullptr;
  StepProgress* progress = nullptr;
  std::function<StatusOr<std::unique_ptr<Transport>>()> make_transport;
  std::string transport;  // name of the transport, for the receipt
  // Looks at the memory that the transport shares with other ranks.
  std::function<SharedMemory()> shared_memory = [] { return SharedMemory(); };
  std::function<StatusOr<std::unique_ptr<kernels::Backend>>(const RankBackendOptions&)>
      make_backend = MakeRankBackend;
  // Sends to the daemon; called from any thread.
  std::function<void(const v1::RankReport&)> send;
  // The time that a file of another host may take to become visible here.
  Duration folder_limit = std::chrono::seconds(10);
  // Sets the executable whose operation a crash report names; null: none.
  std::function<void(kernels::Executable*)> note_executable;
};

class RankRun {
 public:
  // Starts the step thread. It ends only after StopRanks and then reports RankStopped and RankIdle.
  RankRun(v1::BeginRank begin, RankSurroundings surroundings);
  // Waits for the step thread. REQUIRES: Handle received StopRanks.
  ~RankRun();
  RankRun(const RankRun&) = delete;
  RankRun& operator=(const RankRun&) = delete;

  // Handles device_book, address_book, ticket, checkpoint_request, save_images, trace_request,
  // write_manifest and stop_ranks of this job and epoch; other messages have no effect.
  void Handle(const v1::CoordinatorMessage& message);

  // The process was moved to `cores`: waits spin only on cores that no other rank has.
  void ShareCores(const v1::CoreSet& cores);

  // Ends the rank's work if its ticket's lifetime is over.
  void CheckTicket(MonotonicTime now);
  std::optional<MonotonicTime> ticket_expires_at() const { return directives_.expires_at(); }

 private:
  void Run();
  // Builds and loads the state, runs the steps and saves the last state.
  Status BuildAndRun();
  // Makes the program, the network, the data and the executor. Returns the time limit of the
  // network's collectives.
  StatusOr<Duration> Build(int threads, int cores_on_host);
  // Opens the transport, for which the host must have room.
  StatusOr<std::unique_ptr<Transport>> OpenTransport();
  // Returns the message with this rank's address, and begins the proof that all ranks share the
  // checkpoint folder.
  StatusOr<v1::WorkerMessage> MakeAddress();
  // Sends the address and connects to the other ranks. Collective from here on.
  Status MeetOthers(v1::WorkerMessage address, Duration hang_limit);
  void SendReady();
  // Saves the last state as often as the coordinator asks for it. REQUIRES: all steps are done.
  void SaveLast();
  // Fills parameters from a checkpoint or the seed; returns the step after which they were saved.
  StatusOr<int64_t> Load();
  // Restores from the checkpoint. Returns DATA_LOSS if it lacks a file, NOT_FOUND if its folder is
  // not visible.
  StatusOr<int64_t> Restore();
  // Calls Restore, a second time after a pause if the checkpoint could not be read, and records a
  // bad checkpoint. A folder that is not visible and two failed reads prove nothing about the
  // checkpoint: the result then has cause STORAGE (worker/executor/folder_fault.h).
  StatusOr<int64_t> RestoreTrained();
  StatusOr<int64_t> RestoreOrDoubt();
  // Completes environment_. REQUIRES: the network is connected.
  void DescribeEnvironment(int threads, int cores_on_host);
  // The fall-backs of this rank's program and messages, "OPERATION WHERE: WHY".
  std::vector<std::string> Fallbacks() const;
  StatusOr<std::unique_ptr<kernels::Backend>> MakeBackend(int threads);
  Status MakeSaver();
  // Runs steps as tickets allow and saves what is due, until the last step or a stop.
  Status RunSteps();
  Status AgreeOnTicket(StepOrder* order);
  Status SubmitStep();
  Status CompleteStep(StepOrder* order);
  // Schedules `intent` to be taken once the state is that after `step`.
  void ScheduleCheckpoint(v1::CheckpointIntent intent, int64_t step, StepOrder* order);
  void StartCheckpoint(const v1::CheckpointIntent& intent, int64_t step);
  // Writes the whole state of this rank into its worker's data directory and reports the path.
  void SaveImage(int64_t step);
  StatusOr<std::string> WriteImage(const std::string& directory, int64_t step);
  // Restores from this rank's image.
  StatusOr<int64_t> RestoreImage();
  // Waits until every shard is visible, then writes the manifest; reports success or the error.
  void WriteManifestFile(const v1::WriteManifest& request);
  // Seconds of all collectives so far, by purpose, including the device's in steps in flight.
  std::array<PurposeSeconds, kPurposes> CollectiveSeconds() const;
  Patience patience() const;
  // `checkpoint_attempt`: the attempt that begins after the step; 0: none.
  void Report(const StepResult& result, int64_t checkpoint_attempt);
  void ReportMetrics();
  // Whether a collective exceeded its time limit while the rank ran.
  bool Hung(const Status& status) const;
  // Sends this rank's progress in its collectives. May be called from any thread.
  void SendFlight();
  void ReportFailure(const Status& status);
  // Returns "; in flight on the device: …" with the device's collectives; empty if there are none.
  std::string InFlightOnDevice() const;
  void Abort(const Status& cause);
  // Closes the transport and ends the save in flight, then frees the memory that they may have read
  // or written. Keeps the backend if its device can be released by the end of the process only.
  Status TearDown();
  void WriteFlightRecord();
  // Returns UNAVAILABLE once parts of this rank are gone.
  StatusOr<v1::RankTrace> Remember(const StepTrace& trace, int64_t first_step, int64_t last_step);
  // Writes the trace for requests that come after this rank's end.
  void WriteTrace();
  void WriteNextToLog(const std::string& path, const std::string& bytes);
  void Send(v1::WorkerMessage message);

  static constexpr size_t kManifestsWaitingMax = 64;

  const v1::BeginRank begin_;
  const RankSurroundings around_;
  Directives directives_;
  JobFiles job_files_;  // files that the spec names; the worker's own are around_.files
  FolderProof folder_proof_;
  std::string bad_checkpoint_path_;  // set if the checkpoint's contents made restoring fail
  bool load_failed_ = false;
  bool of_other_folder_ = false;  // it is of model.from or checkpoint.initial_load
  bool meets_others_ = false;  // its own part is ready; from now on it waits only for other ranks
  std::atomic<bool> ready_ = false;  // all is loaded and the ranks agree on every collective
  std::vector<OwnedRows> owned_;     // rows that this rank writes in every checkpoint
  std::vector<OwnedRows> whole_;     // all rows that this rank holds
  TraceRequests traces_;
  StepReportMaker reports_;
  MonotonicTime metrics_due_;
  v1::RankEnvironment environment_;
  std::vector<std::string> host_fallbacks_;  // fall-backs of links and cores
  PreparationReport preparation_;
  int64_t loaded_step_ = 0;  // the step after which the loaded parameters were saved
  std::deque<bool> saving_;  // by step in flight: a save was in flight when the step began
  // By the step after which they are taken. These are the steps after which the StepOrder of
  // RunSteps acts: ScheduleCheckpoint adds to both, and the checkpoints' start takes from both.
  std::map<int64_t, std::vector<v1::CheckpointIntent>> due_checkpoints_;
  int64_t last_attempt_ = 0;  // highest attempt taken
  StepCommunication communication_;
  CoreWait core_wait_;
  std::mutex parts_mutex_;  // guards these: Abort and ShareCores come from the control thread
  std::optional<bool> shared_cores_;  // absent: not known
  std::unique_ptr<CollectiveNetwork> network_;
  std::unique_ptr<CheckpointSaver> saver_;
  // Has its own thread, because it may take a while until files of other hosts are visible.
  SerialExecutor manifest_writer_{kManifestsWaitingMax};
  // Used by the step thread.
  std::optional<RankProgram> built_;
  std::optional<RankData> data_;
  std::unique_ptr<kernels::Backend> backend_;
  std::unique_ptr<Executor> executor_;
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RANK_RUN_H_
