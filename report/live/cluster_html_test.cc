#include "report/live/cluster_html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/golden/golden_file.h"
#include "report/live/live_views_test.h"
#include "report/live/page_tags_test.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kManyJobs = 500;

TEST(ClusterHtmlTest, APageIsGolden) {
  ExpectGolden("report/live/golden/cluster.html", ClusterHtml(ExampleCluster()));
}

TEST(ClusterHtmlTest, APageHasNoScriptStyleOrAddressOfItsOwn) {
  CheckLivePage(ClusterHtml(ExampleCluster()), 1);
  CheckLivePage(ClusterHtml({}), 1);
}

TEST(ClusterHtmlTest, NoTextBecomesMarkup) {
  for (const std::string& text : HostileTexts()) {
    ClusterPageView view;
    view.caller = view.version = view.state_filter = view.namespace_filter = text;
    FillTexts(text, {"spec", "plan"}, &view.jobs.emplace_back());
    FillTexts(text, {"profile"}, &view.workers.emplace_back());
    view.workers[0].mutable_devices(0)->set_cores(1);
    CheckLivePage(ClusterHtml(view), 1);
    view.state_filter.clear();
    view.jobs[0].set_state(v1::JOB_STATE_QUEUED);
    view.jobs[0].clear_moving();
    CheckLivePage(ClusterHtml(view), 1);
    view.jobs_error = view.workers_error = text;
    CheckLivePage(ClusterHtml(view), 1);
  }
}

TEST(ClusterHtmlTest, TextsAreShownAsTheyAre) {
  ClusterPageView view = ExampleCluster();
  view.jobs[0].set_waiting_for("<script>alert('1')</script>\x1b");
  EXPECT_THAT(ClusterHtml(view),
              HasSubstr("<div>&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;\\u001b</div>"));
}

TEST(ClusterHtmlTest, TheOldestJobOfTheQueueIsFirst) {
  const std::string html = ClusterHtml(ExampleCluster());
  const size_t queue = html.find("<section id=\"queue\">");
  ASSERT_NE(queue, std::string::npos);
  const size_t first = html.find(">lab.waits1</a>", queue);
  EXPECT_LT(first, html.find(">lab.waits2</a>", queue));
  EXPECT_LT(first, html.find("<section id=\"jobs\">"));
  EXPECT_THAT(html, HasSubstr("8 ranks need 8 devices; 2 are free"));
}

TEST(ClusterHtmlTest, AQueueOfWhichOnlyAPartIsKnownIsNotShown) {
  ClusterPageView view = ExampleCluster();
  view.state_filter = "FAILED";
  view.jobs = {view.jobs[4]};
  const std::string html = ClusterHtml(view);
  EXPECT_THAT(html, Not(HasSubstr("id=\"queue\"")));
  EXPECT_THAT(html, Not(HasSubstr("jobs that wait"))) << "only the failed jobs are known";
  view.state_filter.clear();
  EXPECT_THAT(ClusterHtml(view), HasSubstr("No job waits for its first start."));
}

TEST(ClusterHtmlTest, AStateLinksToTheJobsInIt) {
  ClusterPageView view = ExampleCluster();
  EXPECT_THAT(ClusterHtml(view), HasSubstr("<a href=\"/?state=QUEUED\">QUEUED 2</a>"));
  EXPECT_THAT(ClusterHtml(view), HasSubstr("<a href=\"/?state=MOVING\">MOVING 1</a>"));
  EXPECT_THAT(ClusterHtml(view), HasSubstr("<a href=\"/\" aria-current=\"page\">all 5</a>"));
  EXPECT_THAT(ClusterHtml(view), HasSubstr("<a href=\"/?namespace=lab\">lab 3</a>"));
  view.state_filter = "QUEUED";
  view.namespace_filter = "lab";
  view.jobs.resize(2);
  const std::string html = ClusterHtml(view);
  EXPECT_THAT(html, HasSubstr("<a href=\"/?state=QUEUED&amp;namespace=lab\" "
                              "aria-current=\"page\">QUEUED</a>"));
  EXPECT_THAT(html, HasSubstr("<a href=\"/?state=FAILED&amp;namespace=lab\">FAILED</a>"));
  EXPECT_THAT(html, HasSubstr("<a href=\"/?state=QUEUED\">all</a>"));
  view.jobs.clear();
  EXPECT_THAT(ClusterHtml(view), HasSubstr("No job is QUEUED in the namespace lab."));
}

TEST(ClusterHtmlTest, AJobThatMovesDoesNotRun) {
  ClusterPageView view = ExampleCluster();
  std::string html = ClusterHtml(view);
  EXPECT_THAT(html, HasSubstr("<dt>jobs that run</dt>\n<dd>1</dd>"));
  EXPECT_THAT(html, HasSubstr("<dt>jobs that move</dt>\n<dd>1</dd>"));
  view.jobs[2].clear_moving();  // it recovers
  html = ClusterHtml(view);
  EXPECT_THAT(html, HasSubstr("<dt>jobs that run</dt>\n<dd>2</dd>"));
  EXPECT_THAT(html, Not(HasSubstr("jobs that move")));
}

TEST(ClusterHtmlTest, AWorkerThatIsSetAsideIsNotCountedAsReady) {
  ClusterPageView view = ExampleCluster();
  EXPECT_THAT(ClusterHtml(view), HasSubstr("<dd>1 READY, 1 DRAINING</dd>"))
      << "only one of its devices is set aside";
  view.workers[0].add_set_aside()->set_reason("WORKER_LOST");
  view.workers[1].add_set_aside()->set_reason("WORKER_LOST");
  EXPECT_THAT(ClusterHtml(view), HasSubstr("<dd>1 DRAINING, 1 set aside</dd>"));
  view.workers.push_back(FromText<v1::WorkerStatus>(
      "name: 'worker-2' state: 'READY' devices { index: 0 } set_aside { device: 0 }"));
  view.workers.push_back(
      FromText<v1::WorkerStatus>("name: 'worker-3' state: 'READY' devices { index: 0 }"));
  EXPECT_THAT(ClusterHtml(view), HasSubstr("<dd>1 READY, 1 DRAINING, 2 set aside</dd>"));
}

TEST(ClusterHtmlTest, WhatIsNotKnownIsStatedWithTheReason) {
  ClusterPageView view;
  view.jobs_error = "PERMISSION_DENIED: no role";
  view.workers_error = "UNAVAILABLE: busy";
  const std::string html = ClusterHtml(view);
  EXPECT_THAT(html, HasSubstr("<b>The jobs are not known: </b>\n<span>PERMISSION_DENIED: no role"));
  EXPECT_THAT(html, HasSubstr("<b>The workers are not known: </b>\n<span>UNAVAILABLE: busy"));
  EXPECT_THAT(html, Not(HasSubstr("There are no")));
  EXPECT_THAT(html, Not(HasSubstr("jobs that run")));
}

TEST(ClusterHtmlTest, NoDeviceIsFreeForACallerWhoMayNotSeeAllJobs) {
  ClusterPageView view = ExampleCluster();
  EXPECT_THAT(ClusterHtml(view), HasSubstr("<dd>2 used, 1 free of 4</dd>"));
  view.sees_all_jobs = false;
  const std::string html = ClusterHtml(view);
  EXPECT_THAT(html, HasSubstr("<dd>2 of 4 used by jobs that you see</dd>"));
  EXPECT_THAT(html, Not(HasSubstr("free of")));
}

TEST(ClusterHtmlTest, WhatIsLeftOutIsCounted) {
  ClusterPageView view = ExampleCluster();
  view.more_jobs = 1;
  view.more_workers = 7;
  EXPECT_THAT(ClusterHtml(view), HasSubstr("1 more job is left out"));
  EXPECT_THAT(ClusterHtml(view), HasSubstr("7 more workers are left out"));
}

TEST(ClusterHtmlTest, AWorkerIsWithItsRanksAndRestrictions) {
  const std::string html = ClusterHtml(ExampleCluster());
  for (const char* text : {"device 3 is condemned: Xid 79", "ends by 2026-11-18T11:16:40Z: SIGTERM",
                           "jobs/other stays: it has no checkpoint.folder",
                           "device 2 set aside since 2026-11-18T08:20:00Z",
                           "<details id=\"ranks-of-worker-0\"><summary>2 ranks on cores</summary>",
                           "<li>rank 0 of jobs/trains on cores 0-3</li>",
                           "<li>rank 1 of jobs/trains on cores 4,6 (shared by 2 ranks)</li>",
                           "4 cuda<div class=\"small\">H200, 564 GB</div>", "12 GB",
                           "2 cpu<div class=\"small\">EPYC, 16 cores</div>",
                           "<span class=\"state warn\">DRAINING</span>"})
    EXPECT_THAT(html, HasSubstr(text));
}

TEST(ClusterHtmlTest, WorkersWithIslandsAreAboveALineThatStatesWhatAnIslandIs) {
  ClusterPageView view = ExampleCluster();
  const std::string line = "an island: the workers that the fastest links join";
  EXPECT_THAT(ClusterHtml(view), HasSubstr("<p class=\"note\">" + line));
  for (v1::WorkerStatus& worker : view.workers) worker.clear_island();
  EXPECT_THAT(ClusterHtml(view), Not(HasSubstr(line)));
}

// The bound of 4 kB a job holds for names of at most 127 characters, whatever the reason is.
TEST(ClusterHtmlTest, FiveHundredJobsMakeNoLargePage) {
  ClusterPageView view;
  view.now_ns = kViewNow;
  for (size_t i = 0; i < kManyJobs; ++i) {
    const std::string id = "run" + std::to_string(i);
    v1::Job& job =
        view.jobs.emplace_back(JobOfState(id, v1::JOB_STATE_RUNNING, static_cast<int64_t>(i)));
    job.set_step(100);
    job.set_loss(1.5);
  }
  EXPECT_LT(ClusterHtml(view).size(), kManyJobs * 600);
  for (v1::Job& job : view.jobs) {
    job.set_name("jobs/" + std::string(63, 'a') + "." + std::string(63, 'b'));
    job.set_state(v1::JOB_STATE_QUEUED);
    job.set_waiting_for(std::string(10'000, '"'));
  }
  const std::string html = ClusterHtml(view);
  EXPECT_LT(html.size(), kManyJobs * 4000);
  EXPECT_THAT(html, HasSubstr("450 more jobs wait."));
  EXPECT_THAT(html, HasSubstr("… (9700 more characters)"));
}

TEST(ClusterHtmlTest, OneThatIsLeftOutIsSingular) {
  ClusterPageView view;
  for (int i = 0; i < 51; ++i) {
    const std::string id = "n" + std::to_string(i) + ".run";
    view.jobs.push_back(JobOfState(id, v1::JOB_STATE_QUEUED, i));
  }
  v1::WorkerStatus& worker = view.workers.emplace_back();
  for (int i = 0; i < 41; ++i) worker.add_set_aside();
  const std::string html = ClusterHtml(view);
  EXPECT_THAT(html, HasSubstr(">1 more namespace is left out."));
  EXPECT_THAT(html, HasSubstr(">1 more job waits."));
  EXPECT_THAT(html, HasSubstr("and 1 more line of `troupe workers`"));
}

TEST(ClusterHtmlTest, AWorkerOfManyRanksMakesNoLargePage) {
  ClusterPageView view;
  v1::WorkerStatus& worker = view.workers.emplace_back();
  worker.set_name("worker-0");
  for (int i = 0; i < 1000; ++i) {
    v1::RankCores& rank = *worker.add_ranks();
    rank.set_job("jobs/wide");
    rank.set_rank(i);
    worker.add_jobs("jobs/wide" + std::to_string(i));
    worker.add_devices()->set_condemned("Xid 79");
  }
  const std::string html = ClusterHtml(view);
  EXPECT_LT(html.size(), 20'000u);
  EXPECT_THAT(html, HasSubstr("<li>and 872 more</li>"));
  EXPECT_THAT(html, HasSubstr("and 980 more"));
  EXPECT_THAT(html, HasSubstr("and 960 more lines of `troupe workers`"));
}

}  // namespace
}  // namespace troupe
