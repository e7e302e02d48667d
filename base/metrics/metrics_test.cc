#include "base/metrics/metrics.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <limits>
#include <vector>

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;
using std::chrono_literals::operator""s;

using Job = Label<"job_name">;
using Method = Label<"method">;
using Rank = Label<"rank">;

constexpr Counter<> kTotal{"troupe_x_total", MetricUnit::kNone, "Number of x"};
constexpr Counter<Job> kJobTotal{"troupe_j_total", MetricUnit::kNone, "Number of j"};
constexpr Counter<Job, Method> kMethods{"troupe_c_total", MetricUnit::kNone, "Number of c"};
constexpr Gauge<> kValue{"troupe_y", MetricUnit::kNone, "Current y"};
constexpr Gauge<Job, Rank> kRanks{"troupe_g", MetricUnit::kNone, "Current g"};
constexpr Histogram<> kDuration{"troupe_z_seconds", MetricUnit::kSeconds, "Duration of z"};
constexpr Histogram<Job> kJobDuration{"troupe_h_seconds", MetricUnit::kSeconds, "Duration of h"};

template <typename... Arguments>
concept CanAdd = requires(Metrics& metrics, const Arguments&... arguments) {
  metrics.Add(arguments...);
};
static_assert(CanAdd<Counter<Job, Method>, int, Job, Method>);
static_assert(!CanAdd<Counter<Job, Method>, int, Job>, "a label is missing");
static_assert(!CanAdd<Counter<Job>, int, Job, Method>, "a label is not declared");
static_assert(!CanAdd<Counter<Job, Method>, int, Method, Job>, "labels are swapped");
static_assert(!CanAdd<Counter<Job>, int, std::string>, "the label is not named");
static_assert(!CanAdd<Gauge<Job>, int, Job>, "a gauge is not a counter");

TEST(Metrics, ServesHelpTextsWithTheirUnitsAndValues) {
  Metrics metrics;
  metrics.Add(kJobTotal, 2, Job("a"));
  metrics.Add(kJobTotal, 3, Job("a"));
  metrics.Set(kValue, 7);
  metrics.Observe(kDuration, 0.75);
  const std::string text = metrics.ToText();
  EXPECT_THAT(text, HasSubstr("# HELP troupe_j_total Number of j.\n# TYPE troupe_j_total counter"));
  EXPECT_THAT(text, HasSubstr("troupe_j_total{job_name=\"a\"} 5"));
  EXPECT_THAT(text, HasSubstr("troupe_y 7"));
  EXPECT_THAT(text, HasSubstr("# HELP troupe_z_seconds Duration of z, in seconds.\n"));
  EXPECT_THAT(text, HasSubstr("troupe_z_seconds_bucket{le=\"0.5\"} 0"));
  EXPECT_THAT(text, HasSubstr("troupe_z_seconds_bucket{le=\"1\"} 1"));
}

TEST(Metrics, AnEmptyLabelIsLeftOut) {
  Metrics metrics;
  metrics.Add(kMethods, 1, Job(""), Method("x"));
  EXPECT_THAT(metrics.ToText(), HasSubstr("troupe_c_total{method=\"x\"} 1"));
}

TEST(Metrics, ObservationsMadeElsewhereAreAddedBucketByBucket) {
  Metrics metrics;
  constexpr double kBounds[] = {0.1, 1.0};
  metrics.ObserveMany(kDuration, {kBounds, std::vector<double>{2, 1, 4}, 20.5});
  metrics.ObserveMany(kDuration, {kBounds, std::vector<double>{1, 0, 0}, 0.05});
  const std::string text = metrics.ToText();
  EXPECT_THAT(text, HasSubstr("troupe_z_seconds_bucket{le=\"0.1\"} 3"));
  EXPECT_THAT(text, HasSubstr("troupe_z_seconds_bucket{le=\"1\"} 4"));
  EXPECT_THAT(text, HasSubstr("troupe_z_seconds_count 8"));
  EXPECT_THAT(text, HasSubstr("troupe_z_seconds_sum 20.55"));
}

TEST(Metrics, DropsWhatIsNotFiniteAndWhatWouldMakeACounterFall) {
  Metrics metrics;
  metrics.Add(kTotal, 1);
  metrics.Add(kTotal, -5);
  metrics.Add(kTotal, std::numeric_limits<double>::quiet_NaN());
  metrics.Set(kValue, 4);
  metrics.Set(kValue, std::numeric_limits<double>::infinity());
  EXPECT_THAT(metrics.ToText(), HasSubstr("troupe_x_total 1"));
  EXPECT_THAT(metrics.ToText(), HasSubstr("troupe_y 4"));
}

TEST(Metrics, ARemovedSeriesIsGone) {
  Metrics metrics;
  metrics.Set(kRanks, 4, Job("a"), Rank("0"));
  metrics.Remove(kRanks, Job("a"), Rank("0"));
  metrics.Remove(kRanks, Job("b"), Rank("0"));
  EXPECT_THAT(metrics.ToText(), Not(HasSubstr("job_name=\"a\"")));
}

TEST(Metrics, SeriesOfALabelGoOfEveryKindAndOthersStay) {
  Metrics metrics;
  for (const char* name : {"a", "ab"}) {
    const Job job(name);
    metrics.Add(kMethods, 1, job, Method("x"));
    metrics.Set(kRanks, 1, job, Rank("0"));
    metrics.Set(kRanks, 1, job, Rank("1"));
    metrics.Observe(kJobDuration, 1.5, job);
  }
  metrics.RemoveSeries(Job("a"));
  const std::string text = metrics.ToText();
  EXPECT_EQ(text.find("job_name=\"a\""), std::string::npos) << text;
  EXPECT_THAT(text, HasSubstr("troupe_c_total{job_name=\"ab\",method=\"x\"} 1"));
  EXPECT_THAT(text, HasSubstr("troupe_g{job_name=\"ab\",rank=\"1\"} 1"));
  EXPECT_THAT(text, HasSubstr("troupe_h_seconds_count{job_name=\"ab\"} 1"));
  // A new job of that name starts from zero.
  metrics.Add(kMethods, 1, Job("a"), Method("x"));
  EXPECT_THAT(metrics.ToText(), HasSubstr("troupe_c_total{job_name=\"a\",method=\"x\"} 1"));
}

TEST(MetricsServer, RefusesAnAddressThatIsTaken) {
  Metrics metrics;
  auto first = MetricsServer::Start(metrics, "127.0.0.1:0");
  ASSERT_TRUE(first.ok()) << ToString(first.status());
  ASSERT_GT((*first)->port(), 0);
  const auto second = MetricsServer::Start(metrics, fmt::format("127.0.0.1:{}", (*first)->port()));
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
}

// A connection to `port` on which reading waits 10 s at most.
int Connect(int port) {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_GE(descriptor, 0);
  const timeval limit{.tv_sec = 10, .tv_usec = 0};
  EXPECT_EQ(setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return descriptor;
}

// There are more of them than the server has threads.
TEST(MetricsServer, ConnectionsThatSendNothingKeepNobodyFromAnAnswer) {
  const Metrics metrics;
  auto server = MetricsServer::Start(metrics, "127.0.0.1:0", [] { return 1.5s; });
  ASSERT_TRUE(server.ok()) << ToString(server.status());
  std::vector<int> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(Connect((*server)->port()));
  const int descriptor = Connect((*server)->port());
  const std::string request = "GET /health HTTP/1.0\r\n\r\n";
  ASSERT_EQ(write(descriptor, request.data(), request.size()),
            static_cast<ssize_t>(request.size()));
  char bytes[4096];
  const ssize_t got = read(descriptor, bytes, sizeof(bytes));
  EXPECT_GT(got, 0) << "no answer within 10 s";
  close(descriptor);
  for (const int each : silent) close(each);
}

TEST(MetricsServer, AnswersOverHttp) {
  Metrics metrics;
  metrics.Set(kValue, 4);
  auto server = MetricsServer::Start(metrics, "127.0.0.1:0");
  ASSERT_TRUE(server.ok()) << ToString(server.status());
  const int descriptor = Connect((*server)->port());
  const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
  ASSERT_EQ(write(descriptor, request.data(), request.size()),
            static_cast<ssize_t>(request.size()));
  std::string response;
  char bytes[4096];
  // The server keeps the connection open for a while; the last line is enough.
  for (ssize_t got = 0; response.find("troupe_y 4") == std::string::npos &&
                        (got = read(descriptor, bytes, sizeof(bytes))) > 0;) {
    response.append(bytes, static_cast<size_t>(got));
  }
  close(descriptor);
  EXPECT_THAT(response, HasSubstr("200 OK"));
  EXPECT_THAT(response, HasSubstr("troupe_y 4"));
}

}  // namespace
}  // namespace troupe
