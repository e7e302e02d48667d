// The reason for which a job's group ended or is to end. Pure.
#ifndef TROUPE_COORDINATOR_STATE_JOB_FAILURE_H_
#define TROUPE_COORDINATOR_STATE_JOB_FAILURE_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "troupe/v1/service.pb.h"

namespace troupe {

struct Breakdown {
  v1::Failure failure;
  bool secondary = false;  // follows from another failure that may still be reported
  bool fatal = false;      // would fail again in the same way: the job is not recovered
  // The host lacks what the job needs of it, checkpoint.folder, another folder that the job reads,
  // or shared memory: it is set aside and others are tried; without others the failure is fatal.
  bool of_host = false;
  // STORAGE: the data, model.from or checkpoint.initial_load cannot be read; checkpoint.folder is
  // not concerned.
  bool of_other_folder = false;
  std::set<std::string> link_suspects;  // secondary: workers whose broken link may be its cause
};

// `cause`: one of base/failure_cause.h, or the one that a worker stated.
v1::Failure MakeFailure(std::string_view cause, const std::string& message, int32_t rank = -1,
                        const std::string& worker = {});

// For logs and events, for example "RANK_CRASHED: rank 2 on worker-1: …".
std::string FailureText(const v1::Failure& failure);
// The same for the text of `event`, without the cause if the event has its name: "rank 2 on …".
std::string FailureTextUnder(std::string_view event, const v1::Failure& failure);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_STATE_JOB_FAILURE_H_
