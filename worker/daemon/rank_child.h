// The daemon's handle of a rank process: started by exec, controlled over a socket, watched through
// a pidfd.
//
// Not thread-safe. The thread that starts a child must live as long as the daemon, because the
// child's parent-death signal depends on that thread.
#ifndef TROUPE_WORKER_DAEMON_RANK_CHILD_H_
#define TROUPE_WORKER_DAEMON_RANK_CHILD_H_

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
  // Starts `executable` as a rank process. Returns RESOURCE_EXHAUSTED or the system's error if it
  // cannot be started.
  static StatusOr<std::unique_ptr<RankChild>> Start(const std::string& executable);
  // Kills the process if it still runs, and waits for its end.
  ~RankChild();
  RankChild(const RankChild&) = delete;
  RankChild& operator=(const RankChild&) = delete;

  pid_t pid() const { return pid_; }
  int socket() const { return socket_; }
  int end_descriptor() const { return pidfd_; }  // readable once the process has ended

  // Queues a command and writes as much as the socket accepts.
  void Send(const v1::RankCommand& command);
  // Whether data wait to be written.
  bool wants_write() const { return !outgoing_.empty(); }
  void Write();

  // Returns reports that have arrived; data that do not parse end the process. Reads for a limited
  // time: if has_more(), data may be left.
  std::deque<v1::RankReport> Read();
  bool has_more() const { return has_more_; }
  // Whether reports may still arrive: the process has neither closed its socket nor sent data that
  // do not parse.
  bool is_readable() const { return is_readable_; }

  void Kill();
  // REQUIRES: end_descriptor() is readable.
  ChildEnd Reap();

  std::string LastOperation() const { return Describe(*progress_); }
  // Returns RssAnon + RssShmem in bytes; 0 if the process is gone.
  int64_t MemoryBytes() const;

 private:
  RankChild() = default;

  pid_t pid_ = -1;
  int socket_ = -1;
  int pidfd_ = -1;
  bool reaped_ = false;
  bool has_more_ = false;
  bool is_readable_ = true;
  StepProgress* progress_ = nullptr;
  std::string outgoing_;
  FrameDecoder decoder_;
};

// Returns RssAnon + RssShmem of a process in bytes; 0 if there is none.
int64_t ProcessMemoryBytes(pid_t pid);

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_RANK_CHILD_H_
