#include "report/text/json_text.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

#include "google/rpc/status.pb.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

TEST(JsonTextTest, AStepHasSeventeenDigitsAndNamedNonFiniteNumbers) {
  v1::StepEvent step;
  step.set_step(3);
  step.set_loss(0.1);
  step.set_grad_norm(std::numeric_limits<double>::quiet_NaN());
  step.set_learning_rate(-std::numeric_limits<double>::infinity());
  step.set_tokens(4096);
  step.set_step_seconds(0.25);
  step.set_tokens_per_second(16384);
  step.set_group_epoch(2);
  EXPECT_EQ(StepToJsonLine(step),
            R"({"type":"step","step":3,"loss":0.10000000000000001,"grad_norm":"NaN",)"
            R"("learning_rate":"-Infinity","tokens":4096,"step_seconds":0.25,)"
            R"("tokens_per_second":16384,"mfu":null,"group_epoch":2})");
  step.set_mfu(0.5);
  step.set_validation_loss(1.75);
  const Json json = Json::parse(StepToJsonLine(step));
  EXPECT_EQ(json["mfu"], 0.5);
  EXPECT_EQ(json["validation_loss"], 1.75);
}

TEST(JsonTextTest, EveryDoubleComesBackAsItWas) {
  for (double value : {1.0 / 3, 1e-300, 123456789.123456789, 5e-324, 1.7976931348623157e308}) {
    EXPECT_EQ(std::strtod(ExactNumber(value).c_str(), nullptr), value);
  }
}

TEST(JsonTextTest, EventsAndEndsAreOneLineEach) {
  v1::JobEvent event;
  event.set_event("RANK_LOST");
  event.set_message("worker-1 \"died\"\n");
  EXPECT_EQ(Json::parse(EventToJsonLine(event))["message"], "worker-1 \"died\"\n");
  EXPECT_EQ(EventToJsonLine(event).find('\n'), std::string::npos);
  EXPECT_EQ(EndToJsonLine(v1::JOB_STATE_SUCCEEDED), R"({"type":"end","state":"SUCCEEDED"})");
}

TEST(JsonTextTest, DescribeHasTheShapeOfTheContract) {
  v1::Job job;
  job.set_name("jobs/a");
  job.set_state(v1::JOB_STATE_RUNNING);
  job.mutable_layout()->set_tensor(2);
  job.mutable_submitted_layout()->set_tensor(4);
  auto* rank = job.add_ranks();
  rank->set_worker("worker-0");
  rank->mutable_coordinates()->set_pipe(1);
  job.add_checkpoints()->set_state(v1::CHECKPOINT_STATE_COMMITTED);
  job.add_checkpoints()->set_state(v1::CHECKPOINT_STATE_ABORTED);
  const Json json = JobToJson(job);
  EXPECT_EQ(json["state"], "RUNNING");
  EXPECT_EQ(json["layout"]["tensor"], 2);
  EXPECT_EQ(json["submitted_layout"]["tensor"], 4);
  EXPECT_EQ(json["ranks"][0]["coordinates"]["pipe"], 1);
  EXPECT_TRUE(json["failure"].is_null());
  ASSERT_EQ(json["checkpoints"].size(), 1u);
  EXPECT_EQ(json["checkpoints"][0]["state"], "COMMITTED");
  EXPECT_TRUE(json["last_failure"].is_null());
  job.mutable_failure()->set_cause("RANK_LOST");
  EXPECT_EQ(JobToJson(job)["failure"]["cause"], "RANK_LOST");
  job.mutable_last_failure()->set_cause("HANG");
  EXPECT_EQ(JobToJson(job)["last_failure"]["cause"], "HANG");
}

TEST(JsonTextTest, AJobHasTheLossOfItsLastStep) {
  v1::Job job;
  for (Json (*const to_json)(const v1::Job&) : {JobSummaryToJson, JobToJson}) {
    job.clear_loss();
    ASSERT_TRUE(to_json(job).contains("loss"));
    EXPECT_TRUE(to_json(job)["loss"].is_null());
    job.set_loss(0.1);
    EXPECT_EQ(to_json(job)["loss"], 0.1);
    job.set_loss(std::numeric_limits<double>::quiet_NaN());
    EXPECT_EQ(to_json(job)["loss"], "NaN");
    job.set_loss(-std::numeric_limits<double>::infinity());
    EXPECT_EQ(to_json(job)["loss"], "-Infinity");
  }
}

TEST(JsonTextTest, AStepHasTheNormsOfItsBlocks) {
  v1::StepEvent step;
  for (const char* block : {"embedding", "block0 (A)"}) {
    v1::BlockNorm* const norm = step.add_norms();
    norm->set_block(block);
    norm->set_gradient(0.5);
    norm->set_parameter(2);
  }
  const Json json = Json::parse(StepToJsonLine(step));
  EXPECT_EQ(json["norms"]["embedding"]["gradient"], 0.5);
  EXPECT_EQ(json["norms"]["block0 (A)"]["parameter"], 2);
  EXPECT_FALSE(Json::parse(StepToJsonLine(v1::StepEvent())).contains("norms"));
}

TEST(JsonTextTest, AJobThatWaitsRunsOrRecoversHasNotEnded) {
  for (const v1::JobState state :
       {v1::JOB_STATE_UNSPECIFIED, v1::JOB_STATE_QUEUED, v1::JOB_STATE_STARTING,
        v1::JOB_STATE_RUNNING, v1::JOB_STATE_CHECKPOINTING, v1::JOB_STATE_RECOVERING})
    EXPECT_FALSE(IsEndState(state)) << StateText(state);
  for (const v1::JobState state :
       {v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED, v1::JOB_STATE_CANCELLED})
    EXPECT_TRUE(IsEndState(state)) << StateText(state);
}

TEST(JsonTextTest, ShowsOfAWorkerWhatIsSetAsideWhyAndUntilWhen) {
  v1::WorkerStatus worker;
  v1::SetAside& part = *worker.add_set_aside();
  part.set_reason("WORKER_LOST on worker-1 (job a)");
  part.set_since_wall_time_ns(int64_t{1'800'000'000} * 1'000'000'000);
  part.set_burn_in_wall_time_ns(int64_t{1'800'000'300} * 1'000'000'000);
  EXPECT_EQ(SetAsideText(part),
            "set aside since 2027-01-15T08:00:00Z, burn-in starts at 2027-01-15T08:05:00Z: "
            "WORKER_LOST on worker-1 (job a)");
  EXPECT_EQ(WorkerToJson(worker)["set_aside"][0]["device"], nullptr);
  part.set_device(3);
  part.set_burning_in(true);
  EXPECT_EQ(SetAsideText(part),
            "device 3 set aside since 2027-01-15T08:00:00Z, burn-in is running: "
            "WORKER_LOST on worker-1 (job a)");
  EXPECT_EQ(WorkerToJson(worker)["set_aside"][0]["device"], 3);
}

TEST(JsonTextTest, AProcessThatIsNotKnownHasNoNumber) {
  v1::Job job;
  job.add_ranks();
  job.add_ranks()->set_pid(7);
  const Json ranks = JobToJson(job)["ranks"];
  EXPECT_TRUE(ranks[0]["pid"].is_null());
  EXPECT_EQ(ranks[1]["pid"], 7);
  EXPECT_TRUE(WorkerToJson(v1::WorkerStatus())["pid"].is_null());
}

}  // namespace
}  // namespace troupe
