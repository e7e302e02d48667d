// All metrics of Troupe, each declared once. CONTRIBUTING.md shows how to add one.
#ifndef TROUPE_BASE_METRICS_METRIC_LIST_H_
#define TROUPE_BASE_METRICS_METRIC_LIST_H_

#include "base/metrics/metric.h"

namespace troupe {

namespace label {

using Axis = Label<"axis">;         // a mesh axis, such as "data_shard"
using Code = Label<"code">;         // a gRPC status, such as "NOT_FOUND"
using Device = Label<"device">;     // an index; for troupe_build_info a model
using Expert = Label<"expert">;     // an index
using Gpu = Label<"gpu">;           // the UUID for the driver
using JobName = Label<"job_name">;  // Prometheus reserves the label `job`
using KernelLevel = Label<"kernel_level">;
using Kind = Label<"kind">;
using Layout = Label<"layout">;  // such as "pipe=2,data_shard=4"
using Method = Label<"method">;
using Operation = Label<"operation">;
using Phase = Label<"phase">;  // PhaseName of coordinator/service/job_phases.h
using Precision = Label<"precision">;
using Purpose = Label<"purpose">;
using Rank = Label<"rank">;  // only if the number of series is bounded
using Reason = Label<"reason">;
using Result = Label<"result">;
using Schedule = Label<"schedule">;
using Scope = Label<"scope">;  // "island" or "across" islands; empty: not known
using State = Label<"state">;
using Version = Label<"version">;
using Versions = Label<"versions">;
using Worker = Label<"worker">;
using Xid = Label<"xid">;

}  // namespace label

namespace metric {

using enum MetricUnit;

// Every process.
inline constexpr Gauge<label::Version, label::Worker, label::Device, label::KernelLevel,
                       label::Versions>
    kBuildInfo{"troupe_build_info", kNone,
               "Always 1; the labels describe the build and, for a worker, its devices"};
inline constexpr Gauge<> kHealthAge{"troupe_health_age_seconds", kSeconds,
                                    "Time since this process last proved that it works"};
inline constexpr Counter<> kHealthAsked{"troupe_health_requests_total", kNone,
                                        "Requests for this process's page /health"};
inline constexpr Counter<> kProcessCpu{"process_cpu_seconds_total", kSeconds,
                                       "Time for which all threads of the process used a core"};
inline constexpr Gauge<> kProcessStart{"process_start_time_seconds", kSeconds,
                                       "Start of the process after the Unix epoch"};
inline constexpr Gauge<> kProcessResident{"process_resident_memory_bytes", kBytes,
                                          "Resident memory of the process"};
inline constexpr Gauge<> kProcessVirtual{"process_virtual_memory_bytes", kBytes,
                                         "Address space of the process"};
inline constexpr Gauge<> kProcessOpenFiles{"process_open_fds", kNone,
                                           "File descriptors that the process has open"};
inline constexpr Gauge<> kProcessMostFiles{"process_max_fds", kNone,
                                           "Limit of the process for open file descriptors"};
inline constexpr Gauge<> kInsecure{"troupe_insecure", kNone,
                                   "1 if this process was started with --insecure, else 0"};

// Jobs, by the coordinator.
inline constexpr Gauge<label::JobName> kJobStep{"troupe_job_step", kNone,
                                                "Last optimizer step that the job has applied"};
inline constexpr Gauge<label::JobName> kJobLoss{
    "troupe_job_loss", kNone, "Training loss of the last step, in nats per token"};
inline constexpr Gauge<label::JobName> kJobValidationLoss{
    "troupe_job_validation_loss", kNone, "Loss of the last validation, in nats per token"};
inline constexpr Gauge<label::JobName> kJobGradNorm{
    "troupe_job_grad_norm", kNone, "Norm of the last step's gradient before clipping"};
inline constexpr Gauge<label::JobName> kJobLearningRate{"troupe_job_learning_rate", kNone,
                                                        "Learning rate of the last step"};
inline constexpr Counter<label::JobName> kJobSkippedSteps{
    "troupe_job_skipped_steps_total", kNone,
    "Steps that changed nothing, because a value was not finite"};
inline constexpr Gauge<label::JobName, label::Layout, label::Precision, label::Schedule> kJobInfo{
    "troupe_job_info", kNone,
    "Always 1; the labels describe the layout, the intended precision and the pipeline schedule of "
    "the job"};
inline constexpr Gauge<label::JobName> kJobRanks{"troupe_job_ranks", kNone,
                                                 "Ranks of the job's layout"};
inline constexpr Counter<label::JobName, label::Phase> kJobTime{
    "troupe_job_seconds_total", kSeconds,
    "Wall time of the job by what it was spent on: queued, starting, productive, repeated (steps "
    "that a recovery does again), checkpoint_stall or recovering. Counted from the start of this "
    "coordinator process on"};
inline constexpr Counter<label::JobName, label::Purpose> kJobCommunication{
    "troupe_job_communication_seconds_total", kSeconds,
    "Time from issue to completion of collectives, summed over collectives and ranks"};
inline constexpr Counter<label::JobName, label::Purpose> kJobExposedCommunication{
    "troupe_job_exposed_communication_seconds_total", kSeconds,
    "Time for which steps were blocked in collectives, summed over ranks"};
inline constexpr Counter<label::JobName> kJobCoreWait{
    "troupe_job_core_wait_seconds_total", kSeconds,
    "Time that ranks were ready to compute but had no core, summed over ranks"};
inline constexpr Counter<label::JobName> kJobTokens{"troupe_job_tokens_total", kNone,
                                                    "Tokens trained on, including repeated steps"};
inline constexpr Counter<label::JobName> kJobModelFlops{
    "troupe_job_model_flops_total", kNone,
    "Floating-point operations that the model's steps require"};
inline constexpr Counter<label::JobName> kJobPeakFlops{
    "troupe_job_peak_flops_total", kNone,
    "Floating-point operations that the job's devices could have performed in the same time; "
    "absent if the peak of a device is unknown. MFU is the rate of "
    "troupe_job_model_flops_total divided by the rate of this counter"};
inline constexpr Counter<label::JobName> kJobHardwareFlops{
    "troupe_job_hardware_flops_total", kNone,
    "Floating-point operations of the model's steps with those of activation recomputation. HFU is "
    "the rate of this counter divided by the rate of troupe_job_peak_flops_total"};
inline constexpr Histogram<label::JobName> kJobStepDuration{"troupe_job_step_duration_seconds",
                                                            kSeconds, "Duration of a step"};
inline constexpr Counter<label::JobName> kJobRestarts{"troupe_job_restarts_total", kNone,
                                                      "Recoveries of the job so far"};
inline constexpr Gauge<label::JobName, label::State> kJobState{
    "troupe_job_state", kNone, "1 for the current state of the job, 0 for the other states"};
inline constexpr Counter<label::JobName> kJobDataWait{
    "troupe_job_data_wait_seconds_total", kSeconds,
    "Time that ranks waited for training data, summed over ranks"};
inline constexpr Counter<label::JobName> kJobRouterRouted{
    "troupe_job_router_routed_total", kNone,
    "Expert choices made by the routers of all mixture-of-experts blocks"};
inline constexpr Counter<label::JobName> kJobRouterDropped{
    "troupe_job_router_dropped_total", kNone,
    "Expert choices dropped because the expert was at its capacity"};
inline constexpr Counter<label::JobName, label::Expert> kJobRouterLoad{
    "troupe_job_router_load_total", kNone,
    "Choices of each expert, summed over all mixture-of-experts blocks; for models with at most 64 "
    "experts"};
inline constexpr Gauge<label::JobName, label::Rank> kJobRouterImbalance{
    "troupe_job_router_imbalance", kNone,
    "Choices of the most chosen expert divided by the mean over experts, in the last step, for the "
    "mixture-of-experts blocks of the rank's pipeline stage; of the at most 8 highest ranks"};
inline constexpr Gauge<label::JobName> kJobRouterMedianImbalance{
    "troupe_job_router_median_imbalance", kNone,
    "Median over the ranks that measure it of troupe_job_router_imbalance"};
inline constexpr Gauge<label::JobName, label::Rank> kPipelineBubble{
    "troupe_pipeline_bubble_ratio", kNone,
    "Fraction of the last step that the rank waited for other pipeline stages; of the at most 8 "
    "ranks that waited longest"};
inline constexpr Gauge<label::JobName> kPipelineMedianBubble{
    "troupe_pipeline_median_bubble_ratio", kNone,
    "Median over all ranks of the fraction of the last step that a rank waited for other pipeline "
    "stages"};
inline constexpr Histogram<label::JobName> kJobRankBusy{
    "troupe_job_rank_busy_ratio", kNone,
    "Time of a step in which a rank neither waited for data nor was blocked in communication, "
    "divided by the median over ranks; each rank is counted at most once a second"};
inline constexpr Gauge<label::JobName, label::Rank> kJobRankWorstBusy{
    "troupe_job_rank_worst_busy_ratio", kNone,
    "The newest value that troupe_job_rank_busy_ratio counted, of the at most 8 busiest ranks"};
inline constexpr Gauge<label::JobName> kJobPeerWait{
    "troupe_job_peer_wait_seconds", kSeconds,
    "Time of the last step for which a rank was blocked in communication beyond the time of the "
    "rank that was blocked least, mean over ranks: they waited for that rank"};
inline constexpr Gauge<label::JobName> kJobTransfer{
    "troupe_job_transfer_seconds", kSeconds,
    "Time of the last step for which the rank that was blocked least was blocked in communication: "
    "the others were there before it, so it mostly moved bytes"};

// The coordinator itself.
inline constexpr Gauge<label::State> kJobs{"troupe_jobs", kNone,
                                           "Jobs that the coordinator keeps, by their state"};
inline constexpr Gauge<label::State> kDevices{
    "troupe_devices", kNone,
    "Devices of workers by state: leased, free (with a session), draining (free, but their worker "
    "drains) or condemned; and wanted, the devices of all jobs in the queue"};
inline constexpr Histogram<> kJobQueueWait{
    "troupe_job_queue_wait_seconds", kSeconds,
    "Time that jobs waited in the queue before they started, counted when they start"};
inline constexpr Histogram<label::Method, label::Code> kRpcDuration{
    "troupe_rpc_duration_seconds", kSeconds,
    "Time from the arrival of a unary call until its answer is sent, by method and status"};
inline constexpr Histogram<> kEngineTurn{
    "troupe_engine_turn_seconds", kSeconds,
    "Time from the first event of a batch until the effects of all are performed"};
inline constexpr Histogram<> kCatalogWrite{"troupe_catalog_write_seconds", kSeconds,
                                           "Duration of a synced write to the catalog"};
inline constexpr Gauge<> kCatalogKeys{"troupe_catalog_keys", kNone,
                                      "Estimated number of keys in the catalog"};
inline constexpr Gauge<> kCatalogFiles{"troupe_catalog_files_bytes", kBytes,
                                       "Size of the catalog's sorted tables on disk"};
inline constexpr Gauge<> kCatalogMemory{
    "troupe_catalog_memory_bytes", kBytes,
    "Size of the catalog's changes that are in memory and in its logs only"};
inline constexpr Gauge<> kCatalogCompaction{"troupe_catalog_pending_compaction_bytes", kBytes,
                                            "Estimated bytes that compactions have to rewrite"};
inline constexpr Gauge<> kCatalogErrors{
    "troupe_catalog_background_errors", kNone,
    "Failures of flushes and compactions of the catalog since it was opened"};
inline constexpr Gauge<> kSessions{"troupe_sessions", kNone,
                                   "Sessions of workers with the coordinator"};
inline constexpr Gauge<> kWatchers{"troupe_watchers", kNone,
                                   "Streams of clients that watch a running job"};
inline constexpr Gauge<> kLeaderEpoch{
    "troupe_leader_epoch", kNone,
    "Number of this coordinator process among all that led the cluster"};

// Checkpoints, by the coordinator.
inline constexpr Gauge<label::JobName> kCheckpointDuration{
    "troupe_checkpoint_duration_seconds", kSeconds,
    "Time from the first rank's vote to the commit, for the newest commit"};
inline constexpr Gauge<label::JobName> kCheckpointStall{
    "troupe_checkpoint_stall_seconds", kSeconds,
    "Time for which the newest committed checkpoint blocked training, on the slowest rank"};
inline constexpr Counter<label::JobName> kCheckpointBytes{"troupe_checkpoint_bytes_total", kBytes,
                                                          "Total size of committed checkpoints"};
inline constexpr Counter<label::JobName> kCheckpointAborts{"troupe_checkpoint_aborts_total", kNone,
                                                           "Aborted checkpoint attempts"};
inline constexpr Counter<label::JobName> kCheckpointQuarantined{
    "troupe_checkpoint_quarantined_total", kNone,
    "Committed checkpoints that were found damaged and quarantined"};
inline constexpr Counter<label::JobName, label::Result> kCheckpointVerifications{
    "troupe_checkpoint_verifications_total", kNone,
    "Committed checkpoints that were read back from disk before older ones were deleted, by "
    "result: whole, damaged or unreadable"};
inline constexpr Counter<label::JobName> kCheckpointSkipped{
    "troupe_checkpoint_skipped_total", kNone,
    "Checkpoints that were due but skipped, because another was still being written or the "
    "coordinator was away"};
inline constexpr Counter<label::JobName, label::Method> kCheckpointWrites{
    "troupe_checkpoint_writes_total", kNone,
    "Shard files of committed checkpoints, by write method: io_uring_registered, io_uring, direct "
    "or buffered"};
inline constexpr Gauge<label::JobName> kCheckpointInterval{
    "troupe_checkpoint_interval_seconds", kSeconds,
    "Time between checkpoints that the job asks for; absent if it counts steps"};
inline constexpr Gauge<label::JobName> kCheckpointIntervalSteps{
    "troupe_checkpoint_interval_steps", kNone,
    "Steps between checkpoints that the job asks for; absent if it counts seconds"};
inline constexpr Gauge<label::JobName> kCheckpointLastStep{
    "troupe_checkpoint_last_committed_step", kNone, "Step of the newest committed checkpoint"};
inline constexpr Gauge<label::JobName> kCheckpointLastCommit{
    "troupe_checkpoint_last_commit_timestamp_seconds", kUnixSeconds,
    "Commit time of the newest checkpoint"};

// The fleet, by the coordinator.
inline constexpr Gauge<label::Worker> kWorkerUp{
    "troupe_worker_up", kNone,
    "1 while the worker has a session with the coordinator, 0 otherwise"};
inline constexpr Gauge<label::Worker> kWorkerMemory{
    "troupe_worker_memory_bytes", kBytes,
    "Resident memory of the worker's daemon and rank processes"};
inline constexpr Counter<label::Kind> kMessagesDenied{
    "troupe_worker_messages_denied_total", kNone,
    "Messages ignored because the worker has no rank of the job or the answer was not requested, "
    "by kind of message"};
inline constexpr Counter<> kMeasurementsDropped{
    "troupe_measurements_dropped_total", kNone,
    "Measurements of the coordinator that were dropped because too many waited to be recorded"};
inline constexpr Counter<> kConnectionsRefused{
    "troupe_connections_refused_total", kNone,
    "Connections closed at once because too many were open"};

// Collectives and kernels, by each worker.
inline constexpr Histogram<label::JobName, label::Operation, label::Axis, label::Scope,
                           label::Purpose>
    kCollectiveDuration{"troupe_collective_duration_seconds", kSeconds,
                        "Duration of collectives from issue to completion"};
inline constexpr Counter<label::JobName, label::Operation, label::Axis, label::Scope,
                         label::Purpose>
    kCollectiveBytes{
        "troupe_collective_bytes_total", kBytes,
        "Size of the largest buffer of each collective on this worker's ranks, summed"};
inline constexpr Counter<label::JobName, label::Operation, label::Axis, label::Scope,
                         label::Purpose>
    kCollectiveBusBytes{
        "troupe_collective_bus_bytes_total", kBytes,
        "Minimum traffic of collectives by the host on the link of each rank (divided by the time "
        "spent in them: bus bandwidth)"};
inline constexpr Counter<label::JobName, label::Operation, label::Axis, label::Scope,
                         label::Purpose>
    kDeviceCollectives{"troupe_device_collectives_total", kNone,
                       "Completed device-side collectives"};
inline constexpr Counter<label::JobName, label::Operation, label::Axis, label::Scope,
                         label::Purpose>
    kDeviceCollectiveTime{"troupe_device_collective_seconds_total", kSeconds,
                          "Time devices spent in device-side collectives"};
inline constexpr Counter<label::JobName, label::Operation, label::Axis, label::Scope,
                         label::Purpose>
    kDeviceCollectiveBytes{"troupe_device_collective_bytes_total", kBytes,
                           "Size of the largest buffer of each device-side collective on this "
                           "worker's devices, summed"};
inline constexpr Counter<label::JobName, label::Operation, label::Axis, label::Scope,
                         label::Purpose>
    kDeviceCollectiveBusBytes{"troupe_device_collective_bus_bytes_total", kBytes,
                              "Minimum traffic of device-side collectives on the link of each "
                              "device (divided by the time spent in them: bus bandwidth)"};
inline constexpr Counter<label::Operation> kKernelFallbacks{
    "troupe_kernel_fallbacks_total", kNone,
    "Operations that run a slower implementation than intended, by kind: reference code, a missing "
    "library, a transport, or cores not divided among the host's daemons"};

// GPUs, by each worker.
inline constexpr Gauge<label::Device, label::Gpu> kDeviceTemperature{
    "troupe_device_temperature_celsius", kCelsius, "Temperature of the GPU die"};
inline constexpr Gauge<label::Device, label::Gpu> kDevicePower{"troupe_device_power_watts", kWatts,
                                                               "Power draw of the GPU"};
inline constexpr Gauge<label::Device, label::Gpu> kDeviceUtilization{
    "troupe_device_utilization_ratio", kNone,
    "Fraction of the driver's last sampling period in which a kernel ran on the GPU"};
inline constexpr Gauge<label::Device, label::Gpu> kDeviceClock{
    "troupe_device_clock_hertz", kHertz, "Clock of the GPU's multiprocessors"};
inline constexpr Gauge<label::Device, label::Gpu> kDeviceMemoryUsed{
    "troupe_device_memory_used_bytes", kBytes,
    "Memory of the GPU that is allocated, by all processes and the driver"};
inline constexpr Counter<label::Device, label::Gpu, label::Kind> kDeviceMemoryErrors{
    "troupe_device_memory_errors_total", kNone,
    "Memory errors of the GPU since the worker began to watch it, by kind: corrected or "
    "uncorrected"};
inline constexpr Counter<label::Device, label::Gpu, label::Xid> kDeviceXidErrors{
    "troupe_device_xid_errors_total", kNone, "Errors reported by the GPU's driver, by Xid"};
inline constexpr Counter<label::Device, label::Gpu, label::Reason> kDeviceThrottled{
    "troupe_device_throttled_seconds_total", kSeconds,
    "Time for which the GPU's clocks were reduced, by reason (several may apply at once)"};
inline constexpr Gauge<label::Device, label::Gpu, label::State> kDeviceHealth{
    "troupe_device_health", kNone,
    "1 for the current health of the GPU (healthy, degraded or condemned), 0 for the others"};
inline constexpr Counter<label::Device, label::Gpu> kDeviceRankReplacements{
    "troupe_device_rank_replacements_total", kNone,
    "Faults after which the rank process on the GPU was replaced"};
inline constexpr Gauge<label::Device, label::Gpu> kDeviceLastSample{
    "troupe_device_last_sample_timestamp_seconds", kUnixSeconds,
    "Time of the GPU's last health sample"};

}  // namespace metric
}  // namespace troupe

#endif  // TROUPE_BASE_METRICS_METRIC_LIST_H_
