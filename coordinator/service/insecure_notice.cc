#include "coordinator/service/insecure_notice.h"

#include "base/security/insecure_reminder.h"

namespace troupe {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerInterceptorFactoryInterface;
using grpc::experimental::ServerRpcInfo;

class Marker final : public Interceptor {
  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace(kInsecureHeader, "1");
    }
    methods->Proceed();
  }
};

class MarkerFactory final : public ServerInterceptorFactoryInterface {
  Interceptor* CreateServerInterceptor(ServerRpcInfo*) override { return new Marker; }
};

}  // namespace

std::unique_ptr<ServerInterceptorFactoryInterface> MarkAnswersInsecure() {
  return std::make_unique<MarkerFactory>();
}

}  // namespace troupe
