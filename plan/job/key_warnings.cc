#include "plan/job/key_warnings.h"

#include <fmt/format.h>

#include "plan/job/job_defaults.h"
#include "plan/job/key_effects.h"
#include "plan/job/key_path.h"

namespace troupe {
namespace {

bool HasItsDefault(const v1::JobSpec& spec, const ConditionalKey& key) {
  v1::JobSpec without = spec;
  ClearKey(key.path, &without);
  ApplyDefaults(&without);
  return KeyText(without, key.path) == KeyText(spec, key.path);
}

}  // namespace

std::vector<std::string> KeyWarnings(const v1::JobSpec& spec) {
  std::vector<std::string> lines;
  for (const ConditionalKey& key : ConditionalKeys()) {
    if (!HasKey(spec, key.path)) continue;
    const std::string why = key.why_without_effect(spec);
    if (why.empty() || (!key.drops_default && HasItsDefault(spec, key))) continue;
    // An imported model states all keys of blocks, including those that its blocks do not need.
    const bool of_blocks = key.path.starts_with("model.") && key.path != "model.initializer_range";
    if (spec.model().has_from() && of_blocks) continue;
    lines.push_back(
        fmt::format("{} = {} has no effect: {}", key.path, KeyText(spec, key.path), why));
  }
  const int64_t kept = spec.checkpoint().keep_latest_k();
  if (kept > 0 && kept < kKeptCommitsMin &&
      WhyWithoutEffect(spec, "checkpoint.keep_latest_k").empty()) {
    lines.push_back(
        fmt::format("checkpoint.keep_latest_k = {} has no effect below {}: the newest {} are kept, "
                    "so that one remains if the newest is damaged",
                    kept, kKeptCommitsMin, kKeptCommitsMin));
  }
  return lines;
}

}  // namespace troupe
