#include "coordinator/service/unreadable_requests.h"

#include <string>

namespace troupe {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerInterceptorFactoryInterface;
using grpc::experimental::ServerRpcInfo;

class Explainer final : public Interceptor {
  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      const grpc::Status status = methods->GetSendStatus();
      if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED &&
          status.error_message().empty()) {
        methods->ModifySendStatus({grpc::StatusCode::INVALID_ARGUMENT,
                                   "the request is not a message of this call: its bytes are "
                                   "damaged, or a text in it is not UTF-8"});
      }
    }
    methods->Proceed();
  }
};

class ExplainerFactory final : public ServerInterceptorFactoryInterface {
  Interceptor* CreateServerInterceptor(ServerRpcInfo* call) override {
    const bool has_one_request = call->type() == ServerRpcInfo::Type::UNARY ||
                                 call->type() == ServerRpcInfo::Type::SERVER_STREAMING;
    return has_one_request ? new Explainer : nullptr;
  }
};

}  // namespace

std::unique_ptr<ServerInterceptorFactoryInterface> ExplainUnreadableRequests() {
  return std::make_unique<ExplainerFactory>();
}

}  // namespace troupe
