#include "plan/layout/worker_name.h"

#include <algorithm>

namespace troupe {
namespace {

constexpr size_t kMaxNameBytes = 253;

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_';
}

}  // namespace

Status CheckWorkerName(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes || !std::ranges::all_of(name, IsNameByte)) {
    return InvalidArgument("name must be 1 to {} of [A-Za-z0-9._-]", kMaxNameBytes);
  }
  if (name == "." || name == "..")
    return InvalidArgument("name must not be a path: \".\" or \"..\"");
  return OkStatus();
}

}  // namespace troupe
