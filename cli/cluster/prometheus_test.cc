#include "cli/cluster/prometheus.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/temporary_directory.h"
#include "base/text_file.h"

namespace troupe {
namespace {

// Writes a program of the shell to `path`.
void WriteProgram(const std::string& path, const std::string& body) {
  std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
  chmod(path.c_str(), 0755);
}

TEST(PrometheusTest, IsFoundInTheFoldersOfThePath) {
  const TemporaryDirectory one, two;
  const std::string path = one.path() + ":" + two.path();
  const Status absent = FindPrometheus(path).status();
  EXPECT_EQ(absent.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(Message(absent).find("apt-get install prometheus"), std::string::npos) << absent;
  std::ofstream(one.Child("prometheus")) << "not a program";
  WriteProgram(two.Child("prometheus"), "true");
  const auto found = FindPrometheus(path);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, two.Child("prometheus"));
}

TEST(PrometheusTest, AVersionThatIsTooOldIsNamed) {
  for (const char* good : {"prometheus, version 2.42.0+ds (branch: debian/sid)\n",
                           "prometheus, version 2.100.1\n", "prometheus, version 3.0.0-rc.1"}) {
    EXPECT_TRUE(CheckPrometheusVersion("/p", good).ok()) << good;
  }
  const Status old = CheckPrometheusVersion("/p", "prometheus, version 2.24.1+ds (branch: x)\n");
  EXPECT_EQ(Message(old), "/p is Prometheus 2.24.1+ds, which is too old: --monitoring needs 2.42");
  for (const char* bad : {"", "usage: prometheus [FILE]", "prometheus, version x", "version 2.50.0",
                          "prometheus, version 2", "prometheus, version 99999999999.1"}) {
    const Status status = CheckPrometheusVersion("/p", bad);
    EXPECT_NE(Message(status).find("states no version"), std::string::npos) << bad;
  }
}

TEST(PrometheusTest, ItsOwnOutputIsChecked) {
  const TemporaryDirectory folder;
  const std::string program = folder.Child("prometheus-of-the-test");
  WriteProgram(program, "echo prometheus, version 1.8.2 >&2");
  const Status old = CheckPrometheus(folder.path(), program);
  EXPECT_NE(Message(old).find("is Prometheus 1.8.2, which is too old"), std::string::npos) << old;
  WriteProgram(program, "echo prometheus, version 2.53.0");
  EXPECT_TRUE(CheckPrometheus(folder.path(), program).ok());
}

TEST(PrometheusTest, GetsTheTargetsAndTheRulesOfTheCluster) {
  const TemporaryDirectory folder;
  ASSERT_TRUE(WritePrometheusFiles(folder.path()).ok());
  const auto configuration = ReadTextFile(folder.Child("prometheus/prometheus.yaml"));
  ASSERT_TRUE(configuration.ok());
  const auto json = nlohmann::json::parse(*configuration);
  EXPECT_EQ(json["scrape_configs"][0]["file_sd_configs"][0]["files"][0],
            "../prometheus_targets.json");
  const auto rules = ReadTextFile(folder.Child("prometheus/rules.yaml"));
  ASSERT_TRUE(rules.ok());
  EXPECT_NE(rules->find("alert: TroupeJobStalled"), std::string::npos);
  EXPECT_NE(rules->find("{{ $labels.job_name }}"), std::string::npos);
}

TEST(PrometheusTest, ListensOnTheLoopback) {
  const auto command = PrometheusCommand("/folder", "/bin/prometheus", 7);
  EXPECT_EQ(command[0], "/bin/prometheus");
  EXPECT_EQ(command.back(), "--web.listen-address=127.0.0.1:7");
  EXPECT_EQ(PrometheusUrl(7), "http://127.0.0.1:7");
  EXPECT_FALSE(IsPrometheusReady(1));
}

}  // namespace
}  // namespace troupe
