#include "base/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::Not;

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

}  // namespace
}  // namespace troupe
