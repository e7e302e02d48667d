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
    {"base/detection_seconds.h", "the range of --detection-seconds itself"},
    {"base/time_limits.h", "where all that follow it are derived"},
    {"cli/client.h", "how long a person waits for a call"},
    {"cli/cluster/liveness.h", "how long a process of a local cluster may take to come up at all"},
    {"cli/cluster/supervisor.cc", "what is a quick death of a process, between two starts of it"},
    {"cli/watch.cc", "how long `watch` waits for a coordinator that is away"},
    {"cli/cluster_commands.cc", "how long a person waits for `up` and `down`"},
    {"collective/engine.cc", "longest sleep of an idle progress thread, which events end"},
    {"collective/network.cc", "a destructor's last resort; owners call Close with a limit"},
    {"collective/network_options.h", "default of an option that ranks always state"},
    {"collective/nccl/nccl_environment.h", "defaults of options that ranks always state"},
    {"coordinator/service/api_service.cc",
     "how long a file system may take for a look at a new job's data"},
    {"coordinator/job/attempts.cc", "pauses between tries to save on a disk that may be full"},
    {"coordinator/job/deletion.h",
     "how long a person waits for files to go, and how often they are asked for"},
    {"coordinator/job/group.cc", "a day: bound on what a job may ask for"},
    {"coordinator/faults/hang_limit.cc", "a day: bound on what a job may ask for"},
    {"coordinator/faults/host_faults.cc",
     "what a burn-in may take beyond the seconds that it computes"},
    {"coordinator/machine/job_removal.cc",
     "how often ended jobs are looked at for those too old to keep"},
    {"coordinator/job/progress.cc", "The limit bounds how many events report skipped steps."},
    {"coordinator/service/self_call.cc", "a call of the coordinator to itself on its own host"},
    {"coordinator/service/server.cc",
     "connections that never become HTTP/2 or carry no call; the last of the calls to itself"},
    {"coordinator/service/service_pools.cc", "a person's plan that waits its turn"},
    {"coordinator/engine/stall_guard.h", "floor under the heartbeat: shorter gaps are scheduling"},
    {"coordinator/job/timed_checkpoint.cc", "pause before a checkpoint by time is tried again"},
    {"kernels/cuda/runtime/cuda_device.h", "default of an option that ranks always state"},
    {"worker/daemon/burn_in_actor.h",
     "defaults of options: what a burn-in may take beyond its own seconds"},
    {"worker/daemon/coordinator_stream.cc",
     "a destructor's last resort: a call that was cancelled"},
    {"worker/daemon/daemon.cc",
     "longest sleep, should the clock stop; longest time from a signal to the end"},
    {"worker/daemon/session_actor.cc",
     "how often the host's core table is read, and how often /health learns that it works"},
    {"worker/devices/device_health.h",
     "how long a GPU must be hot or fail in one way to count as such"},
    {"worker/devices/device_watch.h",
     "how often a GPU is asked, and how long its driver is waited for"},
    {"worker/main.cc", "--measure-peak and --burn-in, where there is no cluster"},
    {"worker/devices/measure_profile.cc", "--measure-peak, where there is no cluster"},
    {"worker/rank/rank_run.h", "how late a shared folder may show another host's file"},
    {"worker/session/lost_link.cc",
     "how often the log repeats why there is no stream; how long the answer to a goodbye may take"},
    {"worker/session/lost_link.h", "longest pauses between dials; the detection time shortens one"},
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
  for (const auto& [path, reason] : kReasons)
    EXPECT_TRUE(found.contains(path)) << path << " has no such time any more";
}

}  // namespace
}  // namespace troupe
