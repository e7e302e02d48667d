// What is wrong with a request: each violation names the field, its value and the relation that failed. A Status made
// of violations carries them as a google.rpc.BadRequest payload, so that they cross gRPC unchanged.
#ifndef TROUPE_PLAN_VIOLATION_H_
#define TROUPE_PLAN_VIOLATION_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace troupe {

// Type URL of the BadRequest payload of a Status.
inline constexpr char kBadRequestTypeUrl[] = "type.googleapis.com/google.rpc.BadRequest";

struct Violation {
  std::string field;        // "parallelism.tensor_parallel_degree"
  std::string description;  // "is 3, which does not divide num_attention_heads = 8"
  // The value is well formed but belongs to a feature that this build lacks.
  bool unimplemented = false;
};

// Collects violations; all are reported, not only the first. Not thread-safe.
class Violations {
 public:
  template <typename... Args>
  void Add(std::string field, fmt::format_string<Args...> format, Args&&... args) {
    list_.push_back({std::move(field), fmt::format(format, std::forward<Args>(args)...), false});
  }
  // The value is valid in the schema and refused by this build.
  template <typename... Args>
  void AddUnimplemented(std::string field, fmt::format_string<Args...> format, Args&&... args) {
    list_.push_back({std::move(field), fmt::format(format, std::forward<Args>(args)...), true});
  }

  bool empty() const { return list_.empty(); }
  const std::vector<Violation>& list() const { return list_; }

  // OK if empty; UNIMPLEMENTED if all are; else INVALID_ARGUMENT. One line a violation, "field description".
  Status ToStatus() const;

 private:
  std::vector<Violation> list_;
};

// The violations in the BadRequest payload of `status`; empty if it has none.
std::vector<Violation> ViolationsOf(const Status& status);

}  // namespace troupe

#endif  // TROUPE_PLAN_VIOLATION_H_
