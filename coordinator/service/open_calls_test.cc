// The ends of what a client leaves open: handshakes, calls without their whole request, streams.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <string>

#include "coordinator/service/access_calls_test.h"
#include "coordinator/service/server.h"
#include "coordinator/test_requests.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

// The longest wait; by default the ends below come after 10 s and after a day.
constexpr std::chrono::seconds kOpenCallLimit{30};

class OpenCallsTest : public AccessTest {
 protected:
  void StartWith(const ConnectionTimes& times) {
    ServerOptions options;
    options.data_directory = Directory("catalog");
    options.tls = Issue(Role::kCoordinator, "main");
    options.connection_times = times;
    auto server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << ToString(server.status());
    server_ = *std::move(server);
  }
};

// A raw connection to the server. Ends waits until the server closes it.
class RawConnection {
 public:
  explicit RawConnection(int port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const timeval limit{.tv_sec = kOpenCallLimit.count(), .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~RawConnection() { close(socket_); }

  void Send(const std::string& bytes) const {
    EXPECT_EQ(send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  bool Ends() const {
    char byte = 0;
    ssize_t got = 0;
    do {
      got = recv(socket_, &byte, 1, 0);
    } while (got > 0);
    return got == 0 || errno == ECONNRESET;
  }

 private:
  const int socket_;
};

TEST_F(OpenCallsTest, AHandshakeThatIsNotFinishedEndsItsConnection) {
  StartWith({.handshake = std::chrono::milliseconds(300)});
  const RawConnection silent(server_->port());
  const RawConnection half(server_->port());
  half.Send(std::string("\x16\x03\x01\x02\x00\x01", 6));  // the begin of a ClientHello
  EXPECT_TRUE(silent.Ends());
  EXPECT_TRUE(half.Ends());
}

// Begins a call without its request. Returns its end, which only the server or the limit makes.
grpc::Status EndOfACallWithoutItsRequest(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kOpenCallLimit);
  const auto call = stub.PrepareCall(&context, "/troupe.v1.EnrollmentService/Join", &queue);
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  call->StartCall(nullptr);
  EXPECT_TRUE(next());
  grpc::Status status;
  call->Finish(&status, nullptr);
  next();
  queue.Shutdown();
  while (next()) {
  }
  return status;
}

TEST_F(OpenCallsTest, ACallThatGetsOnlyHalfOfItsRequestEndsWithItsConnection) {
  StartWith({.age = std::chrono::milliseconds(300), .grace = std::chrono::milliseconds(300)});
  const grpc::Status end = EndOfACallWithoutItsRequest(ChannelWith(std::nullopt));
  EXPECT_EQ(end.error_code(), grpc::StatusCode::UNAVAILABLE) << end.error_message();
}

TEST_F(OpenCallsTest, ARequestThatIsNotUtf8OrNoMessageIsRefusedWithAText) {
  StartWith({});
  for (const char* rpc : {"/troupe.v1.JobService/GetJob", "/troupe.v1.JobService/WatchJob"}) {
    for (const char* request : {"\x0a\x01\xe9", "\x0a\x7f"}) {
      const Outcome outcome = CallAny(ChannelOf(Role::kSubmitter), rpc, request);
      EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << rpc;
      EXPECT_THAT(outcome.status.error_message(),
                  ::testing::HasSubstr("not a message of this call"));
    }
  }
}

TEST_F(OpenCallsTest, AStreamOfAnOldConnectionEndsAndLaterCallsAreServed) {
  StartWith({.age = std::chrono::milliseconds(300), .grace = std::chrono::seconds(3)});
  const auto ann = ChannelOf(Role::kSubmitter);
  v1::CreateJobRequest create;
  *create.mutable_job() = PlannableJob("a");
  ASSERT_TRUE(CallAny(ann, "/troupe.v1.JobService/CreateJob", create.SerializeAsString()).answered);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kOpenCallLimit);
  v1::WatchJobRequest request;
  request.set_name("a");
  const auto jobs = v1::JobService::NewStub(ann);
  const auto watch = jobs->WatchJob(&context, request);
  v1::WatchJobResponse update;
  int updates = 0;
  while (watch->Read(&update)) ++updates;
  EXPECT_GE(updates, 1);
  const grpc::Status end = watch->Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::UNAVAILABLE) << end.error_message();
  EXPECT_TRUE(CallAny(ann, "/troupe.v1.JobService/ListJobs").answered);
}

}  // namespace
}  // namespace troupe
