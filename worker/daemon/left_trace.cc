#include "worker/daemon/left_trace.h"

#include "worker/rank/rank_trace.h"
#include "worker/session/rank_log_path.h"

namespace troupe {
namespace {

constexpr int64_t kTraceBytesMax = 16 << 20;

StatusOr<v1::RankTrace> Read(FileSystem& files, const std::string& path,
                             const v1::TraceRequest& request, int rank) {
  const StatusOr<std::string> bytes = ReadFile(files, path, kTraceBytesMax, SymbolicLinks::kRefuse);
  v1::RankTrace trace;
  const bool parsed = bytes.ok() && trace.ParseFromString(*bytes);
  if (!parsed || trace.rank() != rank || trace.group_epoch() != request.group_epoch()) {
    return FailedPrecondition("rank {} has ended and left no trace of start {} of the ranks", rank,
                              request.group_epoch());
  }
  TROUPE_RETURN_IF_ERROR(CheckHeld(trace, request.first_step(), request.last_step()));
  return OnlySteps(trace, request.first_step(), request.last_step());
}

}  // namespace

v1::WorkerMessage ReadLeftTrace(FileSystem& files, const session::Config& config,
                                const v1::TraceRequest& request, int rank) {
  v1::WorkerMessage message;
  v1::RankTrace& answer = *message.mutable_rank_trace();
  StatusOr<v1::RankTrace> trace =
      Read(files, RankTracePath(session::RankLogPath(config, request.job(), rank)), request, rank);
  if (trace.ok()) {
    answer = *std::move(trace);
  } else {
    answer.set_code(static_cast<int>(trace.status().code()));
    answer.set_message(std::string(Message(trace.status())));
  }
  answer.set_request(request.request());
  answer.set_job(request.job());
  answer.set_group_epoch(request.group_epoch());
  answer.set_rank(rank);
  return message;
}

}  // namespace troupe
