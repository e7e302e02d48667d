// A rank process as its daemon holds it: started by exec, spoken to over a socket, watched through
// a pidfd.
//
// To be used by the daemon's main thread alone: the child's parent-death signal hangs on the thread
// that starts it.
#ifndef TROUPE_WORKER_RANK_CHILD_H_
#define TROUPE_WORKER_RANK_CHILD_H_

#include <sys/types.h>

#include <deque>
#include <memory>
#include <string>

#include "base/status.h"
#include "troupe/v1/rank.pb.h"
#include "worker/executor/step_progress.h"
#include "worker/rank/frame.h"

namespace troupe {

struct ChildEnd {
  int exit_code = 0;
  int signal = 0;
};

class RankChild {
 public:
  // Starts `executable` as a rank process. RESOURCE_EXHAUSTED or what the system says where it
  // cannot be started.
  static StatusOr<std::unique_ptr<RankChild>> Start(const std::string& executable);
  // Kills it if it still runs, and waits for its end.
  ~RankChild();
  RankChild(const RankChild&) = delete;
  RankChild& operator=(const RankChild&) = delete;

  pid_t pid() const { return pid_; }
  int socket() const { return socket_; }
  int end_descriptor() const { return pidfd_; }  // readable once the process has ended

  // Queues a command and writes what the socket takes.
  void Send(const v1::RankCommand& command);
  // True while something waits to be written.
  bool wants_write() const { return !outgoing_.empty(); }
  void Write();

  // What has arrived; what does not parse ends the process.
  std::deque<v1::RankReport> Read();

  void Kill();
  // REQUIRES: end_descriptor() is readable.
  ChildEnd Reap();

  std::string LastOperation() const { return Describe(*progress_); }
  // RssAnon + RssShmem; 0 if it is gone.
  int64_t MemoryBytes() const;

 private:
  RankChild() = default;

  pid_t pid_ = -1;
  int socket_ = -1;
  int pidfd_ = -1;
  bool reaped_ = false;
  StepProgress* progress_ = nullptr;
  std::string outgoing_;
  FrameDecoder decoder_;
};

// RssAnon + RssShmem of a process, in bytes; 0 if there is none.
int64_t ProcessMemoryBytes(pid_t pid);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_CHILD_H_
