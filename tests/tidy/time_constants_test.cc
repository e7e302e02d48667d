// Checks literal times of a second and more in the product: each derives from --detection-seconds
// (base/time_limits.h), is an option, or is listed here with its reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

namespace troupe {
namespace {

namespace fs = std::filesystem;

// Files with literal times, and why these do not depend on the detection time.
const std::map<std::string, std::string> kReasons = {
    {"base/detection_seconds.h", "The file defines the range of --detection-seconds."},
    {"base/security/tls_watch.cc", "The files of certificates are read at this interval."},
    {"base/time_limits.h", "The file derives all times that follow --detection-seconds."},
    {"cli/client.h", "The limits bound how long a person waits for a call."},
    {"cli/cluster/liveness.h", "A process of a local cluster has this time to start."},
    {"cli/cluster/supervisor.cc",
     "The supervisor judges the processes of a local cluster by these limits."},
    {"cli/watch.cc", "`watch` waits this long for a coordinator that is away."},
    {"cli/cluster_commands.cc", "The limits bound how long a person waits for `up` and `down`."},
    {"collective/engine.cc",
     "An idle progress thread sleeps at most this long, and events end the sleep."},
    {"collective/network.cc",
     "The limit is a destructor's last resort; owners call Close with a limit."},
    {"collective/network_options.h",
     "The value is the default of an option that ranks always state."},
    {"collective/nccl/nccl_environment.h",
     "The values are the defaults of options that ranks always state."},
    {"coordinator/service/api_service.cc",
     "A file system that answers needs less to check a new job's data."},
    {"coordinator/job/attempts.cc", "A full disk needs pauses between the attempts to save."},
    {"coordinator/job/deletion.h", "Requests to delete files are repeated at this interval."},
    {"coordinator/job/group.cc", "A day is the most that a job may ask for."},
    {"coordinator/faults/hang_limit.cc", "A day is the most that a job may ask for."},
    {"coordinator/faults/host_faults.cc",
     "A burn-in may need this in addition to the seconds that it computes."},
    {"coordinator/machine/job_removal.cc",
     "Old jobs are looked for at this interval, and their files are deleted in this time."},
    {"coordinator/job/progress.cc", "Events report skipped steps at most this often."},
    {"coordinator/service/self_call.cc", "The coordinator calls itself on its own host."},
    {"coordinator/service/server.cc",
     "The limits close connections without a call, and end the coordinator's calls to itself."},
    {"coordinator/service/service_pools.cc",
     "A person waits at most this long for a plan to begin."},
    {"coordinator/engine/stall_guard.h",
     "A shorter gap is a scheduling delay of the host, not a stall."},
    {"coordinator/job/timed_checkpoint.cc",
     "A failed timed checkpoint is repeated after at most this time."},
    {"kernels/cuda/runtime/cuda_device.h",
     "The value is the default of an option that ranks always state."},
    {"worker/daemon/burn_in_actor.h",
     "The options bound what a burn-in needs in addition to the seconds that it computes."},
    {"worker/daemon/coordinator_stream.cc",
     "The limit is a destructor's last resort, for a call that was cancelled."},
    {"worker/daemon/daemon.cc",
     "The daemon sleeps at most this long, and ends this soon after a signal."},
    {"worker/daemon/session_actor.cc",
     "The actor wakes at this interval for /health and reads the host's core table."},
    {"worker/devices/device_health.h",
     "Reports within this time belong to one failure, and shorter throttling costs no speed."},
    {"worker/devices/device_watch.h",
     "A GPU is asked at this interval, and its driver has this time to end."},
    {"worker/main.cc", "--measure-peak and --burn-in run without a cluster."},
    {"worker/devices/measure_profile.cc", "--measure-peak runs without a cluster."},
    {"worker/rank/rank_run.h", "A shared folder may show a file of another host this late."},
    {"worker/session/lost_link.cc",
     "The log repeats the reason at this interval, and a stopping daemon waits this long."},
    {"worker/session/lost_link.h",
     "Pauses between dials are at most this long, and the detection time shortens one."},
};

const std::set<std::string> kScannedFolders = {"base",        "actor",   "collective", "model",
                                               "plan",        "kernels", "data",       "checkpoint",
                                               "coordinator", "worker",  "cli",        "interop"};

bool IsProduct(const std::string& path) {
  const std::string folder = path.substr(0, path.find('/'));
  const bool source = path.ends_with(".cc") || path.ends_with(".h");
  const bool test = path.ends_with("_test.cc") || path.ends_with("_test.h") ||
                    path.find("/testing/") != std::string::npos ||
                    path.find("test_cluster") != std::string::npos ||
                    path.starts_with("actor/sim/");
  return kScannedFolders.contains(folder) && source && !test;
}

constexpr const char* kWords[] = {"hours", "minutes", "econds", "Ms"};

// Returns whether a line contains a literal time of a second or more.
bool HasLongTime(const std::string& line) {
  static const std::regex kUnits(R"(\b(hours|minutes|seconds)(?: k\w+)?[({]\s*[1-9])");
  static const std::regex kMilliseconds(R"(\bmilliseconds(?: k\w+)?[({]\s*[1-9]\d{3})");
  static const std::regex kNamed(
      R"(\bk\w*(Seconds = [1-9][\d.]*|(Ms|Milliseconds) = [1-9]\d{3,});)");
  // Regular expressions are slow; most lines contain no time at all.
  const bool has_unit = std::any_of(std::begin(kWords), std::end(kWords), [&](const char* word) {
    return line.find(word) != std::string::npos;
  });
  if (!has_unit || line.find("//") < line.find_first_not_of(' ') + 1) return false;
  return std::regex_search(line, kUnits) || std::regex_search(line, kMilliseconds) ||
         std::regex_search(line, kNamed);
}

std::map<std::string, std::string> FilesWithLongTimes() {
  std::map<std::string, std::string> found;  // path → the first such line
  for (const std::string& folder : kScannedFolders) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      const std::string path = entry.path().generic_string();
      if (!IsProduct(path)) continue;
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) {
        if (HasLongTime(line)) found.emplace(path, line);
      }
    }
  }
  return found;
}

TEST(TimeConstants, AreFoundInAllTheirForms) {
  for (const char* const line :
       {"constexpr Duration kLimit = std::chrono::seconds(2);", "constexpr seconds kUpLimit{60};",
        "constexpr auto kX = minutes(10);", "constexpr int kKeepaliveMs = 10000;",
        "std::chrono::milliseconds(1500)", "constexpr double kLongestSeconds = 86400;"}) {
    EXPECT_TRUE(HasLongTime(line)) << line;
  }
  for (const char* const line :
       {"milliseconds(20)", "FromSeconds(limit)", "set_seconds(0.5)", "  // seconds(5) of it",
        "kSlowestBytesPerSecond = 50e6", "constexpr double kRoundSeconds = 5e-3;",
        "kMinPingIntervalMs = 100;"}) {
    EXPECT_FALSE(HasLongTime(line)) << line;
  }
}

TEST(TimeConstants, FollowTheDetectionTimeOrHaveAReason) {
  const std::map<std::string, std::string> found = FilesWithLongTimes();
  EXPECT_TRUE(found.contains("base/time_limits.h")) << "run in the root of the repository";
  for (const auto& [path, line] : found) {
    EXPECT_TRUE(kReasons.contains(path))
        << path << ": `" << line
        << "`: derive it in base/time_limits.h, make it an option, or give a reason here";
  }
  for (const auto& [path, reason] : kReasons) {
    EXPECT_TRUE(found.contains(path)) << path << " has no such time any more";
    EXPECT_TRUE(reason.ends_with('.')) << path << ": the reason is no sentence: " << reason;
  }
}

}  // namespace
}  // namespace troupe
