#include "plan/job/job_resource.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace troupe {
namespace {

TEST(JobResourceTest, AKeyHasItsTypeRangeWordsAndMeaning) {
  const nlohmann::ordered_json job = JobKeysSchema();
  const nlohmann::ordered_json& properties = job["properties"];
  EXPECT_EQ(properties["training"]["properties"]["steps"],
            (nlohmann::ordered_json{{"type", "integer"},
                                    {"format", "int64"},
                                    {"minimum", 1},
                                    {"maximum", int64_t{1} << 40},
                                    {"description", "Steps of the job. Default: 1000."}}));
  EXPECT_EQ(properties["devices"]["enum"], (nlohmann::ordered_json{"cpu", "cuda", "xla"}));
  const nlohmann::ordered_json& theta = properties["model"]["properties"]["rope_theta"];
  EXPECT_EQ(theta["type"], "number");
  EXPECT_EQ(theta["minimum"], 0.0);
  EXPECT_EQ(theta["exclusiveMinimum"], true);
  EXPECT_EQ(properties["priority"]["format"], "int32");
}

TEST(JobResourceTest, ListsHaveItemsAndRequiredKeysAreRequired) {
  const nlohmann::ordered_json job = JobKeysSchema();
  const nlohmann::ordered_json& blend = job["properties"]["data"]["properties"]["blend"];
  EXPECT_EQ(blend["type"], "array");
  EXPECT_EQ(blend["items"]["type"], "object");
  EXPECT_THAT(blend["items"]["required"], testing::Contains("path"));
  EXPECT_FALSE(job.contains("required"));  // the object's name is the default of spec.job.name
}

// Tests run in the root of the source tree.
TEST(JobResourceTest, TheManifestIsThisDefinition) {
  std::ifstream file("deploy/kubernetes/components/jobs-crd/definition.yaml");
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), JobResourceDefinition())
      << "make it again: troupe keys --kubernetes > "
         "deploy/kubernetes/components/jobs-crd/definition.yaml";
}

}  // namespace
}  // namespace troupe
