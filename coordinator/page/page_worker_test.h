// A worker of a listening coordinator whose stream a test plays.
#ifndef TROUPE_COORDINATOR_PAGE_PAGE_WORKER_TEST_H_
#define TROUPE_COORDINATOR_PAGE_PAGE_WORKER_TEST_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "coordinator/test_requests.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {

inline constexpr std::chrono::seconds kPageTestLimit{20};

// A worker with one device, whose rank does what the test sends.
class PageWorker {
 public:
  PageWorker(v1::WorkerService::Stub& stub, const std::string& name) {
    context_.set_deadline(std::chrono::system_clock::now() + kPageTestLimit);
    stream_ = stub.Session(&context_);
    stream_->Write(HelloOf(name));
  }
  ~PageWorker() { context_.TryCancel(); }

  // Reads until a message of that kind arrives.
  v1::CoordinatorMessage Await(v1::CoordinatorMessage::MessageCase kind) {
    v1::CoordinatorMessage message;
    while (stream_->Read(&message)) {
      if (message.message_case() == kind) return message;
    }
    ADD_FAILURE() << "the stream ended before message " << kind;
    return {};
  }

  // Starts the only rank of a job.
  void StartRank() {
    start_ = Await(v1::CoordinatorMessage::kStartRanks).start_ranks();
    v1::WorkerMessage address;
    address.mutable_rank_address()->set_job(start_.job());
    address.mutable_rank_address()->set_group_epoch(start_.group_epoch());
    address.mutable_rank_address()->set_address("x");
    stream_->Write(address);
    Await(v1::CoordinatorMessage::kAddressBook);
    v1::WorkerMessage ready;
    ready.mutable_rank_ready()->set_job(start_.job());
    ready.mutable_rank_ready()->set_group_epoch(start_.group_epoch());
    stream_->Write(ready);
    Await(v1::CoordinatorMessage::kTicket);
  }

  void Report(int64_t step) {
    v1::WorkerMessage message;
    v1::StepReport& report = *message.mutable_step_report();
    report.set_job(start_.job());
    report.set_group_epoch(start_.group_epoch());
    report.set_step(step);
    report.mutable_event()->set_loss(0.5);
    report.mutable_event()->set_tokens(10);
    report.set_step_seconds(0.01);
    stream_->Write(message);
  }

  // Answers the next request for a trace, which is about `step`.
  void AnswerTrace(int64_t step) {
    const v1::TraceRequest request = Await(v1::CoordinatorMessage::kTraceRequest).trace_request();
    EXPECT_EQ(request.first_step(), step);
    EXPECT_EQ(request.last_step(), step);
    v1::WorkerMessage message;
    v1::RankTrace& trace = *message.mutable_rank_trace();
    trace.set_request(request.request());
    trace.set_job(request.job());
    trace.set_group_epoch(request.group_epoch());
    trace.set_first_held_step(step);
    trace.set_last_held_step(step);
    stream_->Write(message);
  }

  // Answers the next request for lines with `count` messages, each of this line.
  void AnswerLogs(const std::string& line, int count = 1) {
    const v1::ReadLogs request = Await(v1::CoordinatorMessage::kReadLogs).read_logs();
    for (int i = 1; i <= count; ++i) {
      v1::WorkerMessage message;
      message.mutable_log_lines()->set_request(request.request());
      message.mutable_log_lines()->add_lines(line);
      message.mutable_log_lines()->set_last(i == count);
      stream_->Write(message);
    }
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::WorkerMessage, v1::CoordinatorMessage>> stream_;
  v1::StartRanks start_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_PAGE_PAGE_WORKER_TEST_H_
