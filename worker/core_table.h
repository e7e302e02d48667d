// What the daemons of one host tell one another of the cores that their ranks use: a directory in
// which each daemon holds a file locked as long as it lives. The kernel lets go of the
// lock when the process dies, so a dead daemon claims nothing, however it died.
//
// To be used by one thread.
#ifndef TROUPE_WORKER_CORE_TABLE_H_
#define TROUPE_WORKER_CORE_TABLE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "troupe/v1/rank.pb.h"

namespace troupe {

class CoreTable {
 public:
  // Memory of the host, which all its users see.
  static constexpr char kDefaultDirectory[] = "/dev/shm/troupe-cores";

  // Makes `directory` where it is missing, open to all users. What cannot be opened or written is
  // an error that names the path.
  static StatusOr<std::unique_ptr<CoreTable>> Open(const std::string& directory);
  // Withdraws the claims.
  ~CoreTable();
  CoreTable(const CoreTable&) = delete;
  CoreTable& operator=(const CoreTable&) = delete;

  // In place of what this table published before; others see the one or the other, never a part.
  Status Publish(const v1::CoreClaims& claims);

  // The claims of all other daemons that live, in a fixed order. Files of dead ones are removed.
  StatusOr<std::vector<v1::CoreClaims>> Others();

 private:
  explicit CoreTable(std::string directory);
  std::string Path(std::string_view suffix) const;  // of this daemon's file

  const std::string directory_;
  const std::string name_;  // of this daemon's files, without suffix
  int lock_ = -1;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_CORE_TABLE_H_
