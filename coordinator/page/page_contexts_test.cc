#include "coordinator/page/page_contexts.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>

#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

TEST(PageContexts, NoCallBeginsAfterTheEnd) {
  PageContexts contexts;
  PageContext before(contexts);
  EXPECT_TRUE(before.Open().ok());
  contexts.EndAll();
  PageContext after(contexts);
  EXPECT_EQ(after.Open().code(), StatusCode::kCancelled);
}

TEST(PageContexts, ACallThatIsOpenIsCancelled) {
  PageContexts contexts;
  PageContext context(contexts);
  ASSERT_TRUE(context.Open().ok());
  contexts.EndAll();
  // Nothing listens there, so that without the end the call would fail otherwise.
  const auto stub = v1::JobService::NewStub(
      grpc::CreateChannel("127.0.0.1:1", grpc::InsecureChannelCredentials()));
  context.get()->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  context.get()->set_wait_for_ready(true);
  v1::GetJobResponse response;
  const grpc::Status status = stub->GetJob(context.get(), {}, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED) << status.error_message();
}

}  // namespace
}  // namespace troupe
