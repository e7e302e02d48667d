// Plans of one user that wait: beyond their limit they are refused and recorded, and those of other
// users are made.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "coordinator/service/access_calls_test.h"
#include "coordinator/service/service_pools.h"
#include "coordinator/test_requests.h"
#include "coordinator/unplaced_planner.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr auto kUserPlanLimit = std::chrono::seconds(30);
constexpr int kMostUserPlans = 2;

// Plans wait here until the gate is open.
class PlanGate {
 public:
  void Open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void Pass() {
    std::unique_lock lock(mutex_);
    ++begun_;
    changed_.notify_all();
    EXPECT_TRUE(changed_.wait_for(lock, kUserPlanLimit, [this] { return is_open_; }));
  }
  bool WaitUntilBegun(int plans) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kUserPlanLimit, [&] { return begun_ >= plans; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
  int begun_ = 0;
};

class UserPlansTest : public AccessTest {
 protected:
  UserPlansTest() {
    ServerOptions options;
    options.data_directory = Directory("catalog");
    options.tls = Issue(Role::kCoordinator, "main");
    options.user_limits.waiting_plans = kMostUserPlans;
    options.planner = MakeUnplacedPlanner([this] { gate_.Pass(); });
    options.check_files = [this](const v1::JobSpec& spec, const v1::PathRoots&, bool) {
      if (spec.name() != "here") looks_.Pass();
      return OkStatus();
    };
    auto server = Server::Start(options);
    EXPECT_TRUE(server.ok()) << ToString(server.status());
    server_ = *std::move(server);
  }
  ~UserPlansTest() override {
    gate_.Open();
    looks_.Open();
    server_.reset();
  }

  // Begins a call, and counts it as ended when it has been answered.
  void Begin(const std::shared_ptr<grpc::Channel>& channel, const std::string& rpc,
             const std::string& request) {
    running_.push_back(std::async(std::launch::async, [this, channel, rpc, request] {
      const Outcome outcome = CallAny(channel, rpc, request);
      const std::lock_guard lock(mutex_);
      (outcome.answered ? answered_ : refused_).push_back(outcome.status);
      changed_.notify_all();
    }));
  }
  void BeginPlan(const std::shared_ptr<grpc::Channel>& channel) {
    Begin(channel, "/troupe.v1.PlanService/PlanJob", "");
  }
  void BeginCreation(const std::shared_ptr<grpc::Channel>& channel, const std::string& name) {
    v1::CreateJobRequest create;
    *create.mutable_job() = PlannableJob(name);
    Begin(channel, "/troupe.v1.JobService/CreateJob", create.SerializeAsString());
  }
  bool WaitUntil(size_t answered, size_t refused) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kUserPlanLimit, [&] {
      return answered_.size() >= answered && refused_.size() >= refused;
    });
  }
  static void ExpectRefused(const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
    EXPECT_THAT(status.error_message(),
                HasSubstr("spiffe://lab/submitter/ann has 2 plans and checks of data, and the "
                          "limit of a user is 2 (--most-user-plans)"));
  }

  PlanGate gate_;
  PlanGate looks_;  // at data
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<grpc::Status> answered_, refused_;
  std::vector<std::future<void>> running_;  // destroyed first: each waits for its call
};

TEST_F(UserPlansTest, AreCountedWithChecksOfDataUntilTheseHaveReturned) {
  gate_.Open();
  const auto ann = ChannelOf(Role::kSubmitter, "ann");
  BeginCreation(ann, "a");
  ASSERT_TRUE(looks_.WaitUntilBegun(1));
  BeginCreation(ann, "b");
  BeginCreation(ann, "c");
  ASSERT_TRUE(WaitUntil(0, 1)) << "one of the two is refused";
  ExpectRefused(refused_.front());
  BeginCreation(ChannelOf(Role::kSubmitter, "bob"), "d");
  looks_.Open();
  EXPECT_TRUE(WaitUntil(3, 1));
  EXPECT_EQ(refused_.size(), 1);
}

TEST_F(UserPlansTest, ChecksThatHangLeaveRoomForThoseOfOthers) {
  gate_.Open();
  const auto ann = ChannelOf(Role::kSubmitter, "ann");
  BeginCreation(ann, "a");
  ASSERT_TRUE(looks_.WaitUntilBegun(1));
  BeginCreation(ann, "b");
  ASSERT_TRUE(looks_.WaitUntilBegun(2));
  BeginCreation(ChannelOf(Role::kSubmitter, "bob"), "here");
  ASSERT_TRUE(WaitUntil(1, 0)) << "bob's job waits for ann's mount";
  looks_.Open();
  EXPECT_TRUE(WaitUntil(3, 0));
}

TEST_F(UserPlansTest, BeyondTheirLimitAreRefusedAndThoseOfOthersAreMade) {
  looks_.Open();
  const auto ann = ChannelOf(Role::kSubmitter, "ann");
  for (int i = 0; i < kPlanWorkers; ++i) BeginPlan(ann);
  ASSERT_TRUE(gate_.WaitUntilBegun(kPlanWorkers));
  for (int i = 0; i < kMostUserPlans + 1; ++i) BeginPlan(ann);
  ASSERT_TRUE(WaitUntil(0, 1)) << "two wait, and one more is refused";
  ExpectRefused(refused_.front());
  ExpectRefusalRecorded("spiffe://lab/submitter/ann", "/troupe.v1.PlanService/PlanJob");

  v1::CreateJobRequest create;
  *create.mutable_job() = PlannableJob("a");
  create.mutable_job()->mutable_data()->set_train("/nowhere/data");
  constexpr char kCreateJob[] = "/troupe.v1.JobService/CreateJob";
  ExpectRefused(CallAny(ann, kCreateJob, create.SerializeAsString()).status);
  ExpectRefusalRecorded("spiffe://lab/submitter/ann", kCreateJob);

  BeginPlan(ChannelOf(Role::kSubmitter, "bob"));
  gate_.Open();
  EXPECT_TRUE(WaitUntil(kPlanWorkers + kMostUserPlans + 1, 1));
  EXPECT_EQ(refused_.size(), 1) << "bob's plan was made";
  EXPECT_TRUE(CallAny(ann, kCreateJob, create.SerializeAsString()).answered);
}

}  // namespace
}  // namespace troupe
