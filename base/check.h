// TROUPE_CHECK is for our own bugs and stays on in release builds: it prints the condition and a
// message, then aborts. Data from users, files or peers must never reach a CHECK; it produces a
// Status.
#ifndef TROUPE_BASE_CHECK_H_
#define TROUPE_BASE_CHECK_H_

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace troupe::internal {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              std::string_view message);
}  // namespace troupe::internal

// TROUPE_CHECK(x > 0, "x is {}", x): the message is optional.
#define TROUPE_CHECK(condition, ...)                                                  \
  do {                                                                                \
    if (__builtin_expect(!(condition), 0)) {                                          \
      ::troupe::internal::CheckFailed(__FILE__, __LINE__, #condition,                 \
                                      ::troupe::internal::CheckMessage(__VA_ARGS__)); \
    }                                                                                 \
  } while (false)

#define TROUPE_CHECK_OK(expression)                                                          \
  do {                                                                                       \
    if (const auto& _check_status = (expression); !_check_status.ok()) {                     \
      ::troupe::internal::CheckFailed(                                                       \
          __FILE__, __LINE__, #expression,                                                   \
          std::string_view(_check_status.message().data(), _check_status.message().size())); \
    }                                                                                        \
  } while (false)

namespace troupe::internal {
inline std::string CheckMessage() { return {}; }
template <typename... Args>
std::string CheckMessage(fmt::format_string<Args...> format, Args&&... args) {
  return fmt::format(format, std::forward<Args>(args)...);
}
}  // namespace troupe::internal

#endif  // TROUPE_BASE_CHECK_H_
