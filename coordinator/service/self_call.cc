#include "coordinator/service/self_call.h"

#include <utility>

#include "base/log.h"

namespace troupe {
namespace {

constexpr auto kLimit = std::chrono::seconds(1);

struct Interval {
  static constexpr std::string_view kMessageName = "self_call.interval";
};

// One call, which lives until gRPC has answered it.
struct Call {
  std::shared_ptr<void> open;  // released after the context, which refers to the channel
  grpc::ClientContext context;
  v1::ListWorkersRequest request;
  v1::ListWorkersResponse response;
};

void Note(const grpc::Status& status, SelfCallRecord& record) {
  if (status.ok()) {
    record.answered.Touch();
    record.complained = false;
  } else if (!record.complained.exchange(true)) {
    LogWarning("coordinator", "this server does not answer its own calls: {}",
               status.error_message());
  }
  record.in_flight = false;
}

}  // namespace

Status SelfCall::Start(Context& context) {
  context.SetTimer(interval_, AnyMessage(Interval{}));
  return OkStatus();
}

Status SelfCall::Handle(AnyMessage message, Context& context) {
  context.SetTimer(interval_, AnyMessage(Interval{}));
  on_readiness_(record_->answered.Age() <= ready_limit_);
  if (record_->in_flight.exchange(true)) return OkStatus();
  const auto call = std::make_shared<Call>();
  call->open = record_->calls.Begin();
  call->context.set_deadline(std::chrono::system_clock::now() + kLimit);
  call->request.set_page_size(1);
  stub_->async()->ListWorkers(
      &call->context, &call->request, &call->response,
      [call, record = record_](const grpc::Status& status) { Note(status, *record); });
  return OkStatus();
}

}  // namespace troupe
