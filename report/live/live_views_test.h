// Views for the tests of the live pages: one of each kind, and texts that are to do harm.
#ifndef TROUPE_REPORT_LIVE_LIVE_VIEWS_TEST_H_
#define TROUPE_REPORT_LIVE_LIVE_VIEWS_TEST_H_

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "report/live/cluster_page_view.h"
#include "report/live/job_html.h"
#include "report/live/logs_html.h"

namespace troupe {

inline constexpr int64_t kViewNow = 1'795'000'000'000'000'000;  // 2026-11-18 11:06:40 UTC
inline constexpr int64_t kViewMinute = 60'000'000'000;

template <typename Message>
Message FromText(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

inline v1::Job JobOfState(const std::string& id, v1::JobState state, int64_t minutes_old) {
  v1::Job job;
  job.set_name("jobs/" + id);
  job.set_state(state);
  job.set_steps(200);
  job.set_create_wall_time_ns(kViewNow - minutes_old * kViewMinute);
  return job;
}

// Jobs of several states on two workers with six devices, one of which is draining.
inline ClusterPageView ExampleCluster() {
  ClusterPageView view;
  view.caller = "viewer/ann";
  view.now_ns = kViewNow;
  view.version = "1.2.3";
  view.jobs = {JobOfState("lab.waits2", v1::JOB_STATE_QUEUED, 1),
               JobOfState("lab.waits1", v1::JOB_STATE_QUEUED, 2),
               JobOfState("lab.moves", v1::JOB_STATE_RECOVERING, 3),
               JobOfState("trains", v1::JOB_STATE_RUNNING, 5),
               JobOfState("broken", v1::JOB_STATE_FAILED, 180)};
  view.jobs[0].set_waiting_for("waits behind jobs/lab.waits1");
  view.jobs[1].set_waiting_for("8 ranks need 8 devices; 2 are free");
  view.jobs[2].set_moving("leaves worker-1, which is draining (SIGTERM)");
  view.jobs[3].set_step(119);
  view.jobs[3].set_loss(2.51234);
  *view.jobs[3].add_ranks() = FromText<v1::RankStatus>("rank: 0 worker: 'worker-0' device: 0");
  *view.jobs[3].add_ranks() = FromText<v1::RankStatus>("rank: 1 worker: 'worker-0' device: 1");
  *view.jobs[4].mutable_failure() =
      FromText<v1::Failure>("cause: 'RANK_CRASHED' message: 'signal 9' rank: 3");
  view.workers = {FromText<v1::WorkerStatus>(R"(
      name: "worker-0" state: "READY" pid: 17 host: "a.example.org" island: "a"
      memory_bytes: 12000000000 jobs: "jobs/trains"
      devices { index: 0 kind { kind: "cuda" model: "H200" } memory_bytes: 141000000000 }
      devices { index: 1 kind { kind: "cuda" model: "H200" } memory_bytes: 141000000000 }
      devices { index: 2 kind { kind: "cuda" model: "H200" } memory_bytes: 141000000000 }
      devices { index: 3 kind { kind: "cuda" model: "H200" } memory_bytes: 141000000000
                condemned: "Xid 79" }
      ranks { job: "jobs/trains" rank: 0 cores { cores: [0, 1, 2, 3] } }
      ranks { job: "jobs/trains" rank: 1 cores { cores: [4, 6] shared_by: 2 } }
      set_aside { device: 2 reason: "RANK_CRASHED" since_wall_time_ns: 1794990000000000000
                  burn_in_wall_time_ns: 1794990300000000000 })"),
                  FromText<v1::WorkerStatus>(R"(
      name: "worker-1" state: "DRAINING" host: "b.example.org" jobs: "jobs/other"
      devices { index: 0 kind { kind: "cpu" model: "EPYC" } cores: 16 }
      devices { index: 1 kind { kind: "cpu" model: "EPYC" } cores: 16 }
      ranks { job: "jobs/other" rank: 0 cores { cores: [0] } }
      drain { reason: "SIGTERM" end_wall_time_ns: 1795000600000000000
              staying_jobs { name: "jobs/other" reason: "it has no checkpoint.folder" } })")};
  return view;
}

// A job of two ranks that trains again after a failure, without a plan.
inline JobView ExampleJob() {
  JobView view;
  view.caller = "viewer/ann";
  view.now_ns = kViewNow;
  view.version = "1.2.3";
  v1::Job& job = view.report.job;
  job = JobOfState("lab.trains", v1::JOB_STATE_RUNNING, 30);
  job.set_step(50);
  job.set_creator("spiffe://troupe/submitter/ann");
  *job.mutable_layout() = FromText<v1::MeshDegrees>("pipe: 2 data_replicate: 1 tensor: 1");
  for (const char* rank : {"rank: 0 worker: 'worker-0' pid: 21 coordinates { pipe: 0 } "
                           "cores { cores: [0, 1] }",
                           "rank: 1 worker: 'worker-1' device: 1 coordinates { pipe: 1 }"})
    *job.add_ranks() = FromText<v1::RankStatus>(rank);
  *job.mutable_last_failure() = FromText<v1::Failure>(
      "cause: 'RANK_CRASHED' message: 'killed' rank: 1 worker: 'worker-1' signal: 9 "
      "last_operation: 'F0.1'");
  view.checkpoints = {
      FromText<v1::CheckpointRecord>(R"(step: 20 state: CHECKPOINT_STATE_QUARANTINED bytes: 1200000
        path: "/data/lab.trains/1" reason: "block 7 differs")"),
      FromText<v1::CheckpointRecord>(R"(step: 40 state: CHECKPOINT_STATE_COMMITTED bytes: 1200000
        path: "/data/lab.trains/2" verified: true pinned: true)")};
  view.checkpoints[1].set_commit_wall_time_ns(kViewNow - 7 * kViewMinute);
  return view;
}

inline LogsView ExampleLogs() {
  LogsView view;
  view.now_ns = kViewNow;
  view.job = ExampleJob().report.job;
  view.rank = 1;
  view.lines = {"first line", "", "last line"};
  view.more_lines = 17;
  return view;
}

// Texts that would become elements or attributes, reorder a line, or make a page large or no UTF-8.
inline std::vector<std::string> HostileTexts() {
  return {"<script>alert(1)</script>",
          "\"><img src=x onerror=alert(1)><i7>",
          "' data-x='1' onclick='alert(1)",
          "\" data-x=\"1\" onclick=\"alert(1)",
          "javascript:alert(1)//&lt;i7&gt;",
          "</pre></main></title></textarea><i7>",
          std::string("a\0\x01\x1b[31m\r\n\x7f\xc2\x85", 13),
          "\u202egnp.exe\u2066 \u2028",
          "\xff\xfe<i7>\xc3",
          "../../?state=<i7>#x y%00",
          std::string(10'000, '<')};
}

// Sets every text of `message` and of the messages in it, and adds one to each list, but for those
// named in `left_out`.
inline void FillTexts(const std::string& text, const std::vector<std::string>& left_out,
                      google::protobuf::Message* message, int depth = 0) {
  using Field = google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const Field* const field = message->GetDescriptor()->field(i);
    if (std::count(left_out.begin(), left_out.end(), field->name()) != 0) continue;
    if (field->type() == Field::TYPE_STRING && field->is_repeated()) {
      reflection.AddString(message, field, text);
    } else if (field->type() == Field::TYPE_STRING) {
      reflection.SetString(message, field, text);
    } else if (field->type() == Field::TYPE_MESSAGE && depth < 3) {
      FillTexts(text, left_out,
                field->is_repeated() ? reflection.AddMessage(message, field)
                                     : reflection.MutableMessage(message, field),
                depth + 1);
    }
  }
}

}  // namespace troupe

#endif  // TROUPE_REPORT_LIVE_LIVE_VIEWS_TEST_H_
