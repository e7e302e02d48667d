// The traits of a kind of device, keyed by the job's `devices`, and of the models of a kind that
// differ from it: TPUs are devices of XLA with cores and memory of their own.
//
// A kind is one row in device_traits.cc. No other file compares names of kinds.
#ifndef TROUPE_PLAN_DEVICE_DEVICE_TRAITS_H_
#define TROUPE_PLAN_DEVICE_DEVICE_TRAITS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/program/op.h"
#include "model/program/program.h"
#include "troupe/v1/device_profile.pb.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// The limit of control_lag_steps is 1: with a larger lag, a step could be submitted under a ticket
// that was not known when the control word that decides what is due after the step was formed.
inline constexpr int32_t kControlLagStepsMax = 1;

// The memory of a rank in addition to its values, on a device with memory of its own; in bytes.
struct DeviceMemoryModel {
  int64_t (*working_bytes)(const model::Program& program) = nullptr;
  // Allocations outside the rank's own arena.
  int64_t (*reserve_bytes)(const v1::Plan& plan, const model::Program& program) = nullptr;
};

struct DeviceTraits {
  std::string_view kind;  // `devices` of a job, and v1.DeviceKind.kind
  // The names of its models begin so, as drivers state them; empty: they are processors, whose
  // names begin in many ways.
  std::string_view models_begin;
  // The host computes: ranks of one host share its cores, and there is nothing to synchronise or to
  // launch.
  bool shares_host_cores = false;
  // Null: ranks of one host share its memory. Otherwise each device has its own, and snapshots are
  // copied to the host's.
  const DeviceMemoryModel* memory = nullptr;
  // The number of steps after which a rank may learn a collective decision that was made after a
  // step. A device that must have its next step enqueued when it completes one has 1: that step is
  // submitted before the result of the previous one is read.
  int32_t control_lag_steps = 0;
  // The head computes as many rows at once as have logits of at most this many bytes, rounded down
  // to a power of two; 0: the smallest chunk of rows suffices.
  uint64_t head_logits_bytes = 0;
  // A compiler of the device makes programs when a rank starts, with options (XlaSpec).
  bool compiles_programs = false;
  // The reason why the devices do not run a kind of operation, null if they do; a plan that needs
  // such an operation is refused. Null: they run all kinds.
  const char* (*why_not)(model::OpKind kind) = nullptr;
  // FLOPs that a device computes in the time its memory moves one byte; rounded.
  double flops_per_byte_float32 = 0;
  double flops_per_byte_bfloat16 = 0;

  const char* WhyNot(model::OpKind kind) const {
    return why_not == nullptr ? nullptr : why_not(kind);
  }
};

// The traits of `kind`; null if there is no such kind. Pure.
const DeviceTraits* FindDeviceTraits(std::string_view kind);

// The traits of a device with this kind and model; null if there is no such kind. Pure.
const DeviceTraits* FindDeviceTraits(const v1::DeviceKind& device);

// All kinds of devices. Pure.
std::vector<std::string_view> DeviceKinds();

// The traits of a job's `devices`; absent it is kDefaultDeviceKind. Pure. REQUIRES: there is
// such a kind, as ValidateJobSpec and ParseWorkerDevices check.
const DeviceTraits& DeviceTraitsOf(std::string_view devices);

// The traits of the devices that `plan` is made for, a plan of a job whose `devices` have the
// traits `of_job`: of its device, else of the model that its profile states, else of the job's
// `devices`. Pure.
const DeviceTraits& TraitsIn(const v1::Plan& plan, const DeviceTraits& of_job);

// INVALID_ARGUMENT if `profile` is of a model whose kind is not the job's `devices`: a model of
// neither a GPU nor a TPU is a processor. A profile without a model fits any. Pure.
Status CheckProfileIsOfJobsDevices(const v1::JobSpec& spec, const v1::DeviceProfile& profile);

}  // namespace troupe

#endif  // TROUPE_PLAN_DEVICE_DEVICE_TRAITS_H_
