#include "plan/job/job_name.h"

#include <algorithm>
#include <cstddef>

namespace troupe {
namespace {

constexpr std::string_view kJobPrefix = "jobs/";
constexpr size_t kMaxNameLength = 64;

bool IsAlphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

}  // namespace

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxNameLength && IsAlphanumeric(text.front()) &&
         IsAlphanumeric(text.back()) &&
         std::ranges::all_of(text, [](char c) { return IsAlphanumeric(c) || c == '-'; });
}

bool IsJobId(std::string_view text) {
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos) return IsName(text);
  return IsName(text.substr(0, dot)) && IsName(text.substr(dot + 1));
}

std::string_view NamespaceOf(std::string_view id) {
  const size_t dot = id.find('.');
  return dot == std::string_view::npos ? kDefaultNamespace : id.substr(0, dot);
}

std::string JobId(const std::string& name) {
  return name.starts_with(kJobPrefix) ? name.substr(kJobPrefix.size()) : name;
}

std::string JobName(const std::string& id_or_name) {
  return std::string(kJobPrefix) + JobId(id_or_name);
}

}  // namespace troupe
