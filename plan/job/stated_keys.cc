#include "plan/job/stated_keys.h"

#include <algorithm>
#include <string>

#include "plan/job/key_effects.h"
#include "plan/job/key_path.h"

namespace troupe {
namespace {

constexpr std::string_view kDerived[] = {
    "training.compute_dtype",      "training.mixed_precision.param",
    "lr_schedule.decay_steps",     "parallelism.pipeline_parallel_chunks",
    "parallelism.zero_stage",      "parallelism.reshard_after_forward",
    "checkpoint.interval_seconds",
};

bool Has(const v1::StatedKeys& keys, std::string_view path) {
  return std::ranges::find(keys.paths(), path) != keys.paths().end();
}

}  // namespace

std::span<const std::string_view> DerivedKeys() { return kDerived; }

void AddStatedKeys(const v1::JobSpec& stated, v1::StatedKeys* keys) {
  const auto add = [&](std::string_view path) {
    if (HasKey(stated, path) && !Has(*keys, path)) keys->add_paths(std::string(path));
  };
  for (const std::string_view path : kDerived) add(path);
  for (const ConditionalKey& key : ConditionalKeys()) {
    if (key.drops_default) add(key.path);
  }
}

void ClearDerivedDefaults(const v1::StatedKeys& stated, v1::JobSpec* spec) {
  for (const std::string_view path : kDerived) {
    if (!Has(stated, path)) ClearKey(path, spec);
  }
}

void DropDefaults(const v1::StatedKeys& stated, v1::JobSpec* spec) {
  v1::JobSpec without_defaults = *spec;
  for (const ConditionalKey& key : ConditionalKeys()) {
    if (key.drops_default && !Has(stated, key.path)) ClearKey(key.path, &without_defaults);
  }
  DropDefaults(without_defaults, spec);
}

}  // namespace troupe
