// Reports the errors in a request: each violation names the field, its value and the relation that
// failed. A value may contain any byte, so each violation is shown as PrintableLine does: in a
// message, newlines separate violations only. A Status made from violations carries them as a
// google.rpc.BadRequest payload, so that they cross gRPC unchanged.
#ifndef TROUPE_PLAN_JOB_VIOLATION_H_
#define TROUPE_PLAN_JOB_VIOLATION_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/text/printable.h"
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
    list_.push_back(
        {PrintableLine(field), PrintableLine(fmt::format(format, std::forward<Args>(args)...))});
  }

  // The next functions write the texts of the kinds of violations that several fields share. The
  // last argument names what `value` is compared with, "model.num_experts = 8", and may add a
  // reason.

  // `words` lists the allowed words, "cpu, cuda". For a word of another tool the text has the one
  // that is meant (ForeignWordText).
  void AddUnknownWord(std::string field, std::string_view word, std::string_view words);

  // `range` is an interval, "(0, 1]".
  template <typename T>
  void AddOutOfRange(std::string field, const T& value, std::string_view range) {
    Add(std::move(field), "is {}, not in {}", value, range);
  }

  template <typename T>
  void AddTooLarge(std::string field, const T& value, std::string_view limit) {
    Add(std::move(field), "is {}, above {}", value, limit);
  }

  template <typename T>
  void AddTooSmall(std::string field, const T& value, std::string_view limit) {
    Add(std::move(field), "is {}, below {}", value, limit);
  }

  // `value` has to be larger than `limit`.
  template <typename T>
  void AddNotAbove(std::string field, const T& value, std::string_view limit) {
    Add(std::move(field), "is {}, not above {}", value, limit);
  }

  // The product of `value` and `factor` is larger than `limit`.
  void AddProductTooLarge(std::string field, int64_t value, std::string_view factor,
                          std::string_view limit);

  void AddNotMultiple(std::string field, int64_t value, std::string_view unit);

  void AddNotDivisor(std::string field, int64_t value, std::string_view multiple);

  // With this `value`, `other` has to be a multiple of `unit`.
  template <typename T>
  void AddIndivisible(std::string field, const T& value, std::string_view other,
                      std::string_view unit) {
    Add(std::move(field), "is {}, but {} is not a multiple of {}", value, other, unit);
  }

  // Adds a violation of `field` if both are above 0 and `degree` does not divide `value`, the value
  // of `other`.
  void AddUnlessDivides(const char* field, int64_t degree, const char* other, int64_t value) {
    if (degree > 0 && value > 0 && value % degree != 0)
      AddNotDivisor(field, degree, fmt::format("{} = {}", other, value));
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

// Replaces the BadRequest payload of `status` by one with `violations`; the message stays.
// REQUIRES: `status` is an error.
void SetViolations(const std::vector<Violation>& violations, Status* status);

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
