// The values of the key parallelism.reshard_after_forward: true, false or a number. This is the
// only place that knows their texts. Pure.
#ifndef TROUPE_PLAN_JOB_RESHARD_MODE_H_
#define TROUPE_PLAN_JOB_RESHARD_MODE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

struct ReshardMode {
  enum class Kind : uint8_t {
    kTrue,   // parameters are gathered for each forward and each backward
    kFalse,  // they are gathered once a step and kept until its end
    kRun,    // they are gathered within runs of `run` neighbours on the data_shard axis
  };
  Kind kind = Kind::kTrue;
  int run = 0;  // above 0 exactly for kRun

  // The value as a job file has it. A mode has only one text, because it is part of a plan's
  // digest.
  std::string ToText() const;
  bool operator==(const ReshardMode&) const = default;
};

inline constexpr ReshardMode kReshardTrue = {ReshardMode::Kind::kTrue, 0};
inline constexpr ReshardMode kReshardFalse = {ReshardMode::Kind::kFalse, 0};
constexpr ReshardMode ReshardRun(int run) { return {ReshardMode::Kind::kRun, run}; }

// The mode with exactly this text; none for any other text.
std::optional<ReshardMode> ParseReshardMode(std::string_view text);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_RESHARD_MODE_H_
