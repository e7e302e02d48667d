#include "coordinator/service/external_scaler.h"

#include <grpcpp/alarm.h>

#include <charconv>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "coordinator/machine/device_demand.h"
#include "coordinator/service/call_reactor.h"
#include "coordinator/service/grpc_status.h"
#include "coordinator/service/request_bytes.h"

namespace troupe {
namespace {

using externalscaler::IsActiveResponse;
using externalscaler::ScaledObjectRef;

constexpr char kDevicesMetric[] = "troupe-devices-wanted";
constexpr char kDevicesPerWorkerKey[] = "devicesPerWorker";
constexpr int kMostDevicesPerWorker = 1024;
constexpr char kStreamRpc[] = "/externalscaler.ExternalScaler/StreamIsActive";
// A query of the state is cheap, and the streams of a user are limited.
constexpr std::chrono::seconds kActiveInterval{1};

template <typename Request>
Status AdmitScaler(const CallGuard& guard, const grpc::CallbackServerContext& context,
                   std::string_view rpc, const Request& request) {
  TROUPE_RETURN_IF_ERROR(GuardedCall(guard, context, rpc).access);
  return CheckRequestBytes(request);
}

// One StreamIsActive: the state is looked at each second, and its changes are written.
class ActiveReactor final : public grpc::ServerWriteReactor<IsActiveResponse> {
 public:
  ActiveReactor(Engine& engine, const CallAudit& audit, const grpc::CallbackServerContext& context,
                const StatusOr<UserTicket>& ticket)
      : stream_(std::make_shared<Stream>(engine, this)) {
    if (!ticket.ok()) {
      stream_->Finish(ticket.status());
      return;
    }
    ticket_ = *ticket;
    auto guard = GuardStream(audit, context, kStreamRpc,
                             [stream = stream_](const Status& reason) { stream->Finish(reason); });
    if (!guard.ok()) {
      stream_->Finish(guard.status());
      return;
    }
    guard_ = *std::move(guard);
    stream_->Look();
  }

  void OnWriteDone(bool ok) override { stream_->OnWritten(ok); }
  void OnCancel() override { stream_->Finish(Cancelled("the caller is gone")); }
  void OnDone() override { delete this; }

 private:
  // Outlives the reactor and the engine, which must not be used once `finished` is set.
  class Stream : public std::enable_shared_from_this<Stream> {
   public:
    Stream(Engine& engine, ActiveReactor* reactor) : engine_(engine), reactor_(reactor) {}

    void Look() {
      const std::lock_guard lock(mutex_);
      if (finished_) return;
      const Status asked =
          engine_.Query([stream = shared_from_this()](const CoordinatorState& state) {
            stream->Write(DeviceDemand(state) > 0);
          });
      if (!asked.ok()) FinishLocked(asked);
    }

    void OnWritten(bool ok) {
      const std::lock_guard lock(mutex_);
      if (finished_) return;
      if (ok) {
        WaitLocked();
      } else {
        FinishLocked(Unavailable("the stream broke"));
      }
    }

    void Finish(const Status& status) {
      const std::lock_guard lock(mutex_);
      FinishLocked(status);
    }

   private:
    void Write(bool is_active) {
      const std::lock_guard lock(mutex_);
      if (finished_) return;
      if (written_ == is_active) return WaitLocked();
      written_ = is_active;
      response_.set_result(is_active);
      reactor_->StartWrite(&response_);
    }

    // The former alarm may still be in its call, so it is not set again.
    void WaitLocked() {
      alarm_ = std::make_unique<grpc::Alarm>();
      alarm_->Set(std::chrono::system_clock::now() + kActiveInterval,
                  [weak = weak_from_this()](bool has_rung) {
                    const auto stream = weak.lock();
                    if (has_rung && stream != nullptr) stream->Look();
                  });
    }

    void FinishLocked(const Status& status) {
      if (finished_) return;
      finished_ = true;
      alarm_.reset();
      reactor_->Finish(ToGrpcStatus(status));
    }

    std::mutex mutex_;
    Engine& engine_;
    ActiveReactor* const reactor_;
    IsActiveResponse response_;
    std::optional<bool> written_;
    std::unique_ptr<grpc::Alarm> alarm_;
    bool finished_ = false;
  };

  UserTicket ticket_;
  const std::shared_ptr<Stream> stream_;
  std::unique_ptr<StreamGuard> guard_;
};

}  // namespace

StatusOr<int> DevicesPerWorker(const ScaledObjectRef& object) {
  const auto found = object.scalermetadata().find(kDevicesPerWorkerKey);
  if (found == object.scalermetadata().end()) {
    return InvalidArgument("the trigger of ScaledObject {}/{} has no metadata.{}",
                           object.namespace_(), object.name(), kDevicesPerWorkerKey);
  }
  const std::string& text = found->second;
  int devices = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), devices);
  if (error != std::errc() || end != text.data() + text.size() || devices < 1 ||
      devices > kMostDevicesPerWorker) {
    return InvalidArgument(
        "metadata.{} of the trigger of ScaledObject {}/{} is \"{}\", must be a whole number from 1 "
        "to {}",
        kDevicesPerWorkerKey, object.namespace_(), object.name(), text, kMostDevicesPerWorker);
  }
  return devices;
}

grpc::ServerUnaryReactor* ExternalScalerShell::IsActive(grpc::CallbackServerContext* context,
                                                        const ScaledObjectRef* request,
                                                        IsActiveResponse* response) {
  auto* const reactor = new CallReactor(engine_);
  const Status admitted =
      AdmitScaler(guard_, *context, "/externalscaler.ExternalScaler/IsActive", *request);
  if (!admitted.ok()) {
    reactor->FinishWith(admitted);
    return reactor;
  }
  reactor->Query([response](const CoordinatorState& state) {
    response->set_result(DeviceDemand(state) > 0);
    return OkStatus();
  });
  return reactor;
}

grpc::ServerWriteReactor<IsActiveResponse>* ExternalScalerShell::StreamIsActive(
    grpc::CallbackServerContext* context, const ScaledObjectRef* request) {
  const GuardedCall call(guard_, *context, kStreamRpc);
  Status admitted = call.access;
  if (admitted.ok()) admitted = CheckRequestBytes(*request);
  return new ActiveReactor(
      engine_, guard_.audit(), *context,
      admitted.ok() ? guard_.OpenStream(call) : StatusOr<UserTicket>(admitted));
}

grpc::ServerUnaryReactor* ExternalScalerShell::GetMetricSpec(
    grpc::CallbackServerContext* context, const ScaledObjectRef* request,
    externalscaler::GetMetricSpecResponse* response) {
  auto* const reactor = new CallReactor(engine_);
  Status result =
      AdmitScaler(guard_, *context, "/externalscaler.ExternalScaler/GetMetricSpec", *request);
  if (result.ok()) {
    const StatusOr<int> devices = DevicesPerWorker(*request);
    result = devices.status();
    if (devices.ok()) {
      externalscaler::MetricSpec* const spec = response->add_metricspecs();
      spec->set_metricname(kDevicesMetric);
      spec->set_targetsizefloat(*devices);
    }
  }
  reactor->FinishWith(result);
  return reactor;
}

grpc::ServerUnaryReactor* ExternalScalerShell::GetMetrics(
    grpc::CallbackServerContext* context, const externalscaler::GetMetricsRequest* request,
    externalscaler::GetMetricsResponse* response) {
  auto* const reactor = new CallReactor(engine_);
  const Status admitted =
      AdmitScaler(guard_, *context, "/externalscaler.ExternalScaler/GetMetrics", *request);
  if (!admitted.ok()) {
    reactor->FinishWith(admitted);
    return reactor;
  }
  reactor->Query([response](const CoordinatorState& state) {
    externalscaler::MetricValue* const value = response->add_metricvalues();
    value->set_metricname(kDevicesMetric);
    value->set_metricvaluefloat(static_cast<double>(DeviceDemand(state)));
    return OkStatus();
  });
  return reactor;
}

}  // namespace troupe
