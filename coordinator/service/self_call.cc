#include "coordinator/service/self_call.h"

#include <utility>

#include "base/log.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

constexpr auto kLimit = std::chrono::seconds(1);

}  // namespace

SelfCall::SelfCall(std::shared_ptr<grpc::Channel> channel, std::chrono::milliseconds interval)
    : channel_(std::move(channel)), interval_(interval), thread_([this] { Run(); }) {}

SelfCall::~SelfCall() { Stop(); }

void SelfCall::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void SelfCall::Run() {
  const auto stub = v1::ClusterService::NewStub(channel_);
  bool complained = false;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, interval_, [this] { return stop_; })) {
    lock.unlock();
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLimit);
    v1::ListWorkersRequest request;
    request.set_page_size(1);
    v1::ListWorkersResponse response;
    const grpc::Status status = stub->ListWorkers(&context, request, &response);
    if (status.ok()) {
      answered_.Touch();
    } else if (!complained) {
      LogWarning("coordinator", "this server does not answer its own calls: {}",
                 status.error_message());
    }
    complained = !status.ok();
    lock.lock();
  }
}

}  // namespace troupe
