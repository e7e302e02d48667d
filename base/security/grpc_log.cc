#include "base/security/grpc_log.h"

#include <google/protobuf/stubs/logging.h>
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

// Writes the record unless its place, a line of a file, has had enough of them. The libraries know
// plain functions only, so the state is one of the process.
void WriteAdmitted(const char* file, int line, LogLevel level, std::string_view area,
                   std::string_view message) {
  static std::mutex& mutex = *new std::mutex;
  static RecordLimit& limit = *new RecordLimit;
  std::optional<int64_t> dropped;
  {
    const std::lock_guard lock(mutex);
    dropped = limit.Admit(file, line, SystemClock().Now());
  }
  if (!dropped) return;
  const std::string note =
      *dropped == 0 ? "" : fmt::format(" ({} records like this were left out)", *dropped);
  WriteLog(level, area, std::string(message) + note);
}

void LogRecord(gpr_log_func_args* record) {
  const std::string_view message = record->message;
  if (message.starts_with("No match found for server name")) return;
  // An error of gRPC is one of a single connection or call.
  const LogLevel level = record->severity == GPR_LOG_SEVERITY_ERROR  ? LogLevel::kWarning
                         : record->severity == GPR_LOG_SEVERITY_INFO ? LogLevel::kInfo
                                                                     : LogLevel::kDebug;
  WriteAdmitted(record->file, record->line, level, "grpc", message);
}

// Protocol Buffers reports a message that a peer sent damaged.
void LogProtobufRecord(google::protobuf::LogLevel severity, const char* file, int line,
                       const std::string& message) {
  const LogLevel level =
      severity == google::protobuf::LOGLEVEL_INFO ? LogLevel::kInfo : LogLevel::kWarning;
  WriteAdmitted(file, line, level, "protobuf", message);
}

}  // namespace

void LogGrpcRecords() {
  gpr_set_log_function(LogRecord);
  google::protobuf::SetLogHandler(LogProtobufRecord);
}

void DropGrpcRecords() {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function([](gpr_log_func_args*) {});
}

}  // namespace troupe
