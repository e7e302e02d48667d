// Compares pages with golden files. To accept a change, run with TROUPE_UPDATE_GOLDEN=1 and look at
// the pages in a browser.
#include "report/report_html.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <limits>
#include <regex>
#include <set>
#include <string>

#include "base/golden/golden_file.h"
#include "plan/job/job_defaults.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kPlan = R"(
  mesh { pipe: 2 data_replicate: 1 data_shard: 1 context: 1 expert: 1 tensor: 1 }
  ranks { rank: 0 worker: "worker-0" host: "a" coordinates { pipe: 0 } }
  ranks { rank: 1 worker: "worker-1" host: "b" coordinates { pipe: 1 } }
  chunks { chunk: 0 pipe_rank: 0 block_count: 4 has_embedding: true parameters: 1541888
           forward_flops: 1.64e9 blocks: "ADAD" }
  chunks { chunk: 1 pipe_rank: 1 first_block: 4 block_count: 4 has_head: true parameters: 1542144
           forward_flops: 1.71e9 blocks: "ADAD" }
  schedule { name: "1F1B" microbatches: 2 bubble_ratio: 0.333
             ranks { actions: ["F0.0", "F0.1", "B0.0", "B0.1"] peak_live_activations: 2 }
             ranks { actions: ["F1.0", "B1.0", "F1.1", "B1.1"] peak_live_activations: 1 } }
  memory { parameter_bytes: 6000000 gradient_bytes: 6000000 optimizer_bytes: 12000000
           saved_bytes: 3000000 total_bytes: 27000000 }
  memory { parameter_bytes: 6000000 gradient_bytes: 6000000 optimizer_bytes: 12000000
           saved_bytes: 1000000 total_bytes: 25000000 }
  traffic { axis: "pipe" purpose: "pipe" bytes_per_step: 2100000 }
  model_flops_per_step: 40.3e9 parameters: 3084032 imbalance: 1.019 digest: "sha256:1234"
  warnings: "a <b>warning</b>"
)";

constexpr const char* kReceipt = R"(
  plan_digest: "sha256:1234"
  steady { steps: 4 seconds: 2 tokens_per_second: 2048 mfu: 0.25
           mean { data_wait_seconds: 0.05 core_wait_seconds: 0.01
                  communication { purpose: "pipe" exposed: 0.1 total: 0.2 } } }
  other_plans { plan_digest: "sha256:abcdef0123456789"
                steady { steps: 2 seconds: 1.5 mean { data_wait_seconds: 0.1 } } }
)";

// Two ranks, whose clocks differ by a second.
constexpr const char* kTrace = R"(
  ranks { rank: 0 realtime_offset_ns: 1000000000 names: ["step 6", "F0.0", "B0.0", "update"]
          events { kind: STEP name: 0 step: 6 begin_ns: 0 duration_ns: 100000000 }
          events { kind: ACTION name: 1 step: 6 begin_ns: 1000000 duration_ns: 30000000 }
          events { kind: ACTION name: 2 step: 6 begin_ns: 40000000 duration_ns: 40000000 }
          events { kind: ACTION name: 3 step: 6 begin_ns: 85000000 duration_ns: 10000000 } }
  ranks { rank: 1 realtime_offset_ns: 0
          names: ["step 6", "F1.0", "B1.0", "receive 1.0", "receive 1.1"]
          events { kind: STEP name: 0 step: 6 begin_ns: 1000000000 duration_ns: 100000000 }
          events { kind: ACTION name: 3 step: 6 chunk: 1 begin_ns: 1000000000
                   duration_ns: 31000000 }
          events { kind: ACTION name: 1 step: 6 chunk: 1 begin_ns: 1031000000
                   duration_ns: 4000000 }
          events { kind: ACTION name: 2 step: 6 chunk: 1 begin_ns: 1035000000
                   duration_ns: 5000000 }
          events { kind: ACTION name: 4 step: 6 chunk: 1 begin_ns: 1040000000
                   duration_ns: 10000000 } }
)";

template <typename Message>
Message Parsed(const char* text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message));
  return message;
}

v1::JobEvent EventOf(const char* word, const char* message, int64_t step, int64_t milliseconds) {
  v1::JobEvent event;
  event.set_event(word);
  event.set_message(message);
  event.set_step(step);
  event.set_wall_time_ns(1'700'000'000'000'000'000 + milliseconds * 1'000'000);
  return event;
}

JobReport Report() {
  JobReport report;
  report.job.set_name("jobs/<script>alert(1)</script>");
  report.job.set_state(v1::JOB_STATE_RUNNING);
  report.job.set_step(6);
  report.job.set_steps(12);
  report.job.set_restarts(1);
  report.job.set_create_wall_time_ns(1'700'000'000'000'000'000);
  *report.job.mutable_plan() = Parsed<v1::Plan>(kPlan);
  for (int number = 1; number <= 6; ++number) {
    v1::StepEvent& step = report.steps.emplace_back();
    step.set_step(number);
    step.set_loss(number == 3 ? std::numeric_limits<double>::quiet_NaN() : 5.0 / number);
    step.set_grad_norm(1.0 / number);
    step.set_tokens(1024);
    step.set_learning_rate(0.001 * number);
    step.set_tokens_per_second(2000 + number);
    step.set_mfu(0.2 + 0.01 * number);
    if (number % 2 == 0) step.set_validation_loss(5.5 / number);
    step.set_wall_time_ns(1'700'000'001'000'000'000 + number * int64_t{1'000'000'000});
  }
  report.events = {EventOf("STARTED", "2 ranks run from step 1", 0, 1000),
                   EventOf("CHECKPOINT_COMMITTED", "attempt 1", 4, 5500),
                   EventOf("RECOVERED", "<img src=x>", 5, 6500)};
  report.receipt = Parsed<v1::Receipt>(kReceipt);
  report.receipt_rows = {{"suspect", "none"},
                         {"job", report.job.name()},
                         {"environment.devices", "2 x <processor>"},
                         {"steady.mfu", "0.25"},
                         {"steady.mfu_convention", "troupe-1"}};
  report.trace = Parsed<v1::TraceJobResponse>(kTrace);
  return report;
}

v1::JobSpec SpecOf(const char* name) {
  v1::JobSpec spec;
  spec.set_name(name);
  ApplyDefaults(&spec);
  return spec;
}

std::string PlanPage(const v1::Plan& plan) { return PlanHtml(SpecOf("a"), plan, nullptr, ""); }

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(ReportHtmlTest, AReportIsGolden) {
  ExpectGolden("report/golden/report.html", ReportHtml(Report()));
}

TEST(ReportHtmlTest, APlanIsGolden) {
  const StepTime time = {.seconds = 0.5, .bubble_ratio = 0.25, .mfu = 0.4};
  ExpectGolden(
      "report/golden/plan.html",
      PlanHtml(SpecOf("</title><script>"), Parsed<v1::Plan>(kPlan), &time, "a fault costs 3 s"));
}

TEST(ReportHtmlTest, NoTextOfAJobBecomesMarkup) {
  const std::string html = ReportHtml(Report());
  for (const char* markup : {"<script", "<img", "<b>warning"}) {
    EXPECT_THAT(html, Not(HasSubstr(markup)));
  }
  EXPECT_THAT(html, HasSubstr("<h1>jobs/&lt;script&gt;alert(1)&lt;/script&gt;</h1>"));
}

TEST(ReportHtmlTest, APageLoadsNothing) {
  const std::string html = ReportHtml(Report());
  for (const char* part : {"http:", "https:", "src=\"", "href", "url(", "@import"}) {
    EXPECT_THAT(html, Not(HasSubstr(part)));
  }
  EXPECT_THAT(html, HasSubstr("default-src &#39;none&#39;"));
}

TEST(ReportHtmlTest, BothAxesHaveMarksOfCheckpointsAndRecoveries) {
  const std::string html = ReportHtml(Report());
  // Each axis has five charts.
  EXPECT_EQ(Count(html, "<line class=\"checkpoint\""), 10u);
  EXPECT_EQ(Count(html, "<line class=\"recovery\""), 10u);
  EXPECT_THAT(html, HasSubstr("over time since submission"));
}

TEST(ReportHtmlTest, CurvesOfOnlySomeStepsAreNotedAsSuch) {
  JobReport report = Report();
  EXPECT_THAT(ReportHtml(report), Not(HasSubstr("The curves show")));
  report.trained_tokens = 6 * 1024;
  report.all_steps = 6;
  EXPECT_THAT(ReportHtml(report), Not(HasSubstr("The curves show")));
  report.all_steps = 20'000;
  EXPECT_EQ(Count(ReportHtml(report), "<p class=\"note\">The curves show 6 of 20000 steps.</p>"),
            1u);
}

TEST(ReportHtmlTest, MfuThatIsNotMeasuredIsOneLineInsteadOfEmptyCharts) {
  EXPECT_THAT(ReportHtml(Report()), Not(HasSubstr("--measure-peak")));
  JobReport report = Report();
  report.receipt->mutable_steady()->clear_mfu();
  EXPECT_EQ(Count(ReportHtml(report), "troupe-worker --measure-peak --data-dir DIR"), 1u)
      << "only the receipt has none";
  for (v1::StepEvent& step : report.steps) step.clear_mfu();
  const std::string html = ReportHtml(report);
  EXPECT_THAT(html, Not(HasSubstr("MFU (%)")));
  EXPECT_THAT(html, Not(HasSubstr("steady.mfu")));
  EXPECT_EQ(Count(html, "troupe-worker --measure-peak --data-dir DIR"), 1u);
  EXPECT_GT(html.find("id=\"receipt\""), html.find("--measure-peak")) << "it is with the curves";
}

TEST(ReportHtmlTest, ValidationLossesAreDots) {
  const std::string html = ReportHtml(Report());
  // The steps 2, 4 and 6 have one, on each axis.
  EXPECT_EQ(Count(html, "<circle class=\"dot s1\""), 6u);
  EXPECT_THAT(html, HasSubstr("<title>step 6: 0.9167</title>"));
  EXPECT_EQ(Count(html, "class=\"series s1 sparse\""), 2u);
  EXPECT_EQ(Count(html, "class=\"swatch s1 round\""), 2u);
}

TEST(ReportHtmlTest, AStepTimeIsDividedWithoutCountingAnythingTwice) {
  const std::string html = ReportHtml(Report());
  EXPECT_THAT(html, HasSubstr("newest plan: 500 ms"));
  EXPECT_THAT(html, HasSubstr("computation and the rest: 350 ms"));
  EXPECT_THAT(html, HasSubstr("communication: pipe: 100 ms"));
  EXPECT_THAT(html, HasSubstr("sha256:abcdef01: 750 ms"));
}

TEST(ReportHtmlTest, ATraceIsDrawnOnTheClockThatTheRanksShare) {
  const std::string html = ReportHtml(Report());
  EXPECT_THAT(html, HasSubstr("Schedule as it ran: step 6"));
  // F1.0 begins 31 ms after the step, where F0.0 has ended; the last action ends after 95 ms.
  const double scale = 910.0 / 0.095;
  EXPECT_THAT(html, HasSubstr("x=\"" + Coordinate(90 + 0.031 * scale) + "\""));
  EXPECT_THAT(html, HasSubstr("between phases: 20 ms"));
  // The colours of the phases are those of the timeline.
  EXPECT_EQ(Count(html, "<span class=\"swatch c4\"></span>\nreceive</span>"), 2u);
  JobReport without = Report();
  without.trace.Clear();
  EXPECT_THAT(ReportHtml(without), Not(HasSubstr("as it ran")));
}

TEST(ReportHtmlTest, AllReceivesAreOneEntry) {
  const std::string html = ReportHtml(Report());
  EXPECT_EQ(Count(html, "<span class=\"item\" title=\"receive\">"), 2u) << "timeline and phases";
  EXPECT_THAT(html, HasSubstr("<title>receive: 41 ms</title>"));
  EXPECT_EQ(Count(html, "<th>receive</th>"), 1u);
  // A block of the timeline has its own name.
  EXPECT_THAT(html, HasSubstr("<title>receive 1.1</title>"));
  EXPECT_THAT(html, Not(HasSubstr("<th>receive 1.1</th>")));
}

TEST(ReportHtmlTest, WhyTheFiguresMayMisleadIsAboveThem) {
  JobReport report = Report();
  report.receipt->add_suspect("4 <steady> steps");
  const std::string html = ReportHtml(report);
  const size_t suspicion = html.find(
      "<div class=\"banner\" role=\"note\"><strong>The figures may mislead, for 1 reason</strong>\n"
      "<ul><li>4 &lt;steady&gt; steps</li>\n");
  ASSERT_NE(suspicion, std::string::npos);
  EXPECT_LT(suspicion, html.find("tokens/s, steady"));
  EXPECT_THAT(ReportHtml(Report()), Not(HasSubstr("role=\"note\"")));
}

TEST(ReportHtmlTest, PartsHaveIdsThatOccurOnce) {
  const std::string html = ReportHtml(Report());
  for (const char* part : {"summary", "steps", "step-time", "pipeline", "layout", "stages",
                           "memory", "events", "receipt"}) {
    EXPECT_THAT(html, HasSubstr(std::string("<section id=\"") + part + "\">"));
  }
  const std::regex id(" id=\"([^\"]*)\"");
  std::set<std::string> seen;
  for (std::sregex_iterator found(html.begin(), html.end(), id), end; found != end; ++found) {
    EXPECT_TRUE(seen.insert((*found)[1]).second) << (*found)[1];
  }
}

TEST(ReportHtmlTest, NoElementHasAStyleOfItsOwn) {
  for (const std::string& html : {ReportHtml(Report()), PlanPage(Parsed<v1::Plan>(kPlan))}) {
    EXPECT_THAT(html, Not(HasSubstr(" style=")));
  }
}

TEST(ReportHtmlTest, AStepWithoutATargetHasNoLoss) {
  JobReport report = Report();
  report.steps[3].set_loss(std::numeric_limits<double>::quiet_NaN());
  report.steps[3].set_tokens(0);
  const std::string html = ReportHtml(report);
  EXPECT_EQ(Count(html, "<p class=\"note\">1 step has no loss</p>"), 2u) << "on each axis";
  EXPECT_EQ(Count(html, "1 value is not finite"), 2u) << "step 3, which has targets";
  report.steps.resize(4);
  EXPECT_THAT(ReportHtml(report), HasSubstr("none, without a target"));
}

TEST(ReportHtmlTest, AJobThatHasNotStartedHasAReport) {
  JobReport report;
  report.job.set_name("jobs/a");
  report.job.set_state(v1::JOB_STATE_QUEUED);
  report.job.set_waiting_for("2 devices");
  const std::string html = ReportHtml(report);
  EXPECT_THAT(html, HasSubstr("There are no steps yet."));
  EXPECT_THAT(html, HasSubstr("waits for 2 devices"));
  EXPECT_THAT(html, HasSubstr("The plan has no schedule that can be drawn."));
}

TEST(ReportHtmlTest, TrafficWithinAndAcrossIslandsStatesWhatAnIslandIs) {
  v1::Plan plan = Parsed<v1::Plan>(kPlan);
  EXPECT_THAT(PlanPage(plan), Not(HasSubstr("island")));
  plan.mutable_traffic(0)->set_across_islands_bytes_per_step(1e6);
  const std::string html = PlanPage(plan);
  EXPECT_THAT(html, HasSubstr("across islands"));
  EXPECT_EQ(Count(html, "<p class=\"note\">an island: the workers that the fastest links join"),
            1u);
}

TEST(ReportHtmlTest, APlanWithWrongChunksOrActionsIsDrawnWithoutItsSchedule) {
  v1::Plan plan = Parsed<v1::Plan>(kPlan);
  plan.mutable_chunks(1)->set_pipe_rank(7);
  EXPECT_THAT(PlanPage(plan), HasSubstr("no schedule that can be drawn"));
  plan = Parsed<v1::Plan>(kPlan);
  plan.mutable_schedule()->mutable_ranks(0)->set_actions(0, "<x>");
  EXPECT_THAT(PlanPage(plan), HasSubstr("no schedule that can be drawn"));
}

}  // namespace
}  // namespace troupe
