#include "coordinator/service/rpc_times.h"

#include <chrono>
#include <string>
#include <utility>

#include "base/metrics/metric_list.h"
#include "base/status.h"

namespace troupe {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerInterceptorFactoryInterface;
using grpc::experimental::ServerRpcInfo;

class CallTimer final : public Interceptor {
 public:
  CallTimer(Metrics& metrics, std::string method) : metrics_(metrics), method_(std::move(method)) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      const std::chrono::duration<double> age = std::chrono::steady_clock::now() - begin_;
      const auto code = static_cast<StatusCode>(methods->GetSendStatus().error_code());
      metrics_.Observe(metric::kRpcDuration, age.count(), label::Method(method_),
                       label::Code(absl::StatusCodeToString(code)));
    }
    methods->Proceed();
  }

 private:
  Metrics& metrics_;
  const std::string method_;  // such as "troupe.v1.JobService/GetJob"
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

class CallTimerFactory final : public ServerInterceptorFactoryInterface {
 public:
  explicit CallTimerFactory(Metrics& metrics) : metrics_(metrics) {}

  Interceptor* CreateServerInterceptor(ServerRpcInfo* call) override {
    if (call->type() != ServerRpcInfo::Type::UNARY) return nullptr;  // it is not intercepted
    const std::string path = call->method();
    return new CallTimer(metrics_, path.starts_with('/') ? path.substr(1) : path);
  }

 private:
  Metrics& metrics_;
};

}  // namespace

std::unique_ptr<ServerInterceptorFactoryInterface> MeasureCalls(Metrics& metrics) {
  return std::make_unique<CallTimerFactory>(metrics);
}

}  // namespace troupe
