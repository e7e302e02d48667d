// Reports the errors in a request: each violation names the field, its value and the relation that
// failed. A Status made from violations carries them as a google.rpc.BadRequest payload, so that
// they cross gRPC unchanged.
#ifndef TROUPE_PLAN_JOB_VIOLATION_H_
#define TROUPE_PLAN_JOB_VIOLATION_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// Type URL of the BadRequest payload of a Status.
inline constexpr char kBadRequestTypeUrl[] = "type.googleapis.com/google.rpc.BadRequest";

struct Violation {
  std::string field;        // "parallelism.tensor_parallel_degree"
  std::string description;  // "is 3, which does not divide num_attention_heads = 8"
};

// Collects violations; all are reported, not only the first. Not thread-safe.
class Violations {
 public:
  template <typename... Args>
  void Add(std::string field, fmt::format_string<Args...> format, Args&&... args) {
    list_.push_back({std::move(field), fmt::format(format, std::forward<Args>(args)...)});
  }

  // Adds a violation of `field` if both are above 0 and `degree` does not divide `value`, the value
  // of `other`.
  void AddUnlessDivides(const char* field, int64_t degree, const char* other, int64_t value) {
    if (degree > 0 && value > 0 && value % degree != 0) {
      Add(field, "is {}, which does not divide {} = {}", degree, other, value);
    }
  }

  // Whether `field` is refused. Relations to a key that is refused by itself need no check.
  bool Has(std::string_view field) const {
    return std::ranges::any_of(list_, [&](const Violation& each) { return each.field == field; });
  }

  bool empty() const { return list_.empty(); }
  const std::vector<Violation>& list() const { return list_; }

  // OK if empty; else `code` with one line for each violation, "field description".
  Status ToStatus(StatusCode code = StatusCode::kInvalidArgument) const;

 private:
  std::vector<Violation> list_;
};

// The violations in the BadRequest payload of `status`; empty if it has none.
std::vector<Violation> ViolationsOf(const Status& status);

// A Status with a single violation.
template <typename... Args>
Status RefuseField(StatusCode code, std::string field, fmt::format_string<Args...> format,
                   Args&&... args) {
  Violations violations;
  violations.Add(std::move(field), format, std::forward<Args>(args)...);
  return violations.ToStatus(code);
}

// INVALID_ARGUMENT: the data of `spec` cannot be opened because of `why`; `field` is the cause.
Status RefuseData(const v1::JobSpec& spec, const std::string& field, const Status& why);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_VIOLATION_H_
