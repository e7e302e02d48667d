#include "worker/session/rank_log_path.h"

#include <fmt/format.h>

namespace troupe::session {

std::string RankLogPath(const Config& config, const std::string& job, int rank) {
  // `job` is "jobs/NAME" or NAME; its last part names the directory.
  const size_t slash = job.rfind('/');
  return fmt::format("{}/{}/rank-{}.{}.log", config.log_directory,
                     slash == std::string::npos ? job : job.substr(slash + 1), rank,
                     config.identity.name());
}

}  // namespace troupe::session
