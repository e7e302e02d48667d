#include "base/security/grpc_log.h"

#include <grpc/support/log.h>

#include <cstdlib>
#include <string_view>

#include "base/log.h"

namespace troupe {
namespace {

void LogRecord(gpr_log_func_args* record) {
  const std::string_view message = record->message;
  if (message.starts_with("No match found for server name")) return;
  // An error of gRPC is one of a single connection or call.
  const LogLevel level = record->severity == GPR_LOG_SEVERITY_ERROR  ? LogLevel::kWarning
                         : record->severity == GPR_LOG_SEVERITY_INFO ? LogLevel::kInfo
                                                                     : LogLevel::kDebug;
  WriteLog(level, "grpc", message);
}

}  // namespace

void LogGrpcRecords() { gpr_set_log_function(LogRecord); }

void DropGrpcRecords() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function([](gpr_log_func_args*) {});
}

}  // namespace troupe
