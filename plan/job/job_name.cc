#include "plan/job/job_name.h"

#include <string_view>

namespace troupe {
namespace {

constexpr std::string_view kJobPrefix = "jobs/";

}  // namespace

std::string JobId(const std::string& name) {
  return name.starts_with(kJobPrefix) ? name.substr(kJobPrefix.size()) : name;
}

std::string JobName(const std::string& id_or_name) {
  return std::string(kJobPrefix) + JobId(id_or_name);
}

}  // namespace troupe
