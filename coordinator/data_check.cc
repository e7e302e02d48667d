#include "coordinator/data_check.h"

#include <sys/utsname.h>

#include <algorithm>
#include <utility>

#include "data/job_data.h"
#include "plan/violation.h"

namespace troupe {
namespace {

constexpr size_t kMaxWaiting = 256;

bool FolderIsHere(FileSystem& files, const std::string& prefix) {
  return files.Stat(ParentDirectory(prefix), SymbolicLinks::kFollow).ok();
}

}  // namespace

Status CheckJobData(FileSystem& files, const v1::JobSpec& complete, bool must_be_here) {
  const DatasetOptions options = MakeDatasetOptions(complete);
  if (!must_be_here &&
      (!FolderIsHere(files, options.train) ||
       (!options.validation.empty() && !FolderIsHere(files, options.validation)))) {
    return OkStatus();
  }
  const auto dataset = Dataset::Open(files, options);
  if (dataset.ok()) return OkStatus();
  return RefuseData(complete, FieldToBlame(files, options), dataset.status());
}

bool AllWorkersAreHere(const Fleet& fleet) {
  utsname host{};
  if (uname(&host) != 0) return false;
  return !fleet.workers.empty() &&
         std::all_of(fleet.workers.begin(), fleet.workers.end(),
                     [&](const auto& worker) { return worker.second.hello.host() == host.nodename; });
}

DataCheck::DataCheck() : thread_([this] { Run(); }) {}

void DataCheck::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void DataCheck::Check(v1::JobSpec complete, bool must_be_here, std::function<void(Status)> done) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    if (waiting_.size() < kMaxWaiting) {
      waiting_.push_back([complete = std::move(complete), must_be_here, done] {
        PosixFileSystem files;
        done(CheckJobData(files, complete, must_be_here));
      });
      changed_.notify_all();
      return;
    }
  }
  done(ResourceExhausted("{} new jobs wait for a look at their data", kMaxWaiting));
}

void DataCheck::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    const std::function<void()> check = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    check();
    lock.lock();
  }
}

}  // namespace troupe
