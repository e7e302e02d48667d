#include "coordinator/kubernetes/troupe_job.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Json SentObject() {
  return Json::parse(R"({
    "metadata": {"name": "a", "namespace": "troupe", "uid": "u", "resourceVersion": "7",
                 "generation": 2, "finalizers": ["other", "troupe.dev/job"]},
    "spec": {"job": {"training": {"steps": 5}}, "suspend": true, "cancelPolicy": "Abort"},
    "status": {"state": "RUNNING", "jobName": "a", "step": 4,
               "conditions": [{"type": "Accepted", "status": "True", "reason": "Created",
                               "message": "", "lastTransitionTime": "2026-11-26T00:00:00Z"}]}})");
}

TEST(TroupeJobTest, AnObjectIsRead) {
  const auto object = ParseTroupeJob(SentObject());
  ASSERT_TRUE(object.ok());
  EXPECT_EQ(object->name, "a");
  EXPECT_EQ(object->generation, 2);
  EXPECT_TRUE(object->suspend);
  EXPECT_TRUE(object->aborts);
  EXPECT_TRUE(object->has_finalizer());
  EXPECT_FALSE(object->is_deleted);
  EXPECT_EQ(object->status.step, 4);
  EXPECT_TRUE(object->status.Holds(kAcceptedCondition));
  const auto job = JobOf(*object);
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->name(), "a");
  EXPECT_EQ(job->training().steps(), 5);
}

TEST(TroupeJobTest, FieldsOfOtherTypesAreAsIfAbsent) {
  Json object = SentObject();
  object["spec"] = "text";
  object["status"] = Json::array({1});
  object["metadata"]["finalizers"] = 3;
  const auto parsed = ParseTroupeJob(object);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->job, "{}");
  EXPECT_EQ(parsed->status.state, "");
  object["metadata"] = nullptr;
  EXPECT_FALSE(ParseTroupeJob(object).ok());
  EXPECT_FALSE(ParseTroupeJob(Json::parse("{", nullptr, false)).ok());
}

TEST(TroupeJobTest, AJobOfAMillionLevelsIsRefused) {
  Json job = Json::object();
  for (int level = 0; level < 1'000'000; ++level) {
    Json outer;
    outer["a"] = std::move(job);
    job = std::move(outer);
  }
  Json object = SentObject();
  object["spec"]["job"] = std::move(job);
  const auto parsed = ParseTroupeJob(object);
  ASSERT_FALSE(parsed.ok());
  EXPECT_THAT(std::string(Message(parsed.status())), HasSubstr("levels"));
}

TEST(TroupeJobTest, ANameThatWouldLeadToAnotherPathIsRefused) {
  for (const char* field : {"name", "namespace", "resourceVersion"}) {
    for (const char* text : {"", "..", "../pods/b", "a?force=true", "a#b", "a b", "a%2F"}) {
      Json object = SentObject();
      object["metadata"][field] = text;
      const auto parsed = ParseTroupeJob(object);
      ASSERT_FALSE(parsed.ok()) << field << ": " << text;
      EXPECT_THAT(std::string(Message(parsed.status())),
                  HasSubstr(fmt::format("metadata.{} of an object is \"{}\"", field, text)));
    }
  }
}

TEST(TroupeJobTest, AnUnknownKeyIsNamed) {
  Json object = SentObject();
  object["spec"]["job"] = {{"trainig", {{"steps", 5}}}};
  const auto job = JobOf(*ParseTroupeJob(object));
  ASSERT_FALSE(job.ok());
  EXPECT_THAT(std::string(Message(job.status())), HasSubstr("trainig"));
}

// kubectl with --validate=false: the API server stores what the definition declares.
TEST(TroupeJobTest, KeysThatTheServerDroppedAreFoundInWhatKubectlApplied) {
  const auto dropped = [](const std::string& applied) {
    Json object = SentObject();
    object["spec"].erase("cancelPolicy");  // removed since
    object["spec"]["job"]["list"] = {{{"a", 1}}};
    object["metadata"]["annotations"] = {
        {"kubectl.kubernetes.io/last-applied-configuration", applied}};
    return ParseTroupeJob(object)->dropped;
  };
  EXPECT_THAT(dropped(R"({"spec": {"suspend": false, "cancelPolicy": "Abort",
                          "job": {"training": {"steps": 9, "seed": null}, "list": [{"a": 1}]}}})"),
              IsEmpty());
  EXPECT_THAT(dropped(R"({"spec": {"suspendd": true, "job": {"trainig": {"steps": 9},
                          "training": {"stepz": 9}, "list": [{"b": 1}, {"c": 1}]}}})"),
              ElementsAre("spec.job.trainig", "spec.job.training.stepz", "spec.job.list[0].b",
                          "spec.suspendd"));
  for (const char* const text : {"", "{", "[]", "7", R"({"spec": 1})", R"({"spec": {"job": []}})"})
    EXPECT_THAT(dropped(text), IsEmpty()) << text;
  std::string many = R"({"spec": {"job": {)";
  for (int i = 0; i < 100; ++i) many += fmt::format(R"("key{}": 1, )", i);
  EXPECT_EQ(dropped(many + R"("last": 1}}})").size(), 5u);
}

TEST(TroupeJobTest, AStatusIsReadAsItWasWritten) {
  Json object = SentObject();
  const TroupeJobStatus status = ParseTroupeJob(object)->status;
  object["status"] = StatusToJson(status);
  EXPECT_EQ(StatusToJson(ParseTroupeJob(object)->status), StatusToJson(status));
  EXPECT_FALSE(StatusToJson(status).contains("loss"));
}

TEST(TroupeJobTest, TextIsCutBetweenCharacters) {
  EXPECT_EQ(Shorten("abc", 5), "abc");
  EXPECT_EQ(Shorten("aä", 2), "a");
  EXPECT_EQ(Shorten("aä", 3), "aä");
}

}  // namespace
}  // namespace troupe
