#include "base/security/grpc_log.h"

#include <grpc/support/log.h>

#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/log.h"
#include "base/security/record_limit.h"

namespace troupe {
namespace {

// gRPC knows a plain function only, so its state is one of the process.
std::optional<int64_t> Admit(const gpr_log_func_args& record) {
  static std::mutex& mutex = *new std::mutex;
  static RecordLimit& limit = *new RecordLimit;
  const std::lock_guard lock(mutex);
  return limit.Admit(record.file, record.line, SystemClock().Now());
}

void LogRecord(gpr_log_func_args* record) {
  const std::string_view message = record->message;
  if (message.starts_with("No match found for server name")) return;
  const std::optional<int64_t> dropped = Admit(*record);
  if (!dropped) return;
  // An error of gRPC is one of a single connection or call.
  const LogLevel level = record->severity == GPR_LOG_SEVERITY_ERROR  ? LogLevel::kWarning
                         : record->severity == GPR_LOG_SEVERITY_INFO ? LogLevel::kInfo
                                                                     : LogLevel::kDebug;
  const std::string note =
      *dropped == 0 ? "" : fmt::format(" ({} records like this were left out)", *dropped);
  WriteLog(level, "grpc", std::string(message) + note);
}

}  // namespace

void LogGrpcRecords() { gpr_set_log_function(LogRecord); }

void DropGrpcRecords() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function([](gpr_log_func_args*) {});
}

}  // namespace troupe
