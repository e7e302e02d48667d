#include "coordinator/service/measure.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "actor/sim/system.h"

namespace troupe {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

class MetricsActorTest : public testing::Test {
 protected:
  MetricsActorTest() {
    system_.Start(system_.AddNode("coordinator", [this](NodeContext& context) {
      actor_ = context.Spawn("metrics", std::make_unique<MetricsActor>(metrics_));
    }));
    system_.RunFor(seconds(1));
  }

  std::string TextAfter(Measured measured) {
    EXPECT_TRUE(system_.Send(actor_, AnyMessage(std::move(measured))).ok());
    system_.RunFor(seconds(1));
    return metrics_.ToText();
  }

  Metrics metrics_;
  SimulatedSystem system_{SimulationOptions{}};
  Address actor_;
};

TEST_F(MetricsActorTest, CountsWhatTheEngineHadToDrop) {
  EXPECT_THAT(TextAfter({}), HasSubstr("troupe_measurements_dropped_total 0"));
  EXPECT_THAT(TextAfter({.dropped = 3}), HasSubstr("troupe_measurements_dropped_total 3"));
}

TEST_F(MetricsActorTest, ForgetsAJobAfterTheMeasurementsOfItsEnd) {
  Measured begun;
  begun.jobs.push_back({.job = "a", .state = v1::JOB_STATE_RUNNING, .step = 7});
  EXPECT_THAT(TextAfter(std::move(begun)), HasSubstr("troupe_job_step{job_name=\"a\"} 7"));
  Measured ended;
  ended.measurements.push_back(RestartMeasured{"a"});
  ended.forgotten_jobs.push_back("a");
  EXPECT_THAT(TextAfter(std::move(ended)), Not(HasSubstr("job_name=\"a\"")));
}

TEST_F(MetricsActorTest, HasASeriesForEachStateOfAJob) {
  Measured running;
  running.jobs.push_back({.job = "a", .state = v1::JOB_STATE_RUNNING});
  const std::string text = TextAfter(std::move(running));
  for (const char* const state :
       {"QUEUED", "STARTING", "CHECKPOINTING", "RECOVERING", "SUCCEEDED", "FAILED", "CANCELLED"}) {
    EXPECT_THAT(text, HasSubstr(fmt::format("{{job_name=\"a\",state=\"{}\"}} 0", state)));
  }
  EXPECT_THAT(text, HasSubstr("troupe_job_state{job_name=\"a\",state=\"RUNNING\"} 1"));
  EXPECT_THAT(text, Not(HasSubstr("UNSPECIFIED")));
}

TEST_F(MetricsActorTest, HasASeriesForEachWorkerThatIsThere) {
  Measured both;
  both.workers = {{.worker = "w0", .is_connected = true}, {.worker = "w1"}};
  const std::string text = TextAfter(std::move(both));
  EXPECT_THAT(text, HasSubstr("troupe_worker_up{worker=\"w0\"} 1"));
  EXPECT_THAT(text, HasSubstr("troupe_worker_up{worker=\"w1\"} 0"));
  Measured one;
  one.workers = {{.worker = "w0", .is_connected = true}};
  EXPECT_THAT(TextAfter(std::move(one)), Not(HasSubstr("worker=\"w1\"")));
}

}  // namespace
}  // namespace troupe
