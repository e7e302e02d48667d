#include "worker/daemon/spot_notice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::ElementsAre;

// 2026-11-26T23:00:00Z, a Thursday.
constexpr int64_t kNow = 1795734000;

TEST(SpotNoticeTest, AwsIsAskedWithATokenAndStatesActionAndTime) {
  SpotConversation aws(SpotProvider::kAws);
  EXPECT_TRUE(aws.Next().is_put);
  EXPECT_EQ(aws.Next().path, "/latest/api/token");
  EXPECT_THAT(aws.Next().headers, ElementsAre("X-aws-ec2-metadata-token-ttl-seconds: 21600"));
  EXPECT_FALSE(aws.Handle({200, "secret"}, kNow)->has_value());
  EXPECT_FALSE(aws.Next().is_put);
  EXPECT_EQ(aws.Next().path, "/latest/meta-data/spot/instance-action");
  EXPECT_THAT(aws.Next().headers, ElementsAre("X-aws-ec2-metadata-token: secret"));
  EXPECT_FALSE(aws.Handle({404, "Not Found"}, kNow)->has_value());
  const auto notice =
      aws.Handle({200, R"({"action": "terminate", "time": "2026-11-26T23:01:30Z"})"}, kNow);
  ASSERT_TRUE(notice.ok() && notice->has_value());
  EXPECT_EQ((*notice)->reason, "a spot notice of aws: terminate");
  EXPECT_EQ((*notice)->left, std::chrono::seconds(90));
}

TEST(SpotNoticeTest, AnExpiredTokenOfAwsIsReplaced) {
  SpotConversation aws(SpotProvider::kAws);
  ASSERT_TRUE(aws.Handle({200, "secret"}, kNow).ok());
  ASSERT_TRUE(aws.Handle({404, ""}, kNow).ok());
  EXPECT_TRUE(aws.Handle({401, ""}, kNow).ok());
  EXPECT_TRUE(aws.Next().is_put);
}

TEST(SpotNoticeTest, ATokenOfAwsThatIsRefusedAtOnceIsAnError) {
  SpotConversation aws(SpotProvider::kAws);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(aws.Handle({200, "secret"}, kNow).ok());
    EXPECT_EQ(aws.Handle({401, ""}, kNow).status().code(), StatusCode::kUnavailable);
    EXPECT_TRUE(aws.Next().is_put);
  }
}

TEST(SpotComplaintsTest, ReasonsThatAlternateAreLoggedOnceInAnInterval) {
  SpotComplaints complaints;
  const MonotonicTime begin{};
  int logged = 0;
  for (int second = 0; second < 1200; ++second) {
    const std::string reason = fmt::format("code 500 and {} bytes", second % 7);
    logged += complaints.IsNews(reason, begin + std::chrono::seconds(second)) ? 1 : 0;
    if (second % 3 == 0) complaints.Succeed();
  }
  EXPECT_EQ(logged, 2);
}

TEST(SpotComplaintsTest, TheSameReasonIsLoggedOnceUntilASuccess) {
  SpotComplaints complaints;
  const MonotonicTime begin{};
  EXPECT_TRUE(complaints.IsNews("it does not answer", begin));
  EXPECT_FALSE(complaints.IsNews("it does not answer", begin + std::chrono::hours(1)));
  complaints.Succeed();
  EXPECT_TRUE(complaints.IsNews("it does not answer", begin + std::chrono::hours(2)));
}

TEST(SpotNoticeTest, ATimeOfAwsThatIsNoneCountsAsTwoMinutes) {
  for (const char* const time : {"", "soon", "2026-11-26T23:01:30Z and more"}) {
    SpotConversation aws(SpotProvider::kAws);
    ASSERT_TRUE(aws.Handle({200, "secret"}, kNow).ok());
    const auto notice =
        aws.Handle({200, fmt::format(R"({{"action": "stop", "time": "{}"}})", time)}, kNow);
    ASSERT_TRUE(notice.ok() && notice->has_value()) << time;
    EXPECT_EQ((*notice)->left, std::chrono::seconds(120)) << time;
  }
}

TEST(SpotNoticeTest, GcpStatesTrueOrFalse) {
  SpotConversation gcp(SpotProvider::kGcp);
  EXPECT_EQ(gcp.Next().path, "/computeMetadata/v1/instance/preempted");
  EXPECT_THAT(gcp.Next().headers, ElementsAre("Metadata-Flavor: Google"));
  EXPECT_FALSE(gcp.Handle({200, "FALSE"}, kNow)->has_value());
  const auto notice = gcp.Handle({200, "TRUE"}, kNow);
  ASSERT_TRUE(notice.ok() && notice->has_value());
  EXPECT_EQ((*notice)->left, std::chrono::seconds(30));
}

TEST(SpotNoticeTest, AzureStatesTheEventsOfSeveralMachines) {
  SpotConversation azure(SpotProvider::kAzure);
  EXPECT_EQ(azure.Next().path,
            "/metadata/instance/compute/name?api-version=2021-02-01&format=text");
  EXPECT_FALSE(azure.Handle({200, "node_1"}, kNow)->has_value());
  EXPECT_EQ(azure.Next().path, "/metadata/scheduledevents?api-version=2020-07-01");
  const auto event = [](const char* type, const char* machine) {
    return fmt::format(R"({{"EventType": "{}", "Resources": ["{}"],
                           "NotBefore": "Thu, 26 Nov 2026 23:00:25 GMT"}})",
                       type, machine);
  };
  const auto document = [](const std::string& events) {
    return MetadataAnswer{200, fmt::format(R"({{"Events": [{}]}})", events)};
  };
  EXPECT_FALSE(azure.Handle(document(""), kNow)->has_value());
  EXPECT_FALSE(azure.Handle(document(event("Freeze", "node_1")), kNow)->has_value());
  EXPECT_FALSE(azure.Handle(document(event("Preempt", "node_2")), kNow)->has_value());
  const auto notice =
      azure.Handle(document(event("Preempt", "node_2") + "," + event("Preempt", "node_1")), kNow);
  ASSERT_TRUE(notice.ok() && notice->has_value());
  EXPECT_EQ((*notice)->reason, "a spot notice of azure: Preempt");
  EXPECT_EQ((*notice)->left, std::chrono::seconds(25));
}

TEST(SpotNoticeTest, AnswersOfAnotherServiceAreErrors) {
  const MetadataAnswer page{200, "<html>Welcome</html>"};
  SpotConversation aws(SpotProvider::kAws);
  EXPECT_EQ(aws.Handle({403, ""}, kNow).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(aws.Handle({200, "a token\r\nX: y"}, kNow).status().code(), StatusCode::kUnavailable);
  ASSERT_TRUE(aws.Handle({200, "secret"}, kNow).ok());
  for (const char* const body : {"", "<html>", "[]", "7", R"({"action": 7})"}) {
    EXPECT_EQ(aws.Handle({200, body}, kNow).status().code(), StatusCode::kUnavailable) << body;
  }
  SpotConversation gcp(SpotProvider::kGcp);
  EXPECT_EQ(gcp.Handle(page, kNow).status().code(), StatusCode::kUnavailable);
  SpotConversation azure(SpotProvider::kAzure);
  EXPECT_EQ(azure.Handle({404, ""}, kNow).status().code(), StatusCode::kUnavailable);
  ASSERT_TRUE(azure.Handle({200, "node_1"}, kNow).ok());
  for (const char* const body : {"", "[]", "{}", R"({"Events": 7})"}) {
    EXPECT_EQ(azure.Handle({200, body}, kNow).status().code(), StatusCode::kUnavailable) << body;
  }
  for (const char* const body : {R"({"Events": [7]})", R"({"Events": [{"EventType": "Preempt"}]})",
                                 R"({"Events": [{"EventType": "Preempt", "Resources": 7}]})"}) {
    const auto notice = azure.Handle({200, body}, kNow);
    EXPECT_TRUE(notice.ok() && !notice->has_value()) << body;
  }
}

TEST(SpotNoticeTest, AProviderIsOneOfThree) {
  EXPECT_EQ(*ParseSpotProvider("azure"), SpotProvider::kAzure);
  EXPECT_EQ(ParseSpotProvider("AWS").status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
