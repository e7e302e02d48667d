#include "worker/daemon/session_files.h"

#include <string>

namespace troupe {

session::CheckpointReadBack ReadBackAnswer(const v1::VerifyCheckpoint& request,
                                           const Status& found) {
  session::CheckpointReadBack read;
  read.verified.set_job(request.job());
  read.verified.set_attempt(request.attempt());
  read.verified.set_path(request.path());
  read.verified.set_ok(found.ok());
  read.verified.set_damaged(found.code() == StatusCode::kDataLoss);
  read.verified.set_reason(std::string(Message(found)));
  return read;
}

}  // namespace troupe
