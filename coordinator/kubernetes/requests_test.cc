#include "coordinator/kubernetes/requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

TroupeJob NamedObject() {
  return {.name = "a",
          .space = "lab",
          .uid = "u",
          .resource_version = "7",
          .finalizers = {"other", std::string(kFinalizer)}};
}

TEST(RequestsTest, AStatusIsAppliedToItsSubresourceForOneObject) {
  const ApiRequest request = StatusRequest(NamedObject(), {.state = "RUNNING"});
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.path,
            "/apis/troupe.dev/v1alpha1/namespaces/lab/troupejobs/a/status"
            "?fieldManager=troupe-coordinator&force=true");
  EXPECT_EQ(request.content_type, "application/apply-patch+yaml");
  const Json body = Json::parse(request.body);
  EXPECT_EQ(body["metadata"]["uid"], "u");
  EXPECT_EQ(body["status"]["state"], "RUNNING");
}

TEST(RequestsTest, TheFinalizerIsTestedBeforeItIsRemoved) {
  const Json operations = Json::parse(RemoveFinalizerRequest(NamedObject()).body);
  EXPECT_EQ(operations, Json::parse(R"([
    {"op": "test", "path": "/metadata/finalizers/1", "value": "troupe.dev/job"},
    {"op": "remove", "path": "/metadata/finalizers/1"}])"));
  TroupeJob object = NamedObject();
  object.finalizers.pop_back();
  const Json added = Json::parse(AddFinalizerRequest(object).body);
  EXPECT_EQ(added[0]["value"], "7");
  EXPECT_EQ(added[1]["value"], Json({"other", "troupe.dev/job"}));
}

TEST(RequestsTest, AnEventKeepsTheLimitsOfTheServer) {
  TroupeJob object = NamedObject();
  object.name = std::string(300, 'n');
  const ApiRequest request =
      EventRequest(object, {.is_warning = true, .reason = "Failed", .note = std::string(3000, 'x')},
                   "pod-0", 1'764'115'200'123'456'789);
  const Json body = Json::parse(request.body);
  EXPECT_EQ(body["eventTime"], "2025-11-26T00:00:00.123456Z");
  EXPECT_EQ(body["metadata"]["name"].get<std::string>().size(), 253u);
  EXPECT_EQ(body["note"].get<std::string>().size(), 1024u);
  EXPECT_EQ(body["type"], "Warning");
  EXPECT_EQ(body["regarding"]["uid"], "u");
}

TEST(RequestsTest, ANoteIsOneLineWithoutControlCharacters) {
  const auto note = [](const std::string& text) {
    const ApiRequest request =
        EventRequest(NamedObject(), {.reason = "Moving", .note = text}, "pod-0", 1);
    return Json::parse(request.body)["note"].get<std::string>();
  };
  EXPECT_EQ(note("leaves \x1b[2Jworker-1\nforged\xe9"), "leaves \\u001b[2Jworker-1\\nforged\\xe9");
  EXPECT_EQ(note(std::string(1000, '\n')).size(), 1024u);
}

TEST(RequestsTest, AnErrorIsTheMessageOfTheServer) {
  EXPECT_EQ(ErrorText({.code = 403, .body = R"({"message": "forbidden"})"}), "HTTP 403: forbidden");
  EXPECT_EQ(ErrorText({.code = 502, .body = "<html>"}), "HTTP 502: <html>");
  EXPECT_EQ(ErrorText({.error = "Connection refused"}), "Connection refused");
}

}  // namespace
}  // namespace troupe
