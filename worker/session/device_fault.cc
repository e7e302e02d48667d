#include "worker/session/device_fault.h"

#include <utility>

#include "base/failure_cause.h"
#include "base/status.h"
#include "worker/session/outbox.h"
#include "worker/session/rank_lives.h"

namespace troupe::session {
namespace {

void ReportFailed(State& state, const Device& device, const std::string& cause, Effects& effects) {
  Group* const group = FindGroup(state, device.job, device.group_epoch);
  if (group == nullptr) return;  // a newer epoch has begun
  v1::WorkerMessage message;
  v1::RankFailed& failed = *message.mutable_rank_failed();
  failed.set_job(device.job);
  failed.set_group_epoch(device.group_epoch);
  failed.set_rank(device.rank);
  failed.set_code(static_cast<int>(StatusCode::kUnavailable));
  failed.set_message(cause);
  failed.set_cause(std::string(cause::kDeviceFault));
  group->ranks[device.rank].failed = message;
  Send(state, effects, std::move(message));
}

void Condemn(State& state, int index, const std::string& cause, Effects& effects) {
  state.devices[index].condemned = cause;
  // Every later Hello includes the cause.
  state.config.identity.mutable_devices(index)->set_condemned(cause);
  v1::WorkerMessage message;
  message.mutable_device_condemned()->set_device(index);
  message.mutable_device_condemned()->set_reason(cause);
  Send(state, effects, std::move(message));
  effects.push_back(Note{fmt::format("device {} is condemned: {}", index, cause)});
}

}  // namespace

void OnDeviceFault(State& state, const DeviceFault& fault, Effects& effects) {
  Device& device = state.devices[fault.device];
  if (!device.condemned.empty()) return;
  // Reported before the rank's end, which frees the device.
  if (fault.condemned) Condemn(state, fault.device, fault.cause, effects);
  if (device.process == ProcessState::kStarting && !fault.condemned) return;
  if (!device.job.empty() && device.process != ProcessState::kKilled) {
    device.fault = fault.cause;
    ReportFailed(state, device, fault.cause, effects);
  }
  if (fault.condemned && device.next) {
    RefuseNext(state, fault.device,
               fmt::format("device {} is condemned: {}", fault.device, fault.cause), effects);
  }
  Kill(state, fault.device, fault.cause, effects);
}

}  // namespace troupe::session
