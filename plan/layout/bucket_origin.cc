#include "plan/layout/bucket_origin.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "model/program/placement.h"

namespace troupe {
namespace {

struct DataAxis {
  model::Axis axis;
  int32_t (v1::MeshDegrees::*degree)() const;
};

// The axes whose ranks reduce a bucket.
constexpr DataAxis kDataAxes[] = {
    {model::Axis::kDataReplicate, &v1::MeshDegrees::data_replicate},
    {model::Axis::kDataShard, &v1::MeshDegrees::data_shard},
    {model::Axis::kContext, &v1::MeshDegrees::context},
    {model::Axis::kExpert, &v1::MeshDegrees::expert},
};

// The degrees of `mesh` that differ from those of `other`, "data_replicate 2, data_shard 4".
std::string DegreesUnlike(const v1::MeshDegrees& other, const v1::MeshDegrees& mesh) {
  std::string text;
  for (const DataAxis& data : kDataAxes) {
    const int32_t degree = (mesh.*data.degree)();
    if (degree == (other.*data.degree)()) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", model::Name(data.axis), degree);
  }
  return text;
}

}  // namespace

void InheritBucketNumbers(const v1::JobSpec& spec, const v1::Plan& former, v1::Plan* plan) {
  const v1::BucketSpec& bucket = spec.parallelism().bucket();
  if (!bucket.has_elements() && !bucket.has_alignment() && !bucket.has_padding()) return;
  const v1::MeshDegrees& meant_for =
      former.has_bucket_stated_for() ? former.bucket_stated_for() : former.mesh();
  if (DegreesUnlike(plan->mesh(), meant_for).empty()) return;
  *plan->mutable_bucket_stated_for() = meant_for;
  for (std::string& line : InheritedBucketLines(bucket, BucketEffectsOf(spec), *plan))
    plan->add_warnings(std::move(line));
}

std::vector<std::string> UnevenPaddingLines(const v1::BucketSpec& stated,
                                            const BucketEffects& effects, const v1::Plan& plan) {
  const int64_t ranks = int64_t{plan.mesh().data_replicate()} * plan.mesh().data_shard() *
                        plan.mesh().context() * plan.mesh().expert();
  if (!effects.padding || !stated.has_padding() || stated.padding() % ranks == 0) return {};
  return {fmt::format(
      "parallelism.bucket.padding = {} is not a multiple of the {} ranks that reduce a bucket, so "
      "their parts of a bucket are not equal; it seems to be meant for another number of ranks",
      stated.padding(), ranks)};
}

std::vector<std::string> InheritedBucketLines(const v1::BucketSpec& stated,
                                              const BucketEffects& effects, const v1::Plan& plan) {
  if (!plan.has_bucket_stated_for()) return {};
  const std::string meant_for = DegreesUnlike(plan.mesh(), plan.bucket_stated_for());
  const std::string present = DegreesUnlike(plan.bucket_stated_for(), plan.mesh());
  std::vector<std::string> lines;
  const auto add = [&](const char* key, bool is_stated, bool has_effect, int64_t number) {
    if (!is_stated || !has_effect) return;
    lines.push_back(fmt::format("{} = {} was stated for a layout with {}; this one has {}", key,
                                number, meant_for, present));
  };
  add("parallelism.bucket.elements", stated.has_elements(), effects.elements, stated.elements());
  add("parallelism.bucket.alignment", stated.has_alignment(), effects.alignment,
      stated.alignment());
  add("parallelism.bucket.padding", stated.has_padding(), effects.padding, stated.padding());
  return lines;
}

}  // namespace troupe
