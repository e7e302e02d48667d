#include "base/failpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "base/check.h"
#include "base/flag_parser.h"

namespace troupe {
namespace {

constexpr FailpointName kNames[] = {
    {"checkpoint.snapshot", "rank: before its snapshot is taken"},
    {"checkpoint.shard.created", "rank: temporary file created, nothing written"},
    {"checkpoint.shard.written", "rank: bytes written to the temporary file, not synced"},
    {"checkpoint.shard.synced", "rank: temporary file synced, not renamed"},
    {"checkpoint.shard.renamed", "rank: renamed, directory not synced"},
    {"checkpoint.shard.durable", "rank: directory synced, vote not sent"},
    {"checkpoint.vote.sent", "rank: vote submitted to the stream"},
    {"checkpoint.manifest.begin", "rank 0: all votes received, manifest not begun"},
    {"checkpoint.manifest.created", "rank 0: manifest's temporary file created, nothing written"},
    {"checkpoint.manifest.written", "rank 0: manifest written, not synced"},
    {"checkpoint.manifest.synced", "rank 0: manifest's temporary file synced, not renamed"},
    {"checkpoint.manifest.renamed", "rank 0: manifest renamed, directory not synced"},
    {"checkpoint.manifest.durable", "rank 0: manifest durable, ManifestDone not sent"},
    {"checkpoint.delete.begin", "worker: tombstone recorded, nothing unlinked"},
    {"checkpoint.delete.unlinked", "worker: first file unlinked"},
    {"checkpoint.verify.begin", "worker: asked to read a commit back, nothing read"},
    {"checkpoint.load.verified", "rank: manifest and sizes verified, no tensor loaded"},
    {"catalog.intent.recorded", "coordinator: checkpoint intent durable, not sent"},
    {"catalog.votes.complete", "coordinator: last vote received, WriteManifest not sent"},
    {"catalog.commit.before", "coordinator: ManifestDone received, commit not written"},
    {"catalog.commit.after", "coordinator: commit durable, CheckpointFinalized not sent"},
    {"catalog.job.recorded", "coordinator: job durable, CreateJob not acknowledged"},
    {"catalog.ticket.recorded", "coordinator: ticket recorded, not sent to all ranks"},
    {"catalog.epoch.recorded", "coordinator: group epoch durable, StartRanks not sent"},
    {"catalog.tombstone.recorded", "coordinator: DELETING durable, DeleteCheckpoint not sent"},
    {"catalog.verified.recorded", "coordinator: a commit's verification durable, nothing sent"},
    {"step.begin", "rank: before a step's first action"},
    {"step.device_fault", "rank: its device fails for good before a step (error)"},
    {"step.before_update", "rank: gradients reduced, optimizer not run"},
    {"step.after_update", "rank: step applied, not reported"},
    {"session.before_hello", "worker: connected, Hello not sent"},
    {"file.created", "any process: temporary file of a durable write created, nothing written"},
    {"file.written", "any process: bytes written to the temporary file, not synced"},
    {"file.synced", "any process: temporary file synced, not renamed"},
    {"file.renamed", "any process: renamed, folder not synced"},
    {"file.durable", "any process: folder synced"},
};

enum class Action { kKill, kError, kDelay };

struct Armed {
  Action action = Action::kKill;
  int64_t delay_ms = 0;
  int64_t at_hit = 0;  // 0: every hit
  int64_t hits = 0;
};

struct Registry {
  std::mutex mutex;
  std::map<std::string, Armed, std::less<>> armed;
  std::string once_directory;
};

// Leaked on purpose: a thread may still hit a point while the process exits.
Registry& TheRegistry() {
  static Registry& registry = *new Registry;
  return registry;
}

bool IsKnown(std::string_view name) {
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](const FailpointName& known) { return known.name == name; });
}

StatusOr<int64_t> ParseNumber(std::string_view text, std::string_view entry, int64_t least) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least) {
    return InvalidArgument("TROUPE_FAILPOINTS: \"{}\" in \"{}\" is not a number >= {}", text, entry,
                           least);
  }
  return value;
}

Status ParseEntry(std::string_view entry, std::map<std::string, Armed, std::less<>>& armed) {
  const size_t equals = entry.find('=');
  if (equals == std::string_view::npos) {
    return InvalidArgument("TROUPE_FAILPOINTS: \"{}\" has no \"=\"; the form is name=action",
                           entry);
  }
  const std::string_view name = entry.substr(0, equals);
  std::string_view action = entry.substr(equals + 1);
  if (!IsKnown(name)) {
    std::string names;
    for (const FailpointName& known : kNames) names += fmt::format(" {}", known.name);
    return InvalidArgument("TROUPE_FAILPOINTS: unknown name \"{}\"; there are:{}", name, names);
  }
  Armed point;
  bool every_hit = true;
  if (const size_t at = action.find('@'); at != std::string_view::npos) {
    TROUPE_ASSIGN_OR_RETURN(point.at_hit, ParseNumber(action.substr(at + 1), entry, 1));
    every_hit = false;
    action = action.substr(0, at);
  }
  if (action == "kill") {
    point.action = Action::kKill;
    if (every_hit) point.at_hit = 1;
  } else if (action == "error") {
    point.action = Action::kError;
  } else if (action.starts_with("delay:")) {
    point.action = Action::kDelay;
    TROUPE_ASSIGN_OR_RETURN(point.delay_ms, ParseNumber(action.substr(6), entry, 0));
  } else {
    return InvalidArgument(
        "TROUPE_FAILPOINTS: action \"{}\" of {} is not one of kill, error, delay:MS", action, name);
  }
  if (!armed.emplace(name, point).second) {
    return InvalidArgument("TROUPE_FAILPOINTS: {} is named twice", name);
  }
  return OkStatus();
}

// Returns true in the one process that may die at `name`.
bool MayDie(const std::string& once_directory, std::string_view name) {
  if (once_directory.empty()) return true;
  const std::string path = fmt::format("{}/{}", once_directory, name);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  close(fd);
  return true;
}

}  // namespace

namespace internal {

std::atomic<bool> failpoints_armed{false};

Status HitArmedFailpoint(std::string_view name) {
  TROUPE_CHECK(IsKnown(name), "failpoint {} is not in the list", name);
  Registry& registry = TheRegistry();
  Armed point;
  {
    const std::lock_guard lock(registry.mutex);
    const auto found = registry.armed.find(name);
    if (found == registry.armed.end()) return OkStatus();
    ++found->second.hits;
    point = found->second;
  }
  if (point.at_hit != 0 && point.hits != point.at_hit) return OkStatus();
  switch (point.action) {
    case Action::kKill:
      if (MayDie(registry.once_directory, name)) kill(getpid(), SIGKILL);
      return OkStatus();
    case Action::kError:
      return Unavailable("failpoint {}", name);
    case Action::kDelay:
      std::this_thread::sleep_for(std::chrono::milliseconds(point.delay_ms));
      return OkStatus();
  }
  return OkStatus();
}

}  // namespace internal

std::span<const FailpointName> AllFailpoints() { return kNames; }

Status ArmFailpoints(std::string_view text, std::string once_directory) {
  std::map<std::string, Armed, std::less<>> armed;
  while (!text.empty()) {
    const size_t end = std::min(text.find(';'), text.size());
    if (end > 0) TROUPE_RETURN_IF_ERROR(ParseEntry(text.substr(0, end), armed));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  registry.armed = std::move(armed);
  registry.once_directory = std::move(once_directory);
  internal::failpoints_armed = !registry.armed.empty();
  return OkStatus();
}

Status ArmFailpointsFromEnvironment(bool allowed) {
  TROUPE_ASSIGN_OR_RETURN(const std::optional<std::string> text,
                          TextFromEnvironment("TROUPE_FAILPOINTS"));
  if (text && !allowed) {
    return InvalidArgument(
        "TROUPE_FAILPOINTS is set to \"{}\", which makes this process die, fail or wait on "
        "purpose: remove it from the environment, or permit it with {}",
        *text, kAllowFailpointsFlag);
  }
  TROUPE_ASSIGN_OR_RETURN(const std::optional<std::string> once,
                          TextFromEnvironment("TROUPE_FAILPOINTS_ONCE_DIR"));
  return ArmFailpoints(text.value_or(""), once.value_or(""));
}

}  // namespace troupe
