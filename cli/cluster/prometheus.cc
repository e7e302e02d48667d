#include "cli/cluster/prometheus.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/durable_write.h"
#include "base/file_system.h"
#include "base/text/printable.h"
#include "base/text_file.h"
#include "cli/cluster/process.h"
#include "cli/cluster/prometheus_rules.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The oldest version with which the boards and rules are tested.
constexpr std::pair<int, int> kOldestVersion = {2, 42};
constexpr std::chrono::seconds kVersionLimit{10};
constexpr milliseconds kVersionPoll{5};

std::string FolderOf(const std::string& folder) { return JoinPath(folder, "prometheus"); }

bool IsProgram(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

// The number at the beginning of `text`, which it removes; -1: there is none.
int TakeNumber(std::string_view* text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || number < 0) return -1;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return number;
}

// JSON is YAML, and it quotes every path.
std::string Configuration() {
  const Json configuration = {
      {"global", {{"scrape_interval", "5s"}, {"evaluation_interval", "5s"}}},
      {"rule_files", Json::array({"rules.yaml"})},
      {"scrape_configs",
       Json::array({{{"job_name", "troupe"},
                     {"file_sd_configs",
                      Json::array({{{"files", Json::array({"../prometheus_targets.json"})}}})}}})}};
  return configuration.dump(2) + "\n";
}

}  // namespace

StatusOr<std::string> FindPrometheus(std::string_view path) {
  while (!path.empty()) {
    const size_t end = path.find(':');
    const std::string folder(path.substr(0, end));
    path.remove_prefix(end == std::string_view::npos ? path.size() : end + 1);
    std::error_code error;
    const std::string found =
        std::filesystem::absolute(JoinPath(folder.empty() ? "." : folder, "prometheus"), error)
            .lexically_normal()
            .string();
    // The settings of the cluster, which are JSON, have its path.
    if (!error && IsProgram(found) && TextFault(found).empty()) return found;
  }
  return FailedPrecondition(
      "--monitoring needs the program prometheus, which is in no folder of $PATH; install it "
      "(Debian: apt-get install prometheus), or leave out --monitoring");
}

Status CheckPrometheusVersion(const std::string& binary, std::string_view output) {
  constexpr std::string_view kBefore = "prometheus, version ";
  const size_t at = output.find(kBefore);
  std::string_view rest = at == std::string_view::npos ? "" : output.substr(at + kBefore.size());
  const std::string version(rest.substr(0, rest.find_first_of(" \n")));
  const int major = TakeNumber(&rest);
  const bool has_minor = major >= 0 && rest.starts_with('.');
  if (has_minor) rest.remove_prefix(1);
  const int minor = has_minor ? TakeNumber(&rest) : -1;
  if (minor < 0) {
    return FailedPrecondition("{} --version states no version of Prometheus; it prints: {}", binary,
                              output.substr(0, 500));
  }
  if (std::pair(major, minor) < kOldestVersion) {
    return FailedPrecondition("{} is Prometheus {}, which is too old: --monitoring needs {}.{}",
                              binary, version, kOldestVersion.first, kOldestVersion.second);
  }
  return OkStatus();
}

Status CheckPrometheus(const std::string& folder, const std::string& binary) {
  PosixFileSystem files;
  TROUPE_RETURN_IF_ERROR(MakeDirectories(files, FolderOf(folder)));
  const std::string log = JoinPath(FolderOf(folder), "version.log");
  TROUPE_RETURN_IF_ERROR(WriteFileDurably(files, log, {}));
  const StatusOr<ProcessId> process = StartDetached({binary, "--version"}, log);
  const auto end = steady_clock::now() + kVersionLimit;
  // A process that has already ended leaves its output too.
  while (process.ok() && IsAlive(*process)) {
    if (steady_clock::now() > end) {
      SignalGroup(*process, SIGKILL);
      waitpid(process->pid, nullptr, 0);
      return FailedPrecondition("{} --version did not end within {} s", binary,
                                kVersionLimit.count());
    }
    std::this_thread::sleep_for(kVersionPoll);
  }
  if (process.ok()) waitpid(process->pid, nullptr, 0);
  TROUPE_ASSIGN_OR_RETURN(const std::string output, ReadTextFile(log));
  return CheckPrometheusVersion(binary, output);
}

Status WritePrometheusFiles(const std::string& folder) {
  PosixFileSystem files;
  TROUPE_RETURN_IF_ERROR(MakeDirectories(files, FolderOf(folder)));
  TROUPE_RETURN_IF_ERROR(WriteFileDurably(files, JoinPath(FolderOf(folder), "prometheus.yaml"),
                                          AsBytes(Configuration())));
  return WriteFileDurably(files, JoinPath(FolderOf(folder), "rules.yaml"),
                          AsBytes(std::string(kPrometheusRules)));
}

std::vector<std::string> PrometheusCommand(const std::string& folder, const std::string& binary,
                                           int port) {
  return {binary, "--config.file=" + JoinPath(FolderOf(folder), "prometheus.yaml"),
          "--storage.tsdb.path=" + JoinPath(FolderOf(folder), "data"),
          fmt::format("--web.listen-address=127.0.0.1:{}", port)};
}

std::string PrometheusUrl(int port) { return fmt::format("http://127.0.0.1:{}", port); }

bool IsPrometheusReady(int port) {
  constexpr std::string_view kRequest =
      "GET /-/ready HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return false;
  const timeval limit{.tv_sec = 1, .tv_usec = 0};
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  char answer[16] = {};
  const bool answered =
      connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      send(descriptor, kRequest.data(), kRequest.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(kRequest.size()) &&
      recv(descriptor, answer, sizeof answer - 1, MSG_WAITALL) > 0;
  close(descriptor);
  const std::string_view line = answer;
  return answered && line.starts_with("HTTP/1.") && line.substr(8).starts_with(" 200");
}

}  // namespace troupe
