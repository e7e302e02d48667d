#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "base/temporary_directory.h"
#include "cli/cluster/cluster_file.h"
#include "cli/cluster/cluster_settings.h"
#include "cli/cluster/host_id.h"
#include "cli/cluster/process.h"
#include "cli/cluster/supervisor.h"

namespace troupe {
namespace {

TEST(ClusterFileTest, TextAndParsingAreInverse) {
  ClusterFile cluster{.host = {"node-a", "run"},
                      .coordinator_address = "127.0.0.1:7",
                      .coordinator_metrics = "http://127.0.0.1:8/metrics",
                      .coordinator_page = "http://127.0.0.1:11/",
                      .coordinator = {1, 2},
                      .supervisor = {3, 4},
                      .workers = {{"worker-0", {5, 6}, "http://127.0.0.1:9/metrics"}}};
  const auto parsed = ParseClusterFile(ToJsonText(cluster));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(ToJsonText(*parsed), ToJsonText(cluster));
  EXPECT_EQ(parsed->coordinator_page, "http://127.0.0.1:11/");
  EXPECT_EQ(parsed->workers[0].process, (ProcessId{5, 6}));
  EXPECT_EQ(parsed->host.name, "node-a");
  EXPECT_EQ(parsed->host.boot_id, "run");
  EXPECT_FALSE(parsed->prometheus);
  cluster.prometheus = {{7, 8}, "http://127.0.0.1:10"};
  const auto monitored = ParseClusterFile(ToJsonText(cluster));
  ASSERT_TRUE(monitored.ok()) << monitored.status();
  EXPECT_EQ(ToJsonText(*monitored), ToJsonText(cluster));
  EXPECT_EQ(monitored->prometheus->url, "http://127.0.0.1:10");
}

TEST(ClusterFileTest, TheTargetsForPrometheusComeAndGoWithIt) {
  const TemporaryDirectory folder;
  const ClusterFile cluster{.coordinator_metrics = "http://127.0.0.1:8/metrics",
                            .workers = {{"worker-0", {5, 6}, "http://127.0.0.1:9/metrics"}}};
  ASSERT_TRUE(WriteClusterFile(folder.path(), cluster).ok());
  PosixFileSystem files;
  const std::string path = folder.Child("prometheus_targets.json");
  const auto text = ReadFile(files, path, 1 << 16, SymbolicLinks::kRefuse);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(nlohmann::json::parse(*text), nlohmann::json::parse(R"([
    {"targets": ["127.0.0.1:8"], "labels": {"job": "troupe-coordinator"}},
    {"targets": ["127.0.0.1:9"], "labels": {"job": "troupe-worker"}}])"));
  EXPECT_TRUE(RemoveClusterFile(folder.path()).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(ReadClusterFile(folder.path()).status().code(), StatusCode::kNotFound);
}

TEST(ClusterFileTest, BadFilesAreErrors) {
  const TemporaryDirectory folder;
  const std::string path = folder.Child("cluster.json");
  const nlohmann::json good = nlohmann::json::parse(
      ToJsonText({.supervisor = {3, 4}, .workers = {{"worker-0", {5, 6}, "http://h:9/metrics"}}}));
  const auto changed = [&good](const char* pointer, const nlohmann::json& value) {
    nlohmann::json json = good;
    json[nlohmann::json::json_pointer(pointer)] = value;
    return json.dump();
  };
  for (const auto& [text, error] : std::vector<std::pair<std::string, std::string>>{
           {"", "it is not JSON"},
           {"nonsense", "it is not JSON"},
           {"[]", "its content is not an object"},
           {"{}", "coordinator is missing"},
           {changed("/coordinator", 5), "coordinator is not an object"},
           {changed("/coordinator/address", 5), "coordinator.address is not a text"},
           {changed("/coordinator/page", 5), "coordinator.page is not a text"},
           {changed("/supervisor", nlohmann::json::object()), "supervisor.pid is missing"},
           {changed("/supervisor/pid", -1), "supervisor.pid is not a whole number"},
           {changed("/supervisor/pid", 1L << 40), "supervisor.pid is not a whole number"},
           {changed("/supervisor/host", 5), "supervisor.host is not a text"},
           {changed("/folder", 5), "folder is not a text"},
           {changed("/workers", 5), "workers is not a list"},
           {changed("/prometheus", 5), "prometheus is not an object"},
           {changed("/workers/0/start_ticks", "5"),
            "workers[0].start_ticks is not a whole number"}}) {
    std::ofstream(path) << text;
    const Status damaged = ReadClusterFile(folder.path()).status();
    EXPECT_EQ(damaged.code(), StatusCode::kInvalidArgument) << text;
    const std::string expected =
        fmt::format("{} is damaged: {}; `troupe down --data-dir ", path, error);
    EXPECT_EQ(Message(damaged).find(expected), 0u) << damaged;
  }
  EXPECT_EQ(ReadClusterFile("/nowhere/at/all").status().code(), StatusCode::kNotFound);
}

TEST(ClusterFileTest, ACopyIsRefusedWhileTheOriginalsProcessesLive) {
  const TemporaryDirectory one, copy;
  ClusterFile cluster{.coordinator_address = "127.0.0.1:7",
                      .coordinator_metrics = "http://127.0.0.1:8/metrics",
                      .coordinator = *FindProcess(getpid())};
  ASSERT_TRUE(WriteClusterFile(one.path(), cluster).ok());
  EXPECT_TRUE(ReadClusterFile(one.path()).ok());
  std::filesystem::copy(one.Child("cluster.json"), copy.path());
  const Status refused = ReadClusterFile(copy.path()).status();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(Message(refused).find(one.path()), std::string::npos) << refused;
  // Another name of the folder leads to the same cluster.
  const std::string link = copy.Child("link");
  std::filesystem::create_directory_symlink(one.path(), link);
  EXPECT_TRUE(ReadClusterFile(link).ok());
  // The folder of a cluster that is down may be copied.
  ++cluster.coordinator.start_ticks;
  ASSERT_TRUE(WriteClusterFile(one.path(), cluster).ok());
  std::filesystem::copy(one.Child("cluster.json"), copy.path(),
                        std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(ReadClusterFile(copy.path()).ok());
}

TEST(ClusterFileTest, TheFileOfAnotherHostIsRefusedWithItsName) {
  const TemporaryDirectory folder;
  const HostId self = ThisHost();
  const auto state = [&](const HostId& host) {
    std::ofstream(folder.Child("cluster.json"))
        << ToJsonText({.folder = folder.path(), .host = host});
    return ReadClusterFile(folder.path()).status();
  };
  const Status refused = state({"node-a", "another run"});
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition) << refused;
  EXPECT_EQ(Message(refused).find(
                fmt::format("{} is that of a cluster of the host node-a, and this host is {}: ",
                            folder.Child("cluster.json"), self.name)),
            0u)
      << refused;
  for (const HostId& here : {self, HostId{self.name, "another run"}, HostId{}})
    EXPECT_TRUE(state(here).ok()) << here.name << " " << here.boot_id;
  // The file that is written names this host.
  ASSERT_TRUE(WriteClusterFile(folder.path(), {.host = {"node-a", "another run"}}).ok());
  const auto own = ReadClusterFile(folder.path());
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->host.name, self.name);
  EXPECT_EQ(own->host.boot_id, self.boot_id);
}

TEST(ClusterFileTest, AFileOfAnEarlierVersionHasNoPage) {
  const std::string text = ToJsonText({.coordinator_address = "127.0.0.1:7"});
  EXPECT_FALSE(nlohmann::json::parse(text)["coordinator"].contains("page"));
  const auto parsed = ParseClusterFile(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->coordinator_page, "");
}

TEST(ClusterFileTest, AFileOfAnEarlierVersionHasNoHost) {
  nlohmann::json json = nlohmann::json::parse(ToJsonText({.host = {"node-a", "run"}}));
  json["supervisor"].erase("host");
  json["supervisor"].erase("boot_id");
  const auto parsed = ParseClusterFile(json.dump());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->host.name, "");
}

TEST(ClusterSettingsTest, AreKept) {
  const TemporaryDirectory folder;
  EXPECT_EQ(ReadClusterSettings(folder.path()).status().code(), StatusCode::kNotFound);
  const ClusterSettings settings{.devices = {.kind = "cuda", .count = 2},
                                 .detection_seconds = 0.5,
                                 .keep_ended = "36h",
                                 .coordinator_port = 1,
                                 .coordinator_metrics_port = 2,
                                 .coordinator_page_port = 6,
                                 .worker_metrics_ports = {3, 4},
                                 .prometheus = "/usr/bin/prometheus",
                                 .prometheus_port = 5};
  ASSERT_TRUE(WriteClusterSettings(folder.path(), settings).ok());
  const auto read = ReadClusterSettings(folder.path());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->workers(), 2);
  EXPECT_EQ(read->worker_metrics_ports, settings.worker_metrics_ports);
  EXPECT_EQ(read->detection_seconds, 0.5);
  EXPECT_EQ(read->keep_ended, "36h");
  EXPECT_EQ(read->prometheus, "/usr/bin/prometheus");
  EXPECT_EQ(read->prometheus_port, 5);
  EXPECT_EQ(read->coordinator_page_port, 6);
  EXPECT_EQ(read->devices.ToText(), "cuda:2");
}

TEST(ClusterSettingsTest, ReachTheCoordinatorAsItsFlags) {
  ClusterSettings settings{.keep_ended = "1000", .coordinator_port = 7};
  std::vector<std::string> command = CoordinatorCommand("/folder", "/bin", settings);
  EXPECT_EQ(command[0], "/bin/troupe-coordinator");
  const auto value_of = [&](const std::string& flag) {
    const auto found = std::find(command.begin(), command.end(), flag);
    return found == command.end() ? "" : *(found + 1);
  };
  EXPECT_EQ(value_of("--listen"), "127.0.0.1:7");
  EXPECT_EQ(value_of("--keep-ended"), "1000");
  EXPECT_EQ(value_of("--page-listen"), "") << "that of an earlier version";
  settings.coordinator_page_port = 9;
  command = CoordinatorCommand("/folder", "/bin", settings);
  EXPECT_EQ(value_of("--page-listen"), "127.0.0.1:9");
}

TEST(ClusterSettingsTest, OfAFormerVersionAreOfProcessors) {
  const TemporaryDirectory folder;
  ASSERT_TRUE(WriteClusterSettings(folder.path(), {.devices = {.count = 3}}).ok());
  const std::string path = folder.path() + "/settings.json";
  std::ifstream in(path);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  for (const std::string line : {"  \"device_kind\": \"cpu\",\n", "  \"keep_ended\": \"all\",\n",
                                 "  \"coordinator_page_port\": 0,\n"}) {
    ASSERT_NE(text.find(line), std::string::npos) << text;
    text.erase(text.find(line), line.size());
  }
  std::ofstream(path) << text;
  const auto read = ReadClusterSettings(folder.path());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->devices.ToText(), "cpu:3");
  EXPECT_EQ(read->keep_ended, "all");
  EXPECT_EQ(read->coordinator_page_port, 0);
}

TEST(ProcessTest, ThisProcessLivesAndARecycledNumberDoesNot) {
  const auto self = FindProcess(getpid());
  ASSERT_TRUE(self.has_value());
  EXPECT_TRUE(IsAlive(*self));
  const ProcessId recycled{.pid = self->pid, .start_ticks = self->start_ticks + 1};
  EXPECT_FALSE(IsAlive(recycled));
  // The signal would end this test if it were sent.
  SignalProcess(recycled, SIGKILL);
  EXPECT_FALSE(IsAlive({}));
}

TEST(ProcessTest, ADetachedProcessHasItsLogAndASessionOfItsOwn) {
  const TemporaryDirectory folder;
  const std::string log = folder.path() + "/log";
  const auto process =
      StartDetached({"/bin/sh", "-c", "echo hello; ls /proc/self/fd | wc -l; exec sleep 60"}, log);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_TRUE(IsAlive(*process));
  const auto written = [&] {
    std::ifstream file(log);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (written().find('\n', 6) == std::string::npos && std::chrono::steady_clock::now() < end) {
    sched_yield();
  }
  EXPECT_EQ(getsid(process->pid), process->pid);
  // The descriptors are 0, 1, 2 and the one that ls has open on the folder itself.
  EXPECT_EQ(written(), "hello\n4\n");
  SignalProcess(*process, SIGKILL);
  EXPECT_EQ(waitpid(process->pid, nullptr, 0), process->pid);
  EXPECT_FALSE(IsAlive(*process));
}

TEST(ProcessTest, FreePortsDiffer) {
  const auto ports = FindFreePorts(20);
  ASSERT_TRUE(ports.ok());
  EXPECT_EQ(std::set<int>(ports->begin(), ports->end()).size(), 20u);
}

}  // namespace
}  // namespace troupe
