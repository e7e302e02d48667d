// Tests which objects wait for their jobs when they are deleted, and what becomes of these jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/kubernetes/controller.h"
#include "coordinator/kubernetes/controller_test.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(ControllerTest, AnObjectWhoseJobHasEndedGoesAtOnceAndItsJobAfterIt) {
  Run();
  jobs_.job->state = v1::JOB_STATE_SUCCEEDED;
  Turns(3);
  EXPECT_EQ(State(), "SUCCEEDED");
  EXPECT_EQ(server_.object["metadata"]["finalizers"], Json::array());
  const Json event = {{"type", "DELETED"}, {"object", server_.object}};
  // Another object has its name before its job is gone.
  server_.object["metadata"]["uid"] = "v";
  server_.object["metadata"]["resourceVersion"] = "91";
  server_.object.erase("status");
  server_.read = {
      .lines = {event.dump(), Json{{"type", "ADDED"}, {"object", server_.object}}.dump()}};
  jobs_.unknown = {"v"};
  Turns(3);
  EXPECT_THAT(jobs_.calls, ElementsAre("delete a"));
  jobs_.outcomes = {{"u", OkStatus()}};
  jobs_.job.reset();
  Turns(4);
  EXPECT_THAT(jobs_.calls, ElementsAre("delete a", "create v a"));
}

TEST_F(ControllerTest, AJobThatRunsIsLeftAloneWhenItsObjectLosesTheFinalizerAndGoes) {
  Run();
  server_.read = {.lines = {Json{{"type", "DELETED"}, {"object", server_.object}}.dump()}};
  testing::internal::CaptureStderr();
  Turns(3);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("TroupeJob a is gone without its finalizer; its job a is left as it is"));
  EXPECT_TRUE(jobs_.calls.empty());
}

TEST_F(ControllerTest, ARejectedObjectIsReleasedAndGetsTheFinalizerBeforeTheNextTry) {
  Turns(4);
  ASSERT_THAT(jobs_.calls, ElementsAre("create u a"));
  jobs_.outcomes = {{"u", InvalidArgument("no such data")}};
  Turns(3);
  EXPECT_EQ(State(), "REJECTED");
  EXPECT_EQ(server_.object["metadata"]["finalizers"], Json::array());
  Turns(310);
  EXPECT_EQ(jobs_.calls.size(), 2u);
  EXPECT_EQ(server_.object["metadata"]["finalizers"], Json::array({std::string(kFinalizer)}));
}

TEST_F(ControllerTest, LostRightsAreNamedWithWhatHelps) {
  Run();
  SendDeletion();
  jobs_.job.reset();
  server_.refusal = {.code = HttpCode::kForbidden, .body = R"({"message": "forbidden"})"};
  testing::internal::CaptureStderr();
  Turns(3);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("HTTP 403: forbidden; the coordinator has lost its rights: apply "));
}

TEST_F(ControllerTest, ADeletedObjectIsReleasedWhenItsJobIsGone) {
  Run();
  SendDeletion();
  Turns(2);
  EXPECT_THAT(jobs_.calls, ElementsAre("cancel --checkpoint a"));
  jobs_.outcomes = {{"u", OkStatus()}};
  jobs_.job->state = v1::JOB_STATE_CANCELLED;
  Turns(2);
  EXPECT_THAT(jobs_.calls, ElementsAre("cancel --checkpoint a", "delete a"));
  jobs_.outcomes = {{"u", OkStatus()}};
  jobs_.job.reset();
  Turns(3);
  EXPECT_EQ(server_.object["metadata"]["finalizers"], Json::array());
}

TEST_F(ControllerTest, AnObjectThatIsDeletedWhileItsJobIsRefusedIsReleasedAtOnce) {
  Turns(4);
  ASSERT_THAT(jobs_.calls, ElementsAre("create u a"));
  SendDeletion();
  Turns(2);
  EXPECT_NE(server_.object["metadata"]["finalizers"], Json::array()) << "the call has not ended";
  jobs_.outcomes = {{"u", InvalidArgument("no such data")}};
  Turns(4);
  EXPECT_EQ(server_.object["metadata"]["finalizers"], Json::array());
}

TEST_F(ControllerTest, ADeletionThatIsSentAgainIsNotThatOfALaterObject) {
  Run();
  Json former = server_.object;
  former["metadata"]["resourceVersion"] = "2";
  server_.read = {.lines = {Json{{"type", "DELETED"}, {"object", former}}.dump()}};
  Turns(2);
  jobs_.job->state = v1::JOB_STATE_RECOVERING;
  Turns(2);
  EXPECT_EQ(State(), "RECOVERING");
}

}  // namespace
}  // namespace troupe
