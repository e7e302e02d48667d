// All metrics of Troupe, each declared once. CONTRIBUTING.md shows how to add one.
#ifndef TROUPE_BASE_METRICS_METRIC_LIST_H_
#define TROUPE_BASE_METRICS_METRIC_LIST_H_

#include "base/metrics/metric.h"

namespace troupe {

namespace label {

using Axis = Label<"axis">;         // a mesh axis, such as "data_shard"
using Device = Label<"device">;     // an index; for troupe_build_info a model
using Expert = Label<"expert">;     // an index
using Gpu = Label<"gpu">;           // the UUID for the driver
using JobName = Label<"job_name">;  // Prometheus reserves the label `job`
using KernelLevel = Label<"kernel_level">;
using Kind = Label<"kind">;
using Method = Label<"method">;
using Operation = Label<"operation">;
using Purpose = Label<"purpose">;
using Rank = Label<"rank">;  // only if the number of series is bounded
using Reason = Label<"reason">;
using Result = Label<"result">;
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
inline constexpr Gauge<> kInsecure{"troupe_insecure", kNone,
                                   "1 if this process was started with --insecure, else 0"};

// Jobs, by the coordinator.
inline constexpr Gauge<label::JobName> kJobStep{"troupe_job_step", kNone,
                                                "Last optimizer step that the job has applied"};
inline constexpr Gauge<label::JobName> kJobLoss{
    "troupe_job_loss", kNone, "Training loss of the last step, in nats per token"};
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
    "mixture-of-experts blocks of the rank's pipeline stage"};
inline constexpr Gauge<label::JobName, label::Rank> kPipelineBubble{
    "troupe_pipeline_bubble_ratio", kNone,
    "Fraction of the last step that the rank waited for other pipeline stages"};

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
inline constexpr Histogram<label::Operation, label::Axis, label::Purpose> kCollectiveDuration{
    "troupe_collective_duration_seconds", kSeconds,
    "Duration of collectives from issue to completion"};
inline constexpr Counter<label::Operation, label::Axis, label::Purpose> kCollectiveBytes{
    "troupe_collective_bytes_total", kBytes,
    "Size of the largest buffer of each collective on this worker's ranks, summed"};
inline constexpr Counter<label::Operation, label::Axis, label::Purpose> kDeviceCollectives{
    "troupe_device_collectives_total", kNone, "Completed device-side collectives"};
inline constexpr Counter<label::Operation, label::Axis, label::Purpose> kDeviceCollectiveTime{
    "troupe_device_collective_seconds_total", kSeconds,
    "Time devices spent in device-side collectives"};
inline constexpr Counter<label::Operation, label::Axis, label::Purpose> kDeviceCollectiveBytes{
    "troupe_device_collective_bytes_total", kBytes,
    "Size of the largest buffer of each device-side collective on this worker's devices, summed"};
inline constexpr Counter<label::Operation, label::Axis, label::Purpose> kDeviceCollectiveBusBytes{
    "troupe_device_collective_bus_bytes_total", kBytes,
    "Minimum traffic of device-side collectives on the link of each device (divided by the time "
    "spent in them: bus bandwidth)"};
inline constexpr Counter<label::Operation> kKernelFallbacks{
    "troupe_kernel_fallbacks_total", kNone,
    "Operations that run a slower implementation than intended, by kind: reference code, a missing "
    "library, a transport, or cores not divided among the host's daemons"};

// GPUs, by each worker.
inline constexpr Gauge<label::Device, label::Gpu> kDeviceTemperature{
    "troupe_device_temperature_celsius", kCelsius, "Temperature of the GPU die"};
inline constexpr Gauge<label::Device, label::Gpu> kDevicePower{"troupe_device_power_watts", kWatts,
                                                               "Power draw of the GPU"};
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
