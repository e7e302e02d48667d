// Checks literal times of a second and more in the product: each derives from --detection-seconds
// (base/time_limits.h), is an option, or is listed here with its reason.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/tidy/sources.h"

namespace troupe {
namespace {

struct Exemption {
  std::string path;
  std::set<std::string> times;  // as of LongTimes
  std::string reason;           // the cause of their independence of the detection time
};

const std::vector<Exemption> kExemptions = {
    {"base/detection_seconds.h",
     {"kMostDetectionSeconds"},
     "The file defines the range of --detection-seconds."},
    {"base/http/http_tls.cc",
     {"kReadInterval", "kTimeNoteSeconds"},
     "The files of certificates are read, and refused clocks are logged, at these intervals."},
    {"base/security/authority_files.cc",
     {"kLockLimit"},
     "Another process may replace the files of a directory for this time."},
    {"base/security/channel_arguments.cc",
     {"kNameServerLimitMs"},
     "A name server has this time to answer."},
    {"base/security/insecure_reminder.h",
     {"kInterval"},
     "The log repeats the warning at this interval."},
    {"base/security/record_limit.h",
     {"kWindow"},
     "The log takes this many records of a library in each such time."},
    {"base/security/tls_watch.cc",
     {"kReadInterval"},
     "The files of certificates are read at this interval."},
    {"base/time_limits.h",
     {"checkpoint_attempt", "keepalive", "keepalive_answer", "logs", "process_start",
      "restart_backoff_limit", "start", "startup_allowance", "ticket_window"},
     "The time follows --detection-seconds, and this is the least that it may be."},
    {"cli/cancel_call.cc", {"kLookLimit"}, "The limit bounds how long a person waits."},
    {"cli/client.h",
     {"kCallLimit", "kCheckpointLimit", "kReconnectLimit", "kTraceLimit"},
     "The limits bound how long a person waits for a call."},
    {"cli/cluster/cluster_index.cc",
     {"kIndexLimit"},
     "`up` waits this long for another one that writes the index of folders."},
    {"cli/cluster/cluster_stop.cc",
     {"kDownLimit", "kKillLimit", "kStopLimit"},
     "The limits bound how long a person waits for `down`."},
    {"cli/cluster/liveness.h",
     {"kStartLimit"},
     "A process of a local cluster has this time to start."},
    {"cli/cluster/prometheus.cc",
     {"kVersionLimit"},
     "The limit bounds how long `up` waits for another program to print its version."},
    {"cli/cluster/supervisor.cc",
     {"kCoordinatorStopLimit", "kProbeLimit", "kQuickDeath", "kSuspensionGap", "kWorkerStopLimit"},
     "The supervisor judges the processes of a local cluster by these limits."},
    {"cli/cluster_commands.cc",
     {"kListLimit", "kUpLimit"},
     "The limits bound how long a person waits for `up` and `down`."},
    {"cli/join_commands.cc", {"kJoinCallLimit"}, "The limit bounds how long a person waits."},
    {"cli/job_logs.cc", {"kLongestPause"}, "A command waits this long between two looks at logs."},
    {"cli/output/step_history.cc",
     {"kLongestPause"},
     "A person sees a row of a job with slow steps after this time."},
    {"cli/watch.cc",
     {"kAwayLimit", "kHistoryLimit"},
     "Commands wait this long for a coordinator that is away, or for the history of a job."},
    {"cli/watch.h", {"kStepLimit"}, "The limit bounds how long a person waits for a few figures."},
    {"collective/engine.cc",
     {"kIdleLimit"},
     "An idle progress thread sleeps at most this long, and events end the sleep."},
    {"collective/nccl/nccl_environment.h",
     {"close_limit", "connect_limit", "hang_limit"},
     "The values are the defaults of options that ranks always state."},
    {"collective/network.cc",
     {"kDestructionLimit"},
     "The limit is a destructor's last resort; owners call Close with a limit."},
    {"collective/network_options.h",
     {"hang_limit"},
     "The value is the default of an option that ranks always state."},
    {"coordinator/access/audit_log.h",
     {"minutes(1)"},
     "Records of refused strangers are limited by the minute, so that they cannot fill a disk."},
    {"coordinator/page/page_calls.cc",
     {"kCallLimit", "kLogsLimit", "kPageLimit"},
     "A person waits for a page, and the next one is asked for a few seconds later."},
    {"coordinator/page/page_maker.cc",
     {"kHistoryLimit"},
     "A long history is read over several pages, so that the first is there soon."},
    {"coordinator/page/shared_logs.h",
     {"kFresh", "kUsable"},
     "Lines of a log are shown to several viewers, who look again every few seconds."},
    {"coordinator/page/watched_jobs.h",
     {"kLookInterval"},
     "A page that is open is asked for again within this time."},
    {"coordinator/page/trace_sample.h",
     {"kTraceInterval"},
     "A trace costs the ranks time, and a person compares schedules over minutes."},
    {"coordinator/access/join_ledger.h",
     {"kDefaultJoinTokenSeconds", "kMostJoinTokenSeconds", "minutes(1)"},
     "A token is brought to a host by a person, and guesses are limited by the minute."},
    {"coordinator/engine/stall_guard.h",
     {"seconds(1)"},
     "A shorter gap is a scheduling delay of the host, not a stall."},
    {"coordinator/faults/hang_limit.cc",
     {"kLongestSeconds"},
     "A day is the most that a job may ask for."},
    {"coordinator/faults/host_faults.cc",
     {"kBurnInAllowance"},
     "A burn-in may need this in addition to the seconds that it computes."},
    {"coordinator/faults/start_limit.cc",
     {"kLongestSeconds"},
     "A day is the most that a job may ask for."},
    {"coordinator/job/attempts.cc",
     {"kFirstSaveAgain", "kSaveAgainLimit"},
     "A full disk needs pauses between the attempts to save."},
    {"coordinator/job/kept_checkpoints.h",
     {"kDeleteAgainInterval"},
     "Requests to delete files are repeated at this interval."},
    {"coordinator/job/progress.cc",
     {"kSkipEventInterval"},
     "Events report skipped steps at most this often."},
    {"coordinator/job/timed_checkpoint.cc",
     {"kTryAgainMax"},
     "A failed timed checkpoint is repeated after at most this time."},
    {"coordinator/kubernetes/api_client.cc",
     {"kCallSeconds", "kConnectSeconds", "kSilentSeconds", "kTokenInterval", "kWatchSeconds",
      "seconds(1)"},
     "The API server of Kubernetes has these times for its answers, and tokens are read again."},
    {"coordinator/kubernetes/ask_engine.h",
     {"kEngineAnswerLimit"},
     "The coordinator asks itself, and others are not delayed meanwhile."},
    {"coordinator/machine/drained_workers.cc",
     {"kDrainsInterval"},
     "Orders end after days, so that a minute more does not count."},
    {"coordinator/kubernetes/controller.cc",
     {"kExhaustedWait", "kFiguresInterval", "kLastActWait", "kLastConflictWait", "kLastWait",
      "kLookInterval", "kRejectedWait", "kShortWatch", "kTurnLimit"},
     "The API server of Kubernetes is asked at these intervals."},
    {"coordinator/kubernetes/coordinator_jobs.cc",
     {"kCancelLimit", "kCreateLimit", "kDeleteLimit"},
     "The coordinator asks itself, and others are not delayed meanwhile."},
    {"coordinator/kubernetes/pod_marker.cc",
     {"kFirstMarkPause", "kLastMarkPause", "kMarkInterval"},
     "The API server of Kubernetes is asked at these intervals."},
    {"coordinator/kubernetes/pod_marks.h",
     {"kFirstWait", "kIdleDelay", "kLastWait"},
     "Pods are marked at these intervals."},
    {"coordinator/kubernetes/requests.cc",
     {"kWatchSeconds"},
     "The API server of Kubernetes ends a watch after this time."},
    {"coordinator/machine/job_removal.cc",
     {"kKeepEndedInterval", "kLeftFilesLimit", "kRemovalLimit"},
     "Old jobs are looked for at this interval, and their files are deleted in this time."},
    {"coordinator/service/access_timer.cc",
     {"kExpiryInterval"},
     "Certificates and tokens of open streams are checked at this interval."},
    {"coordinator/service/api_service.cc",
     {"kLookLimit"},
     "A file system that answers needs less to check a new job's data."},
    {"coordinator/service/external_scaler.cc",
     {"kActiveInterval"},
     "KEDA learns of the first job after at most this time."},
    {"coordinator/service/measure.cc",
     {"kRecordInterval"},
     "Figures of all jobs and ranks are recorded at this interval."},
    {"coordinator/service/namespaces_watch.cc",
     {"kFileInterval"},
     "The file of namespaces is read at this interval."},
    {"coordinator/service/peer_connections.cc",
     {"kLogInterval", "kLookInterval"},
     "Closed connections are looked for, and refused ones logged, at these intervals."},
    {"coordinator/service/self_call.cc",
     {"kLimit"},
     "The coordinator calls itself on its own host."},
    {"coordinator/service/series_lifetime.h",
     {"kSeriesAfterEnd"},
     "Scrapes come at intervals of their own."},
    {"coordinator/service/server.cc",
     {"kSelfCallLimit"},
     "The limit ends the coordinator's calls to itself."},
    {"coordinator/service/server.h",
     {"age", "grace", "handshake"},
     "The limits close connections of clients that do not go on, or have old certificates."},
    {"coordinator/service/service_pools.cc",
     {"kPlanTurnLimit"},
     "A person waits at most this long for a plan to begin."},
    {"coordinator/state/quota.h",
     {"kSubmissionTime"},
     "A namespace's quota of submissions is stated for a minute."},
    {"coordinator/state/fleet.h",
     {"kForgottenDrainLimit"},
     "An operator may bring a machine back within a week, whatever the detection time is."},
    {"coordinator/state/fleet.cc",
     {"kLongestDrainSeconds"},
     "A worker may state any time until its end; a day counts at most."},
    {"kernels/cuda/runtime/cuda_device.h",
     {"wait_limit"},
     "The value is the default of an option that ranks always state."},
    {"kernels/xla/runtime/executable_cache.cc",
     {"kLongestWrite"},
     "A file that is still incomplete after this time was left by a process that was killed."},
    {"worker/daemon/burn_in_actor.h",
     {"allowance", "stop_limit"},
     "The options bound what a burn-in needs in addition to the seconds that it computes."},
    {"worker/daemon/certificate_renewal.cc",
     {"kLookInterval", "kRenewLimit"},
     "Certificates last hours, and a failed renewal is repeated."},
    {"worker/daemon/coordinator_stream.cc",
     {"kEndLimit"},
     "The limit is a destructor's last resort, for a call that was cancelled."},
    {"worker/daemon/daemon.cc",
     {"kLeaveMax", "kWaitMax"},
     "The daemon sleeps at most this long, and ends this soon after a signal."},
    {"worker/daemon/session_actor.cc",
     {"kAlarmMax", "kClaimsInterval"},
     "The actor wakes at this interval for /health and reads the host's core table."},
    {"worker/daemon/spot_notice.cc",
     {"kAwsNotice", "kLongestNotice", "kShortNotice"},
     "Clouds give these times between a notice and the end of the machine."},
    {"worker/daemon/spot_notice.h",
     {"kInterval"},
     "The log states why a metadata service cannot be used at most this often."},
    {"worker/daemon/spot_watch.cc",
     {"kAskInterval", "kAskLimit"},
     "A notice may come half a minute before the end, so it is looked for each second."},
    {"worker/daemon/worker_metrics.cc",
     {"kSeriesAfterRanks"},
     "Scrapes come at intervals of their own."},
    {"worker/devices/device_health.h",
     {"kSameFailure", "kThrottledLimit"},
     "Reports within this time belong to one failure, and shorter throttling costs no speed."},
    {"worker/devices/device_watch.h",
     {"interval", "kEndLimit"},
     "A GPU is asked at this interval, and its driver has this time to end."},
    {"worker/devices/measure_profile.cc", {"kLimit"}, "--measure-peak runs without a cluster."},
    {"worker/main.cc", {"kWaitLimit"}, "--measure-peak and --burn-in run without a cluster."},
    {"worker/rank/rank_run.h",
     {"folder_limit"},
     "A shared folder may show a file of another host this late."},
    {"worker/session/drain.cc",
     {"kEndsBeforeDeadline"},
     "Whoever kills the process at its deadline does so to the second."},
    {"worker/session/lost_link.cc",
     {"kLeaveLimit", "kNoteInterval"},
     "The log repeats the reason at this interval, and a stopping daemon waits this long."},
    {"worker/session/lost_link.h",
     {"kLongestAccessBackoff", "kLongestDialBackoff", "kLongestRefusedBackoff"},
     "Pauses between dials are at most this long, and the detection time shortens one."},
};

const std::set<std::string> kScannedFolders = {"base",        "actor",   "collective", "model",
                                               "plan",        "kernels", "data",       "checkpoint",
                                               "coordinator", "worker",  "cli",        "interop"};

bool IsProduct(const std::string& path) {
  const bool source = path.ends_with(".cc") || path.ends_with(".h");
  const bool test = IsTest(path) || path.find("test_cluster") != std::string::npos ||
                    path.starts_with("actor/sim/");
  return kScannedFolders.contains(TopFolder(path)) && source && !test;
}

constexpr const char* kWords[] = {"hours", "minutes", "econds", "Ms"};

// Returns a name for each literal time of a second or more in a statement: the constant or member
// that it initialises, such as "kLimit", else the literal: "seconds(5)".
std::vector<std::string> LongTimes(const std::string& statement) {
  // The groups of each form: the unit, the constant, the number.
  static const std::regex kForms[] = {
      std::regex(R"(\b(hours|minutes|seconds)(?: (k\w+))?[({]\s*([1-9][\d.']*))"),
      std::regex(R"(\b(milliseconds)(?: (k\w+))?[({]\s*([1-9][\d']{3,}))"),
      std::regex(R"(\b()(k\w*Seconds) = ([1-9][\d.']*);)"),
      std::regex(R"(\b()(k\w*(?:Ms|Milliseconds)) = ([1-9][\d']{3,});)")};
  static const std::regex kAssigned(R"((\w+) =(?!=))");
  std::vector<std::string> times;
  // Regular expressions are slow; most statements contain no time at all.
  const bool has_unit = std::ranges::any_of(
      kWords, [&](const char* word) { return statement.find(word) != std::string::npos; });
  if (!has_unit) return times;
  for (const std::regex& form : kForms) {
    for (std::sregex_iterator it(statement.begin(), statement.end(), form), end; it != end; ++it) {
      const std::vector<std::string> assigned = Matches(it->prefix(), kAssigned);
      if ((*it)[2].matched) {
        times.push_back((*it)[2]);
      } else if (!assigned.empty()) {
        times.push_back(assigned.back());
      } else {
        times.push_back((*it)[1].str() + "(" + (*it)[3].str() + ")");
      }
    }
  }
  return times;
}

// The lines of each time, as "path name".
using Times = std::map<std::string, std::vector<size_t>>;

void AddTimes(const SourceFile& file, Times* times) {
  for (const Statement& statement : Statements(file)) {
    for (const std::string& name : LongTimes(statement.text))
      (*times)[file.path + " " + name].push_back(statement.line);
  }
}

// Returns a line for each time without an exemption of its own, and for each exemption without a
// time.
std::vector<std::string> Differences(const Times& found, const std::set<std::string>& exempted) {
  std::vector<std::string> differences;
  for (const auto& [name, lines] : found) {
    if (!exempted.contains(name)) {
      differences.push_back(fmt::format(
          "{} in line {}: derive it in base/time_limits.h, make it an option, or give a reason "
          "here",
          name, lines.front()));
    } else if (lines.size() > 1) {
      differences.push_back(
          fmt::format("{} in lines {}: give each of them a name", name, fmt::join(lines, ", ")));
    }
  }
  for (const std::string& name : exempted) {
    if (!found.contains(name)) differences.push_back(name + " is no such time any more");
  }
  return differences;
}

TEST(TimeConstants, AreFoundInAllTheirForms) {
  const std::vector<std::pair<std::string, std::string>> times = {
      {"constexpr Duration kLimit = std::chrono::seconds(2);", "kLimit"},
      {"constexpr seconds kUpLimit{60};", "kUpLimit"},
      {"constexpr auto kX = minutes(10);", "kX"},
      {"constexpr int kKeepaliveMs = 10000;", "kKeepaliveMs"},
      {"Wait(std::chrono::milliseconds(1500));", "milliseconds(1500)"},
      {"if (a == b && !Wait(left, seconds{5})) {", "seconds(5)"},
      {"Options options{.first = seconds(x), .second = std::max(y, seconds(7))};", "second"},
      {"constexpr double kLongestSeconds = 86400;", "kLongestSeconds"}};
  for (const auto& [statement, name] : times)
    EXPECT_EQ(LongTimes(statement), std::vector<std::string>{name}) << statement;
  for (const char* const statement :
       {"milliseconds(20)", "FromSeconds(limit)", "set_seconds(0.5)",
        "kSlowestBytesPerSecond = 50e6", "constexpr double kRoundSeconds = 5e-3;",
        "kMinPingIntervalMs = 100;"}) {
    EXPECT_TRUE(LongTimes(statement).empty()) << statement;
  }
}

TEST(TimeConstants, AreExemptedOneByOne) {
  Times found;
  AddTimes({"a.cc",
            {"constexpr Duration kLimit = seconds(2);", "  // seconds(5) of it",
             "constexpr Duration kVeryLongName =", "    std::chrono::seconds(60);",
             "void F() { Wait(seconds(5)); }", "void G() { Wait(seconds(5)); }"}},
           &found);
  const std::vector<std::string> expected = {
      "a.cc kVeryLongName in line 3: derive it in base/time_limits.h, make it an option, or give a "
      "reason here",
      "a.cc seconds(5) in lines 5, 6: give each of them a name",
      "a.cc kGone is no such time any more"};
  EXPECT_EQ(Differences(found, {"a.cc kGone", "a.cc kLimit", "a.cc seconds(5)"}), expected);
}

TEST(TimeConstants, FollowTheDetectionTimeOrHaveAReason) {
  Times found;
  for (const SourceFile& file : Sources()) {
    if (IsProduct(file.path)) AddTimes(file, &found);
  }
  ASSERT_FALSE(found.empty()) << "run in the root of the repository";
  std::set<std::string> exempted;
  for (const Exemption& exemption : kExemptions) {
    EXPECT_TRUE(exemption.reason.ends_with('.'))
        << exemption.path << ": the reason is no sentence: " << exemption.reason;
    for (const std::string& time : exemption.times) exempted.insert(exemption.path + " " + time);
  }
  for (const std::string& difference : Differences(found, exempted)) ADD_FAILURE() << difference;
}

}  // namespace
}  // namespace troupe
