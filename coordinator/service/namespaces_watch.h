// Reads the file of namespaces again when it has changed.
//
// A thread reads the file once a second. A file that is not valid, such as a half-written one, is
// reported in the log, and the former namespaces stay in use. Thread-safe.
#ifndef TROUPE_COORDINATOR_SERVICE_NAMESPACES_WATCH_H_
#define TROUPE_COORDINATOR_SERVICE_NAMESPACES_WATCH_H_

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/status.h"
#include "coordinator/state/namespaces.h"

namespace troupe {

struct NamespacesFile {
  std::string path;
  std::string text;
  std::shared_ptr<const Namespaces> namespaces;  // those of the text
};

// INVALID_ARGUMENT if ReadKeys cannot read the file, or as Namespaces::Parse.
StatusOr<NamespacesFile> ReadNamespacesFile(const std::string& path);

class NamespacesWatch {
 public:
  using Changed = std::function<void(std::shared_ptr<const Namespaces>)>;

  // `changed` is called, on the thread, with the namespaces of each valid file that differs from
  // the one before, the first time from `file`.
  NamespacesWatch(NamespacesFile file, Changed changed);
  ~NamespacesWatch();
  NamespacesWatch(const NamespacesWatch&) = delete;
  NamespacesWatch& operator=(const NamespacesWatch&) = delete;

  // Reads the file now, as the thread does. The error, which is also in the log if it is new, is
  // the reason for which the former namespaces stay in use.
  Status Read();

 private:
  Status ReadLocked();
  void Run();

  const Changed changed_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;
  NamespacesFile used_;
  std::string reported_;  // the last error in the log
  std::thread thread_;    // the last member: it uses the others
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_NAMESPACES_WATCH_H_
