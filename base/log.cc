#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>

#include "base/log_rotation.h"
#include "base/text/printable.h"

namespace troupe {
namespace {

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>("troupe",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %L %v", spdlog::pattern_time_type::utc);
    made->flush_on(spdlog::level::info);
    return made;
  }();
  return *logger;
}

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kNone:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

std::mutex context_mutex;
std::string& Context() {
  static std::string context;
  return context;
}

}  // namespace

void SetLogLevel(LogLevel level) { Logger().set_level(ToSpdlog(level)); }

void SetLogContext(std::string context) {
  std::lock_guard lock(context_mutex);
  Context() = std::move(context);
}

void WriteLog(LogLevel level, std::string_view area, std::string_view message) {
  std::string context;
  {
    std::lock_guard lock(context_mutex);
    context = Context();
  }
  Logger().log(
      ToSpdlog(level), "{}",
      PrintableLine(fmt::format("{}{}{} {}", area, context.empty() ? "" : " ", context, message)));
  RotateLogIfFull();
}

}  // namespace troupe
