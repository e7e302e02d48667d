#include "coordinator/service/namespaces_watch.h"

#include <chrono>
#include <utility>

#include "base/log.h"
#include "plan/job/job_file.h"

namespace troupe {
namespace {

constexpr std::chrono::seconds kFileInterval{1};

}  // namespace

StatusOr<NamespacesFile> ReadNamespacesFile(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(std::string text, ReadKeys(path));
  TROUPE_ASSIGN_OR_RETURN(auto namespaces, Namespaces::Parse(text, path));
  return NamespacesFile{path, std::move(text), std::move(namespaces)};
}

NamespacesWatch::NamespacesWatch(NamespacesFile file, Changed changed)
    : changed_(std::move(changed)), used_(std::move(file)) {
  thread_ = std::thread([this] { Run(); });
}

NamespacesWatch::~NamespacesWatch() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

Status NamespacesWatch::Read() {
  const std::lock_guard lock(mutex_);
  const Status status = ReadLocked();
  const std::string error = status.ok() ? "" : std::string(Message(status));
  if (error != reported_ && !error.empty()) {
    LogWarning("coordinator", "the former namespaces stay in use: {}", error);
  } else if (error != reported_) {
    LogInfo("coordinator", "the namespaces in use are those of {} again", used_.path);
  }
  reported_ = error;
  return status;
}

Status NamespacesWatch::ReadLocked() {
  const StatusOr<std::string> text = ReadKeys(used_.path);
  if (text.ok() && *text == used_.text) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(NamespacesFile file, ReadNamespacesFile(used_.path));
  used_ = std::move(file);
  LogInfo("coordinator", "the changed namespaces of {} are in use", used_.path);
  changed_(used_.namespaces);
  return OkStatus();
}

void NamespacesWatch::Run() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kFileInterval, [this] { return ends_; })) {
    lock.unlock();
    Read().IgnoreError();  // the log has it
    lock.lock();
  }
}

}  // namespace troupe
