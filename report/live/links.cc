#include "report/live/links.h"

#include <fmt/format.h>

#include "plan/job/job_name.h"

namespace troupe {
namespace {

bool IsUnreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

}  // namespace

std::string PercentEncoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (IsUnreserved(c)) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::string ClusterLink(std::string_view state, std::string_view name_space) {
  std::string link = "/";
  if (!state.empty()) link += "?state=" + PercentEncoded(state);
  if (!name_space.empty())
    link += (state.empty() ? "?namespace=" : "&namespace=") + PercentEncoded(name_space);
  return link;
}

std::string JobLink(const std::string& job) { return "/jobs/" + PercentEncoded(JobId(job)); }

std::string LogsLink(const std::string& job, std::optional<int> rank) {
  const std::string link = JobLink(job) + "/logs";
  return rank ? fmt::format("{}?rank={}", link, *rank) : link;
}

}  // namespace troupe
