// Shares the core claims of the daemons of one host: a directory in which each daemon holds a file
// locked as long as it lives. The kernel releases the lock when the process dies, so a dead daemon
// claims nothing, however it died.
//
// Only one thread may use it.
#ifndef TROUPE_WORKER_DAEMON_CORE_TABLE_H_
#define TROUPE_WORKER_DAEMON_CORE_TABLE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "troupe/v1/rank.pb.h"

namespace troupe {

class CoreTable {
 public:
  // Memory of the host that all its users see.
  static constexpr char kDefaultDirectory[] = "/dev/shm/troupe-cores";

  // Creates `directory` if it is missing, open to all users. Errors name a path that cannot be
  // opened or written.
  static StatusOr<std::unique_ptr<CoreTable>> Open(const std::string& directory);
  // Withdraws the claims.
  ~CoreTable();
  CoreTable(const CoreTable&) = delete;
  CoreTable& operator=(const CoreTable&) = delete;

  // Replaces the claims that this table published before, atomically for readers.
  Status Publish(const v1::CoreClaims& claims);

  // Returns the claims of all other living daemons, in a fixed order. Removes the files of dead
  // ones.
  StatusOr<std::vector<v1::CoreClaims>> Others();

 private:
  explicit CoreTable(std::string directory);
  std::string Path(std::string_view suffix) const;  // path of this daemon's file

  const std::string directory_;
  const std::string name_;  // name of this daemon's files, without suffix
  int lock_ = -1;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_CORE_TABLE_H_
