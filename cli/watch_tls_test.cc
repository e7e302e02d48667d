// A watch over TLS whose coordinator ends and returns.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "base/http/listen_sockets.h"
#include "base/security/credentials.h"
#include "base/security/test_certificates.h"
#include "base/temporary_directory.h"
#include "cli/watch.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kTlsWatchLimit{30};

// A coordinator with the history of one job: three steps and an event before its restart, and two
// more of each after it.
class RestartingJobs final : public v1::JobService::Service {
 public:
  std::promise<void> began;  // the first watch has sent what there is
  std::atomic<bool> has_restarted{false};

  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest* request,
                      v1::GetJobResponse* response) override {
    response->mutable_job()->set_name(request->name());
    response->mutable_job()->set_steps(5);
    return grpc::Status::OK;
  }
  grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::WatchJobResponse>* writer) override {
    const bool is_last = has_restarted;
    for (int64_t step = 1; step <= (is_last ? 5 : 3); ++step) Write(step, *request, writer);
    if (is_last) {
      v1::WatchJobResponse end;
      end.set_end(v1::JOB_STATE_SUCCEEDED);
      writer->Write(end);
      return grpc::Status::OK;
    }
    began.set_value();
    const auto give_up = steady_clock::now() + kTlsWatchLimit;
    while (!context->IsCancelled() && steady_clock::now() < give_up) sched_yield();
    return grpc::Status::CANCELLED;
  }

 private:
  // Each step is followed by an event of it; events do not depend on where a watch begins.
  static void Write(int64_t step, const v1::WatchJobRequest& request,
                    grpc::ServerWriter<v1::WatchJobResponse>* writer) {
    v1::WatchJobResponse response;
    response.mutable_step()->set_step(step);
    response.mutable_step()->set_group_epoch(1);
    if (step >= request.from_step()) writer->Write(response);
    response.mutable_event()->set_event("CHECKPOINT_COMMITTED");
    response.mutable_event()->set_step(step);
    response.mutable_event()->set_wall_time_ns(step);
    writer->Write(response);
  }
};

class WatchTlsTest : public testing::Test {
 protected:
  TlsFiles Issue(Role role) const {
    const std::string directory = directory_.Child(std::string(RoleName(role)));
    WriteTlsDirectory(directory, authority_.pem(), authority_.Issue(role, "ann"));
    const auto files = CheckTlsDirectory(directory, std::time(nullptr));
    EXPECT_TRUE(files.ok()) << files.status();
    return *files;
  }

  void Serve() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(fmt::format("127.0.0.1:{}", port_),
                             TlsServerCredentialsOf(Issue(Role::kCoordinator)), &port_);
    builder.RegisterService(&jobs_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }

  // Ends the server, and starts it again after the watch has tried to connect meanwhile.
  void Restart() {
    server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
    {
      const auto taken = ListenSockets::Open(fmt::format("127.0.0.1:{}", port_));
      ASSERT_TRUE(taken.ok()) << taken.status();
      pollfd polled{taken->descriptors()[0], POLLIN, 0};
      const auto limit = std::chrono::milliseconds(kTlsWatchLimit).count();
      ASSERT_EQ(poll(&polled, 1, static_cast<int>(limit)), 1) << "the watch does not come back";
      close(accept4(polled.fd, nullptr, nullptr, SOCK_CLOEXEC));
    }
    jobs_.has_restarted = true;
    Serve();
  }

  const TestAuthority authority_;
  const TemporaryDirectory directory_;
  RestartingJobs jobs_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Before the fix, the handshake with the new server was never carried on, and the watch ended with
// UNAVAILABLE after a minute.
TEST_F(WatchTlsTest, AWatchGoesOnWithoutLosingOrRepeatingAnything) {
  Serve();
  std::thread restart([this] {
    ASSERT_EQ(jobs_.began.get_future().wait_for(kTlsWatchLimit), std::future_status::ready);
    Restart();
  });
  Client client = Client::At(fmt::format("127.0.0.1:{}", port_), Issue(Role::kViewer));
  InterruptWatch interrupt;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const auto code = WatchJob(&client, &interrupt, {.job = "jobs/a", .json = true});
  const std::string out = testing::internal::GetCapturedStdout();
  testing::internal::GetCapturedStderr();
  restart.join();
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, ExitCode::kDone);
  const auto count = [&out](const std::string& text) {
    size_t found = 0;
    for (size_t at = out.find(text); at != out.npos; at = out.find(text, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("\"type\":\"step\""), 5u) << out;
  EXPECT_EQ(count("\"type\":\"event\""), 5u) << out;
  for (int step = 1; step <= 5; ++step) {
    EXPECT_EQ(count(fmt::format("\"type\":\"step\",\"step\":{},", step)), 1u) << out;
  }
  EXPECT_EQ(count("\"type\":\"end\",\"state\":\"SUCCEEDED\""), 1u) << out;
}

}  // namespace
}  // namespace troupe
